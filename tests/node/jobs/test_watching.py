"""The status and the logs as `JobControl` gives them, with what the fleet knows."""

from __future__ import annotations

import pytest

from tests.node.jobs.lab import controller, coordinator, node, start
from trainfabric_node.jobs import Fleet, JobControl, JobLedger, JobState, NodeState, Outcome, RunRecords
from trainfabric_node.jobs.records import now
from trainfabric_plan.errors import NotFound, Unreachable


def test_before_the_first_job_there_is_a_status_too(lab: JobControl) -> None:
    status = lab.status()

    assert (status.state, status.summary, status.job) == (JobState.NONE, "no job has been started", None)


def test_the_status_can_be_asked_when_the_job_has_ended(lab: JobControl, ledger: JobLedger) -> None:
    started = start(lab)
    ledger.run("first", 1).conclude(Outcome(state="done", step=60, ended=now()))
    ledger.release(started)

    assert lab.status().state is lab.status("first").state is JobState.DONE


def test_a_lost_coordinator_is_told_with_what_becomes_of_it(lab: JobControl, fleet: Fleet, records: RunRecords) -> None:
    start(lab)
    lost = coordinator(fleet)
    records.announce(controller(lost))
    records.report(node(lost, NodeState.RUNNING))
    before = lab.status()

    fleet.replace(lost)

    assert before.state is JobState.STARTING
    status = lab.status()
    assert (status.state, status.summary) == (
        JobState.WAITING,
        f"waiting: the coordinator {lost} is gone; its replacement {coordinator(fleet)} is coming up (InService)",
    )


def test_a_coordinator_that_is_not_launched_again_yet_is_told(
    lab: JobControl, fleet: Fleet, records: RunRecords
) -> None:
    start(lab)
    records.announce(controller(coordinator(fleet)))
    lost = coordinator(fleet)

    fleet.release()

    assert lab.status().summary == (f"waiting: the coordinator {lost} is gone, and its replacement is not launched yet")


def test_the_status_does_not_depend_on_what_the_fleet_says(
    lab: JobControl, fleet: Fleet, records: RunRecords, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(lab)
    records.announce(controller("i-gone"))

    def refuse(_: Fleet) -> None:
        raise Unreachable("no permission")

    monkeypatch.setattr(Fleet, "members", refuse)

    assert lab.status().state is JobState.STARTING


def test_logs_of_all_nodes_come_under_their_names_and_epochs(lab: JobControl, records: RunRecords) -> None:
    start(lab)
    for name, epoch in (("i-1", 1), ("i-2", 1), ("i-1", 2)):
        records.publish(epoch, f"logs/{name}.log", f"hello from {name} in {epoch}".encode())

    assert lab.logs() == (
        "==> i-1 <==\n== epoch 1 ==\nhello from i-1 in 1\n== epoch 2 ==\nhello from i-1 in 2\n\n"
        "==> i-2 <==\n== epoch 1 ==\nhello from i-2 in 1\n"
    )
    assert lab.logs("first", "i-2") == "== epoch 1 ==\nhello from i-2 in 1\n"
    with pytest.raises(NotFound) as caught:
        lab.logs(node="i-3")
    assert str(caught.value) == ("environment lab: node must have published a log, got i-3; those that have: i-1, i-2")
