from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.job.lab import Nodes
from tests.node.commits import commit
from trainfabric_node.jobs import JobLedger, JobSpec
from trainfabric_node.store import PosixStore
from trainfabric_plan.contract import checkpoint_prefix
from trainfabric_plan.policy import FaultTolerance


def test_start_asks_for_all_nodes_and_writes_what_the_run_is(job: Any, ledger: JobLedger, nodes: Nodes) -> None:
    ended = job("start", "first", "--json")

    assert (ended.status, ended.err) == (0, "")
    spec = JobSpec.model_validate_json(ended.out)
    assert (spec.job, spec.run, spec.resume) == ("first", 1, False)
    assert (spec.recipe.name, spec.recipe.steps) == ("tiny_cpu", 40)
    assert str(spec.plan.layout) == "data 2 × pipeline 2 × tensor 2"
    assert ledger.current() == spec
    assert nodes.asked == 4


def test_start_tells_people_what_was_started_and_how_to_watch_it(job: Any, tmp_path: Path) -> None:
    assert job("start", "first").out.splitlines() == [
        f"started first (run 1) on 4 nodes with {tmp_path}/corpus",
        "next: trainfabric job status --follow --environment demo.yaml",
    ]


def test_start_takes_policy_and_spares_from_the_environment_file(
    job: Any, environment_file: Any, ledger: JobLedger, nodes: Nodes
) -> None:
    more = "  nodes: 4\n  spares: 1\n"
    policy = "fault_tolerance: {wait_for_replacement_s: 0, heartbeats: fast}\ntraining:\n"
    environment_file({"  nodes: 4\n": more, "training:\n": policy})

    out = job("start", "first").out

    spec = ledger.job("first")
    assert (spec.spares, spec.policy) == (1, FaultTolerance(wait_for_replacement_s=0, heartbeats="fast"))
    assert nodes.asked == 5
    assert out.splitlines()[0].startswith("started first (run 1) on 4 nodes and 1 spare with ")


def test_start_takes_fewer_steps_than_the_recipe(job: Any) -> None:
    assert job("start", "first", "--steps", "5", "--json").json["recipe"]["steps"] == 5


def test_a_second_job_is_refused_by_name(job: Any, ledger: JobLedger) -> None:
    job("start", "first")
    since = ledger.job("first").created

    ended = job("start", "second", "--json")

    assert (ended.status, ended.out) == (2, "")
    assert ended.err == (
        "environment demo: jobs must run one at a time, got second while first (run 1, since "
        f"{since:%Y-%m-%d %H:%M} UTC) is running; wait for it, or end it with trainfabric job stop\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("start", "First!"),
            "environment demo: job must be 1 to 63 lower-case letters, digits and hyphens, the first no hyphen, "
            "got First!\n",
        ),
        (
            ("start", "first", "--resume"),
            "environment demo: job to resume must have a committed checkpoint, got none of first; "
            "start it without resume, or under another name if it failed before its first checkpoint\n",
        ),
        (
            ("start", "first", "--from-step", "10"),
            "environment demo: from-step must be given with resume, got 10 without it; add --resume\n",
        ),
        (
            ("start", "first", "--data", "absent/corpus"),
            "environment demo: corpus must be a prepared one, got none at absent/corpus; "
            "write it with python -m trainfabric_training.data prepare --output absent/corpus\n",
        ),
        (
            ("stop",),
            "environment demo: a job must be running to be stopped, got none; trainfabric job status tells more\n",
        ),
        (("logs",), "environment demo: job must be given, got none; no job has been started\n"),
    ],
    ids=["name", "resume", "from-step", "corpus", "stop", "logs"],
)
def test_what_cannot_be_done_ends_with_status_2_and_asks_for_no_node(
    job: Any, ledger: JobLedger, nodes: Nodes, arguments: tuple[str, ...], message: str
) -> None:
    ended = job(*arguments)

    assert (ended.status, ended.out, ended.err) == (2, "", message)
    assert nodes.asked == 0
    assert ledger.current() is None


@pytest.fixture
def checkpoints(tmp_path: Path) -> PosixStore:
    """The checkpoints of the first job, of steps 10 and 20."""
    store = PosixStore(tmp_path / "checkpoints" / checkpoint_prefix("first"))
    commit(store, step=10)
    commit(store, step=20)
    return store


def test_a_damaged_checkpoint_is_refused_before_nodes_are_asked_for_and_an_older_one_goes_on(
    job: Any, ledger: JobLedger, nodes: Nodes, checkpoints: PosixStore
) -> None:
    checkpoints.delete("steps/00000020-run-1/rank00000-0000.bin")

    ended = job("start", "first", "--resume", "--json")

    assert (ended.status, ended.out, nodes.asked, ledger.current()) == (2, "", 0, None)
    assert ended.err == (
        f"{checkpoints.uri}: steps/00000020-run-1/rank00000-0000.bin must exist, got none; "
        "restore the object, or resume an older commit with --from-step\n"
    )
    resumed = job("start", "first", "--resume", "--from-step", "10", "--json").json
    assert (resumed["resume"], resumed["from_step"], nodes.asked) == (True, 10, 4)


def test_a_step_without_a_checkpoint_is_refused_with_those_that_have_one(
    job: Any, ledger: JobLedger, nodes: Nodes, checkpoints: PosixStore
) -> None:
    ended = job("start", "first", "--resume", "--from-step", "15")

    assert (ended.status, ended.out, nodes.asked, ledger.current()) == (2, "", 0, None)
    assert ended.err == f"{checkpoints.uri}: step must be a committed one, got 15; committed steps: 10, 20\n"


def test_a_job_that_never_was_is_refused_with_those_that_were(job: Any, tmp_path: Path) -> None:
    job("start", "first")

    ended = job("status", "second")

    assert (ended.status, ended.out) == (2, "")
    assert ended.err == (
        f"{PosixStore(tmp_path / 'checkpoints').uri}: job must be an existing one, got second; existing jobs: first\n"
    )


def test_less_than_one_step_is_wrong_usage(job: Any, ledger: JobLedger) -> None:
    ended = job("start", "first", "--steps", "0")

    assert (ended.status, ended.out) == (2, "")
    assert "Invalid value for '--steps'" in ended.err
    assert ledger.current() is None
