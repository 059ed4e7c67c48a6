from __future__ import annotations

import re
from typing import Any

import pytest

from tests.cli.job.lab import Nodes, epoch_event, instance, node, play, publish_events
from trainfabric_node.jobs import JobLedger, NodeState, Outcome, RunRecords
from trainfabric_node.jobs.records import now

TIME = re.compile(r"^(\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d ")


def without_times(lines: list[str]) -> list[str]:
    return [TIME.sub("", line) for line in lines]


def test_status_before_any_job_says_so(job: Any) -> None:
    ended = job("status", "--json")

    assert ended.status == 0
    assert (ended.json["state"], ended.json["summary"]) == ("none", "no job has been started")


def test_status_shows_nodes_step_and_loss(job: Any, run: RunRecords) -> None:
    job("start", "first")
    play(run, steps=4)

    status = job("status", "--json").json

    assert (status["job"], status["run"], status["state"]) == ("first", 1, "running")
    assert (status["step"], status["steps"], status["loss"], status["tokens_per_second"]) == (4, 40, 2.0, 4096.0)
    assert [one["role"] for one in status["nodes"]] == ["coordinator", "worker", "worker", "worker"]
    lines = [" ".join(line.split()) for line in job("status", "first").out.splitlines()]
    assert lines[0] == "first: running at step 4 of 40"
    for line in (
        "step 4 of 40",
        "loss 2.0000",
        "tokens per second 4,096",
        "nodes 4 of 4",
        "layout data 2",
        "i-00000000000000000 coordinator running",
    ):
        assert line in lines


def test_status_tells_what_happened_in_words_and_in_order(job: Any, run: RunRecords) -> None:
    job("start", "first")
    play(run, steps=4)
    notice = {"time": "2126-07-01T19:02:11+00:00", "event": "spot_notice", "node": instance(2), "detail": "[terminate]"}
    drain = {"time": "2126-07-01T19:02:12+00:00", "event": "drain", "epoch": 1, "at": "now", "detail": "a node goes"}
    epoch = epoch_event(nodes=4)
    publish_events(run, epoch, notice, drain)

    lines = job("status").out.splitlines()
    status = job("status", "--json").json

    assert lines[0] == "first: draining at step 4 of 40: all ranks save and leave: a node goes"
    story = lines[lines.index("What happened (UTC)") + 1 :]
    assert without_times(story) == [
        "first (run 1) asks for 4 nodes, data 2 × pipeline 2 × tensor 2",
        "epoch 1: 4 nodes train, data 2",
        f"{instance(2)} got a spot notice: [terminate]",
        "all ranks are asked to save and leave: a node goes",
    ]
    assert story[1:3] == [
        "2126-07-01 19:02:00 epoch 1: 4 nodes train, data 2",
        f"19:02:11 {instance(2)} got a spot notice: [terminate]",
    ]
    assert (status["state"], status["story"], status["events"]) == ("draining", story, [epoch, notice, drain])


def test_brackets_in_what_a_node_says_are_shown_as_they_are(job: Any, ledger: JobLedger) -> None:
    job("start", "first")
    ledger.run("first", 1).report(node(0, NodeState.FAILED, detail="[Errno 28] no space [/left]"))

    assert "[Errno 28] no space [/left]" in job("status").out


def test_following_prints_a_line_for_each_change_and_the_end(
    job: Any, ledger: JobLedger, run: RunRecords, monkeypatch: pytest.MonkeyPatch
) -> None:
    job("start", "first")
    progress = iter([2, 2, 4])

    def sleep(_: float) -> None:
        step = next(progress, None)
        if step:
            play(run, steps=step)
        else:
            ledger.run("first", 1).conclude(Outcome(state="done", step=4, ended=now()))

    monkeypatch.setattr("trainfabric_cli.following.sleep", sleep)
    ended = job("status", "--follow")

    assert ended.status == 0
    assert without_times(ended.out.splitlines())[:8] == [
        "first (run 1) asks for 4 nodes, data 2 × pipeline 2 × tensor 2",
        "starting: 0 of 4 nodes have come up",
        "epoch 1: 4 nodes train, data 2",
        "running at step 2 of 40, loss 4.0000",
        "running at step 4 of 40, loss 2.0000",
        "the run has ended: done at step 4",
        "done at step 4 of 40, loss 2.0000",
        "first: done at step 4 of 40",
    ]


def test_following_a_job_that_failed_ends_with_status_1(job: Any, ledger: JobLedger) -> None:
    job("start", "first")
    ledger.run("first", 1).conclude(Outcome(state="failed", detail="rank 3 died", ended=now()))

    ended = job("status", "--follow", "--json")

    assert (ended.status, ended.err) == (1, "")
    assert (ended.json["state"], ended.json["summary"]) == ("failed", "failed: rank 3 died")


def test_start_with_wait_prints_the_end_alone_as_json(
    job: Any, ledger: JobLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sleep(_: float) -> None:
        ledger.run("first", 1).conclude(Outcome(state="done", step=40, ended=now()))

    monkeypatch.setattr("trainfabric_cli.following.sleep", sleep)

    ended = job("start", "first", "--wait", "--json")

    assert (ended.status, ended.err, ended.json["state"]) == (0, "", "done")


def test_ctrl_c_while_following_leaves_the_job_alone_and_says_so(
    job: Any, ledger: JobLedger, nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sleep(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("trainfabric_cli.following.sleep", sleep)

    ended = job("start", "first", "--wait", "--json")

    assert (ended.status, ended.out) == (130, "")
    assert ended.err == "the job goes on; trainfabric job status --follow shows it again\n"
    assert ledger.current() and nodes.asked == 4


def test_logs_of_all_nodes_or_of_one(job: Any, ledger: JobLedger) -> None:
    job("start", "first")
    for number in range(2):
        ledger.run("first", 1).publish(3, f"logs/i-{number}.log", f"hello from {number}\n".encode())

    zero, one = "== epoch 3 ==\nhello from 0\n", "== epoch 3 ==\nhello from 1\n"
    assert job("logs").out == f"==> i-0 <==\n{zero}\n==> i-1 <==\n{one}"
    assert job("logs", "first", "--node", "i-1").out == one
    assert job("logs", "--node", "i-1", "--json").json == {"job": "first", "node": "i-1", "log": one}
    assert job("logs", "--json").json["job"] == "first"
    assert job("logs", "--json").json["node"] is None


def test_logs_of_a_node_that_is_none_are_refused(job: Any) -> None:
    job("start", "first")

    ended = job("logs", "--node", "i-9")

    assert (ended.status, ended.out) == (2, "")
    assert ended.err == "environment demo: node must have published a log, got i-9; those that have: none\n"
