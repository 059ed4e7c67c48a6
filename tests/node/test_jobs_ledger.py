from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from tests.node.samples import spec
from trainfabric_node.jobs import (
    JobLedger,
    JobState,
    NodeState,
    NodeStatus,
    Outcome,
    Rendezvous,
    RunRecords,
    StopRequest,
    TrainerResult,
)
from trainfabric_node.jobs.records import now
from trainfabric_node.jobs.status import job_status
from trainfabric_node.store import open_store
from trainfabric_plan.contract import CURRENT_JOB_KEY, Role
from trainfabric_plan.errors import InvalidInput, NotFound, Refused


@pytest.fixture
def ledger(tmp_path: Path) -> JobLedger:
    return JobLedger(open_store(str(tmp_path)))


def _node(name: str, state: NodeState, role: Role = Role.WORKER) -> NodeStatus:
    return NodeStatus(instance_id=name, role=role, state=state, updated=now())


def _steps(records: RunRecords, *steps: int) -> None:
    lines = [{"step": n, "loss": 9.0 - n, "grad_norm": 1.0, "tokens": 2048, "seconds": 0.5} for n in steps]
    records.publish("steps.jsonl", "".join(json.dumps(line) + "\n" for line in lines).encode())


def test_a_second_job_is_refused_and_names_the_one_that_runs(ledger: JobLedger) -> None:
    running = spec()
    ledger.claim(running)

    with pytest.raises(Refused) as caught:
        ledger.claim(spec(job="second", nonce="b"))

    assert str(caught.value) == (
        "environment lab: jobs must run one at a time, got second while first (run 1, since "
        f"{running.created:%Y-%m-%d %H:%M} UTC) is running; wait for it, or end it with trainfabric job stop"
    )
    assert ledger.current() == running


def test_the_claim_is_what_the_nodes_read(ledger: JobLedger) -> None:
    ledger.claim(spec())

    assert ledger.current() == ledger.job("first") == ledger.newest() == spec(created=ledger.job("first").created)


def test_a_run_that_has_ended_does_not_hold_the_environment(ledger: JobLedger) -> None:
    ledger.claim(spec())
    ledger.run("first", 1).conclude(Outcome(state="done", ended=now()))

    ledger.claim(spec(job="second", nonce="b"))

    assert ledger.newest() == ledger.job("second")


def test_only_the_run_that_holds_the_environment_frees_it(ledger: JobLedger) -> None:
    ledger.claim(spec())

    ledger.release(spec(job="second", nonce="b"))
    held = ledger.current()
    ledger.release(spec())

    assert held is not None
    assert ledger.current() is None
    assert ledger.newest() == held


def test_a_job_that_never_was_is_not_found_and_the_others_are_named(ledger: JobLedger, tmp_path: Path) -> None:
    ledger.claim(spec())

    with pytest.raises(NotFound) as caught:
        ledger.job("nope")

    assert str(caught.value) == (f"{tmp_path.as_uri()}/: job must be an existing one, got nope; existing jobs: first")


def test_runs_are_counted_from_what_there_is(ledger: JobLedger) -> None:
    first = ledger.next_run("first")
    ledger.claim(spec(run=3))
    known = ledger.next_run("first")
    ledger.run("first", 7).announce(Rendezvous(host="10.0.0.1", port=29400))

    assert (first, known, ledger.next_run("first")) == (1, 4, 8)


def test_a_later_run_replaces_the_steps_that_it_repeats(ledger: JobLedger) -> None:
    ledger.claim(spec(run=2, resume=True))
    _steps(ledger.run("first", 1), 1, 2, 3, 4)
    _steps(ledger.run("first", 2), 3)

    assert [line["step"] for line in ledger.steps("first")] == [1, 2, 3]


def test_a_line_that_is_still_being_written_is_left_out(ledger: JobLedger) -> None:
    records = ledger.run("first", 1)
    records.publish("events.jsonl", b'{"event": "start"}\n{"eve')

    assert records.events() == [{"event": "start"}]


def test_the_first_request_to_stop_counts_unless_the_run_fails(ledger: JobLedger) -> None:
    records = ledger.run("first", 1)
    asked = StopRequest(reason="asked", requested=now())
    failed = StopRequest(reason="failed", requested=now())

    records.request_stop(asked)
    records.request_stop(StopRequest(reason="interrupted", requested=now() + timedelta(seconds=1)))
    before = records.stop_request()
    records.request_stop(failed)

    assert before == asked
    assert records.stop_request() == failed


def test_the_first_outcome_counts(ledger: JobLedger) -> None:
    records = ledger.run("first", 1)

    records.conclude(Outcome(state="done", step=60, ended=now()))
    records.conclude(Outcome(state="failed", ended=now()))

    assert records.outcome() == Outcome(state="done", step=60, ended=records.outcome().ended)  # type: ignore[union-attr]


def test_what_the_trainer_leaves_may_say_more_than_we_read(ledger: JobLedger) -> None:
    records = ledger.run("first", 1)
    records.publish("result.json", b'{"status": "stopped", "step": 24, "more": 1}')

    assert records.result() == TrainerResult(status="stopped", step=24)


def test_a_record_of_another_version_is_refused(ledger: JobLedger, tmp_path: Path) -> None:
    open_store(str(tmp_path)).put(CURRENT_JOB_KEY, b'{"job": 1}')

    with pytest.raises(InvalidInput) as caught:
        ledger.current()

    assert str(caught.value) == (
        f"{tmp_path.as_uri()}/jobs/current.json: the object must be a JobSpec of this version, got job: input should "
        "be a valid string; use the version of trainfabric that wrote it, or remove the object"
    )


@pytest.mark.parametrize(
    ("states", "state", "summary"),
    [
        ([], JobState.STARTING, "starting: 0 of 2 nodes have come up"),
        ([NodeState.JOINING], JobState.STARTING, "starting: 1 of 2 nodes have come up"),
        ([NodeState.RUNNING] * 2, JobState.RUNNING, "running at step 3 of 40"),
        (
            [NodeState.RUNNING, NodeState.DONE],
            JobState.STOPPING,
            "stopping at step 3 of 40: 1 of 2 nodes are still at it",
        ),
    ],
)
def test_the_state_of_a_job_follows_from_its_nodes(
    ledger: JobLedger, states: list[NodeState], state: JobState, summary: str
) -> None:
    ledger.claim(spec())
    records = ledger.run("first", 1)
    if NodeState.RUNNING in states:
        _steps(records, 1, 2, 3)
    for number, node in enumerate(states):
        records.report(_node(f"i-{number}", node))

    status = job_status(ledger, ledger.job("first"))

    assert (status.state, status.summary) == (state, summary)


@pytest.mark.parametrize(
    ("minutes", "summary"),
    [
        (4, "starting: 0 of 2 nodes have come up"),
        (12, "starting: 0 of 2 nodes have come up; no node has reported for 12 minutes"),
    ],
)
def test_nodes_that_do_not_come_up_are_noticed(ledger: JobLedger, minutes: int, summary: str) -> None:
    ledger.claim(spec(created=now() - timedelta(minutes=minutes, seconds=20)))

    assert job_status(ledger, ledger.job("first")).summary == summary


def test_nodes_that_have_fallen_silent_are_noticed(ledger: JobLedger) -> None:
    ledger.claim(spec(created=now() - timedelta(hours=3)))
    node = _node("i-1", NodeState.JOINING).model_copy(update={"updated": now() - timedelta(minutes=7)})
    ledger.run("first", 1).report(node)

    summary = job_status(ledger, ledger.job("first")).summary

    assert summary == "starting: 1 of 2 nodes have come up; no node has reported for 7 minutes"


def test_the_status_shows_the_newest_step_and_checkpoint(ledger: JobLedger) -> None:
    ledger.claim(spec())
    _steps(ledger.run("first", 1), 1, 2)
    ledger.run("first", 1).report(_node("i-2", NodeState.RUNNING))
    ledger.run("first", 1).report(_node("i-9", NodeState.RUNNING, Role.COORDINATOR))

    status = job_status(ledger, ledger.job("first"))

    assert (status.step, status.steps, status.loss, status.tokens_per_second) == (2, 40, 7.0, 4096.0)
    assert status.checkpoint_step is None
    assert [node.instance_id for node in status.nodes] == ["i-9", "i-2"]
    assert json.loads(status.model_dump_json())["state"] == "running"


def test_an_outcome_is_the_last_word(ledger: JobLedger) -> None:
    ledger.claim(spec())
    _steps(ledger.run("first", 1), 1)
    ledger.run("first", 1).conclude(Outcome(state="failed", detail="i-1: out of memory", ended=now()))

    status = job_status(ledger, ledger.job("first"))

    assert (status.state, status.summary) == (JobState.FAILED, "failed at step 1 of 40: i-1: out of memory")


def test_a_run_that_lost_the_environment_without_an_outcome_has_failed(ledger: JobLedger) -> None:
    ledger.claim(spec())
    ledger.release(spec())

    status = job_status(ledger, ledger.job("first"))

    assert (status.state, status.summary) == (JobState.FAILED, "failed: the run ended without saying how")
