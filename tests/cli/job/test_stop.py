from __future__ import annotations

from typing import Any

from tests.cli.job.lab import Nodes, play
from trainfabric_node.jobs import JobLedger, NodeState, Outcome, RunRecords
from trainfabric_node.jobs.records import now


def test_stop_asks_the_nodes_and_returns(job: Any, ledger: JobLedger, run: RunRecords) -> None:
    job("start", "first")
    play(run, steps=4)

    status = job("stop", "--json").json

    assert status["state"] == "stopping"
    request = ledger.run("first", 1).stop_request()
    assert request and request.reason == "asked"


def test_stop_with_wait_returns_when_the_nodes_are_released(
    job: Any, ledger: JobLedger, nodes: Nodes, run: RunRecords
) -> None:
    job("start", "first")
    play(run, steps=4, state=NodeState.STOPPED)
    ledger.run("first", 1).conclude(Outcome(state="stopped", step=4, ended=now()))

    status = job("stop", "--wait", "--json").json

    assert (status["state"], status["step"], nodes.asked) == ("stopped", 4, 0)
    assert ledger.current() is None


def test_stop_with_force_releases_nodes_that_never_answer(job: Any, nodes: Nodes, run: RunRecords) -> None:
    job("start", "first")
    play(run, steps=4)

    assert job("stop", "--force", "--json").json["state"] == "stopped"
    assert nodes.asked == 0


def test_stop_gives_up_on_silent_nodes_after_the_timeout(job: Any, run: RunRecords) -> None:
    job("start", "first")
    play(run, steps=4, nodes=1)

    ended = job("stop", "--wait", "--timeout-s", "0.1")

    assert (ended.status, ended.out) == (2, "")
    assert ended.err == (
        "environment demo: the run must end within 0.1 s, got none while there are i-00000000000000000 (running); "
        "wait longer, or stop with force, which loses what was trained since the last checkpoint\n"
    )
