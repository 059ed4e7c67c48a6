from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.node.jobs.lab import node
from tests.node.jobs.said import BEGIN, drain, ended, epoch, event, publish
from tests.node.samples import spec
from trainfabric_node.jobs import JobLedger, JobState, Member, NodeState, Outcome, RunRecords, StopRequest
from trainfabric_node.jobs.records import now
from trainfabric_node.jobs.status import JobStatus, job_status
from trainfabric_node.store import open_store
from trainfabric_plan.contract import Role


@pytest.fixture
def ledger(tmp_path: Path) -> JobLedger:
    made = JobLedger(open_store(str(tmp_path)))
    made.claim(spec(4))
    return made


@pytest.fixture
def records(ledger: JobLedger) -> RunRecords:
    return ledger.run("first", 1)


def _steps(records: RunRecords, epoch: int, *steps: int) -> None:
    lines = [{"step": n, "loss": 9.0 - n, "grad_norm": 1.0, "tokens": 2048, "seconds": 0.5} for n in steps]
    records.publish(epoch, "steps.jsonl", "".join(json.dumps(line) + "\n" for line in lines).encode())


def _status(ledger: JobLedger) -> JobStatus:
    return job_status(ledger, ledger.job("first"))


NO_STEP = "and its ranks have not finished a step yet"
FEWER = "on 2 of 4 nodes, data 1 × pipeline 2 × tensor 2"
SMALL: dict[str, Any] = {"nodes": 2, "layout": "data 1 × pipeline 2 × tensor 2"}
UNTIL = "2026-07-01T19:07:00+00:00"


@pytest.mark.parametrize(
    ("events", "stepped", "state", "summary"),
    [
        ([], [], JobState.STARTING, "starting: 2 of 4 nodes have come up"),
        (
            [event("wait", detail="2 of 4 nodes", until=UNTIL)],
            [],
            JobState.STARTING,
            "starting: 2 of 4 nodes have come up",
        ),
        ([epoch(1)], [], JobState.STARTING, f"starting: epoch 1 is formed, {NO_STEP}"),
        ([epoch(1)], [1], JobState.RUNNING, "running at step 1 of 40"),
        (
            [epoch(1), drain(1, at="checkpoint", detail="i-9 is there")],
            [1],
            JobState.RUNNING,
            "running at step 1 of 40",
        ),
        (
            [epoch(1), drain(1, detail="i-1 got a spot notice")],
            [1],
            JobState.DRAINING,
            "draining at step 1 of 40: all ranks save and leave: i-1 got a spot notice",
        ),
        (
            [epoch(1), drain(1), ended(1, "resume")],
            [1],
            JobState.RESUMING,
            "resuming at step 1 of 40: epoch 1 has ended, and the next one is formed",
        ),
        (
            [epoch(1), ended(1, "failed", detail="i-1: rank 3 was killed")],
            [1],
            JobState.RESUMING,
            "resuming at step 1 of 40: epoch 1 has ended, and the next one is formed: i-1: rank 3 was killed",
        ),
        (
            [epoch(1), ended(1, "failed"), event("wait", detail="3 of 4 nodes are ready", until=UNTIL)],
            [1],
            JobState.WAITING,
            "waiting at step 1 of 40: 3 of 4 nodes are ready, until 19:07:00 UTC",
        ),
        (
            [epoch(1), ended(1, "failed"), event("wait", detail="1 of 4 nodes is ready", until=None)],
            [1],
            JobState.WAITING,
            "waiting at step 1 of 40: 1 of 4 nodes is ready, for as long as it takes",
        ),
        (
            [epoch(1), ended(1, "failed"), epoch(2, **SMALL)],
            [1],
            JobState.RESUMING,
            f"resuming at step 1 of 40: epoch 2 is formed, {NO_STEP}",
        ),
        (
            [epoch(1), ended(1, "failed"), epoch(2, **SMALL)],
            [1, 2],
            JobState.RUNNING,
            f"running at step 2 of 40: {FEWER}",
        ),
        ([epoch(1), ended(1, "done")], [1], JobState.STOPPING, "stopping at step 1 of 40: the nodes are released"),
        (
            [epoch(1), ended(1, "failed"), event("release", detail="failed 3 times")],
            [1],
            JobState.STOPPING,
            "stopping at step 1 of 40: the nodes are released",
        ),
    ],
)
def test_the_state_of_a_job_follows_from_what_happened(
    ledger: JobLedger,
    records: RunRecords,
    events: list[dict[str, Any]],
    stepped: list[int],
    state: JobState,
    summary: str,
) -> None:
    for name in ("i-1", "i-2"):
        records.report(node(name, NodeState.JOINING))
    records.report(node("i-3", NodeState.LOST))
    publish(records, *events)
    for number in stepped:
        _steps(records, number, number)

    status = _status(ledger)

    assert (status.state, status.summary) == (state, summary)


def test_a_resumed_run_whose_ranks_still_load_has_not_started_yet(ledger: JobLedger) -> None:
    _steps(ledger.run("first", 1), 4, 10)
    ledger.run("first", 1).conclude(Outcome(state="stopped", ended=now()))
    ledger.claim(spec(4, run=2, resume=True, nonce="b"))
    second = ledger.run("first", 2)
    publish(second, epoch(5))

    loading = _status(ledger)
    _steps(second, 5, 11)

    assert (loading.state, loading.summary) == (
        JobState.STARTING,
        f"starting at step 10 of 40: epoch 5 is formed, {NO_STEP}",
    )
    assert (_status(ledger).state, _status(ledger).summary) == (JobState.RUNNING, "running at step 11 of 40")


def test_a_run_that_was_asked_to_stop_is_stopping_whatever_its_nodes_are_at(
    ledger: JobLedger, records: RunRecords
) -> None:
    publish(records, epoch(1))
    records.request_stop(StopRequest(requested=now()))

    status = _status(ledger)

    assert (status.state, status.summary) == (
        JobState.STOPPING,
        "stopping: all ranks save, then the nodes are released",
    )


@pytest.mark.parametrize(("minutes", "more"), [(4, ""), (12, "; no node has reported for 12 minutes")])
def test_nodes_that_do_not_come_up_are_noticed(tmp_path: Path, minutes: int, more: str) -> None:
    ledger = JobLedger(open_store(str(tmp_path)))
    ledger.claim(spec(created=now() - timedelta(minutes=minutes, seconds=20)))

    assert _status(ledger).summary == f"starting: 0 of 2 nodes have come up{more}"


def test_nodes_that_have_fallen_silent_are_noticed(tmp_path: Path) -> None:
    ledger = JobLedger(open_store(str(tmp_path)))
    ledger.claim(spec(created=now() - timedelta(hours=3)))
    ledger.run("first", 1).report(node("i-1", NodeState.JOINING, updated=now() - timedelta(minutes=7)))

    assert _status(ledger).summary == "starting: 1 of 2 nodes have come up; no node has reported for 7 minutes"


def test_the_status_shows_the_newest_step_the_epoch_and_the_nodes(ledger: JobLedger, records: RunRecords) -> None:
    publish(records, epoch(1), ended(1, "failed"), epoch(2, **SMALL))
    _steps(records, 1, 1, 2)
    records.report(node("i-2", NodeState.RUNNING, Role.WORKER))
    records.report(node("i-9", NodeState.RUNNING, Role.COORDINATOR))

    status = _status(ledger)

    assert (status.step, status.steps, status.loss, status.tokens_per_second) == (2, 40, 7.0, 4096.0)
    assert (status.epoch, status.nodes_training, status.nodes_expected) == (2, 2, 4)
    assert status.layout == "data 1 × pipeline 2 × tensor 2"
    assert status.checkpoint_step is None
    assert [one.instance_id for one in status.nodes] == ["i-9", "i-2"]
    assert json.loads(status.model_dump_json())["state"] == "resuming"


def test_before_the_first_epoch_the_layout_is_that_of_the_plan(ledger: JobLedger) -> None:
    status = _status(ledger)

    assert (status.epoch, status.nodes_training, status.layout) == (None, None, "data 4 × pipeline 1 × tensor 2")


def test_the_status_tells_what_happened_and_from_which_events(ledger: JobLedger, records: RunRecords) -> None:
    publish(records, epoch(1))

    status = _status(ledger)

    assert status.events == [epoch(1)]
    assert status.story[0] == f"{BEGIN:%Y-%m-%d %H:%M:%S} epoch 1: 4 nodes train, data 4"
    assert len(status.story) == 2


def test_an_outcome_is_the_last_word(ledger: JobLedger, records: RunRecords) -> None:
    publish(records, epoch(1))
    _steps(records, 1, 1)
    records.conclude(Outcome(state="failed", detail="i-1: out of memory", ended=now()))

    status = _status(ledger)

    assert (status.state, status.summary) == (JobState.FAILED, "failed at step 1 of 40: i-1: out of memory")


def test_a_run_that_lost_the_environment_without_an_outcome_has_failed(ledger: JobLedger) -> None:
    ledger.release(spec())

    assert _status(ledger).summary == "failed: the run ended without saying how"


def _member(name: str) -> Member:
    return Member(
        instance_id=name,
        group="lab-workers",
        role=Role.WORKER,
        life_cycle_state="InService",
        launch_template_version=None,
        protected=False,
    )


def test_a_node_that_is_not_in_the_fleet_any_more_is_lost_whatever_was_written_last(
    ledger: JobLedger, records: RunRecords
) -> None:
    for name in ("i-1", "i-2"):
        records.report(node(name, NodeState.RUNNING))
    records.report(node("i-3", NodeState.FAILED))

    status = job_status(ledger, ledger.job("first"), [_member("i-1")])

    assert [(one.instance_id, one.state, one.detail) for one in status.nodes] == [
        ("i-1", NodeState.RUNNING, ""),
        ("i-2", NodeState.LOST, "not in the fleet any more"),
        ("i-3", NodeState.FAILED, ""),
    ]


def test_no_node_of_a_run_that_has_ended_is_up(ledger: JobLedger, records: RunRecords) -> None:
    records.report(node("i-1", NodeState.RUNNING))
    records.report(node("i-2", NodeState.DONE))

    records.conclude(Outcome(state="failed", ended=now()))

    assert [one.state for one in _status(ledger).nodes] == [NodeState.STOPPED, NodeState.DONE]


def test_a_run_whose_nodes_are_all_gone_has_failed(ledger: JobLedger) -> None:
    status = job_status(ledger, ledger.job("first"), [], abandoned=True)

    assert (status.state, status.summary) == (JobState.FAILED, "failed: its nodes are gone")
