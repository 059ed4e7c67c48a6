from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.node.commits import manifest, write_part
from tests.node.samples import spec
from trainfabric_node.jobs import ControllerAddress, JobLedger, Outcome, RunRecords, StopRequest, TrainerResult
from trainfabric_node.jobs.records import now
from trainfabric_node.store import ObjectMissing, open_store
from trainfabric_plan.contract import CURRENT_JOB_KEY
from trainfabric_plan.errors import InvalidInput, NotFound, Refused


@pytest.fixture
def ledger(tmp_path: Path) -> JobLedger:
    return JobLedger(open_store(str(tmp_path)))


def _steps(records: RunRecords, epoch: int, *steps: int) -> None:
    lines = [{"step": n, "loss": 9.0 - n, "epoch_of": epoch} for n in steps]
    records.publish(epoch, "steps.jsonl", "".join(json.dumps(line) + "\n" for line in lines).encode())


def _of(lines: list[dict[str, Any]]) -> list[tuple[int, int]]:
    return [(line["step"], line["epoch_of"]) for line in lines]


def _events(*times: str, event: str = "epoch") -> bytes:
    return "".join(json.dumps({"event": event, "time": time}) + "\n" for time in times).encode()


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
    ledger.run("first", 7).publish_events("c", b"")

    assert (first, known, ledger.next_run("first")) == (1, 4, 8)


def test_a_later_run_replaces_the_steps_that_it_repeats(ledger: JobLedger) -> None:
    ledger.claim(spec(run=2, resume=True))
    _steps(ledger.run("first", 1), 1, 1, 2, 3, 4)
    _steps(ledger.run("first", 2), 2, 3)

    assert _of(ledger.steps("first")) == [(1, 1), (2, 1), (3, 2)]


def test_a_later_epoch_replaces_the_steps_that_it_repeats(ledger: JobLedger) -> None:
    records = ledger.run("first", 1)
    _steps(records, 9, 1, 2, 3, 4)
    _steps(records, 10, 3, 4, 5)
    _steps(records, 11)

    assert _of(records.steps()) == [(1, 9), (2, 9), (3, 10), (4, 10), (5, 10)]
    assert list(records.steps_by_epoch()) == [9, 10]
    assert records.epochs() == [9, 10, 11]


def test_the_last_step_is_that_of_the_newest_epoch_that_has_one_over_all_runs(ledger: JobLedger) -> None:
    ledger.claim(spec(run=2, resume=True))
    none = ledger.last_step("first")
    _steps(ledger.run("first", 1), 1, 1, 2)
    _steps(ledger.run("first", 1), 2, 2)
    _steps(ledger.run("first", 2), 3)

    last = ledger.last_step("first")

    assert none is None
    assert last == {**ledger.steps("first")[-1], "epoch": 2}


def test_steps_can_be_read_from_where_one_has_read_before(ledger: JobLedger) -> None:
    records = ledger.run("first", 1)
    records.publish(3, "steps.jsonl", b"0123456789")

    assert (records.steps_from(3, 4, 3), records.steps_from(4, 0, 3)) == (b"456", b"")


def test_a_line_that_is_still_being_written_is_left_out(ledger: JobLedger) -> None:
    records = ledger.run("first", 1)
    records.publish(1, "steps.jsonl", b'{"step": 1}\n{"st')

    assert records.steps() == [{"step": 1}]


def test_events_of_controllers_and_ranks_come_by_time_and_those_of_ranks_say_their_epoch(ledger: JobLedger) -> None:
    records = ledger.run("first", 1)
    records.publish_events("b", _events("2026-01-01T00:00:03.000+00:00", "2026-01-01T00:00:05+00:00"))
    records.publish_events("a", _events("2026-01-01T00:00:01+00:00"))
    records.publish(7, "events.jsonl", _events("2026-01-01T00:00:04.500+00:00", event="commit"))
    records.publish(6, "events.jsonl", _events("2026-01-01T01:00:02+01:00", event="stop"))

    events = records.events()

    assert [(event["event"], event.get("epoch")) for event in events] == [
        ("epoch", None), ("stop", 6), ("epoch", None), ("commit", 7), ("epoch", None),
    ]  # fmt: skip


def test_all_that_a_controller_says_replaces_what_it_said_before(ledger: JobLedger) -> None:
    records = ledger.run("first", 1)
    records.publish_events("a", _events("2026-01-01T00:00:01+00:00"))
    records.publish_events("a", _events("2026-01-01T00:00:01+00:00", "2026-01-01T00:00:02+00:00"))

    assert len(records.events()) == 2


def test_a_log_of_a_node_is_that_of_all_its_epochs_in_order(ledger: JobLedger) -> None:
    records = ledger.run("first", 1)
    records.publish(10, "logs/i-1.log", b"ten\n")
    records.publish(9, "logs/i-1.log", b"nine, cut off")
    records.publish(9, "logs/i-2.log", b"")

    assert records.logging_nodes() == ["i-1", "i-2"]
    assert records.log("i-1") == "== epoch 9 ==\nnine, cut off\n== epoch 10 ==\nten\n"
    assert records.log("i-2") == "== epoch 9 ==\n"
    with pytest.raises(ObjectMissing):
        records.log("i-3")


def test_the_first_request_to_stop_counts(ledger: JobLedger) -> None:
    records = ledger.run("first", 1)
    asked = StopRequest(detail="by me", requested=now())

    records.request_stop(asked)
    records.request_stop(StopRequest(detail="by you", requested=now() + timedelta(seconds=1)))

    assert records.stop_request() == asked


def test_the_controller_that_announced_itself_last_is_the_one(ledger: JobLedger) -> None:
    records = ledger.run("first", 1)
    before = records.controller()
    for incarnation in ("a", "b"):
        records.announce(
            ControllerAddress(
                host="10.0.0.5",
                port=29401,
                rendezvous_port=29400,
                incarnation=incarnation,
                instance_id="i-1",
                announced=now(),
            )
        )

    found = records.controller()

    assert before is None
    assert found and found.incarnation == "b"


def test_the_first_outcome_counts(ledger: JobLedger) -> None:
    records = ledger.run("first", 1)

    records.conclude(Outcome(state="done", step=60, ended=now()))
    records.conclude(Outcome(state="failed", ended=now()))

    assert records.outcome() == Outcome(state="done", step=60, ended=records.outcome().ended)  # type: ignore[union-attr]


def test_what_the_ranks_leave_is_that_of_the_newest_epoch_and_may_say_more_than_we_read(ledger: JobLedger) -> None:
    records = ledger.run("first", 1)
    records.publish(1, "result.json", b'{"status": "stopped", "step": 12}')
    records.publish(2, "result.json", b'{"status": "stopped", "step": 24, "more": 1}')
    records.publish(3, "steps.jsonl", b"")

    assert records.result() == TrainerResult(status="stopped", step=24)


def test_a_record_of_another_version_is_refused(ledger: JobLedger, tmp_path: Path) -> None:
    open_store(str(tmp_path)).put(CURRENT_JOB_KEY, b'{"job": 1}')

    with pytest.raises(InvalidInput) as caught:
        ledger.current()

    assert str(caught.value) == (
        f"{tmp_path.as_uri()}/jobs/current.json: the object must be a JobSpec of this version, got job: input should "
        "be a valid string; use the version of trainfabric that wrote it, or remove the object"
    )


def test_steps_that_a_node_took_with_it_come_from_the_checkpoints_that_hold_them(ledger: JobLedger) -> None:
    ledger.claim(spec())
    checkpoints = ledger.checkpoints("first")
    _steps(ledger.run("first", 1), 1, 1)
    _steps(ledger.run("first", 1), 2, 5)
    checkpoints.claim("one")
    for first, last in ((1, 2), (3, 4)):
        lines = "".join(json.dumps({"step": n, "epoch_of": 99}) + "\n" for n in range(first, last + 1))
        checkpoints.keep_steps(last, "one", lines.encode())
        checkpoints.commit(manifest(last, "one", write_part(checkpoints, last, "one")))

    assert _of(ledger.steps("first")) == [(1, 1), (2, 99), (3, 99), (4, 99), (5, 2)]
