from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from tests.node.jobs.lab import ALL, NOTHING, controller, coordinator, node, start, wanted
from trainfabric_node.jobs import Fleet, JobControl, JobLedger, JobState, NodeState, Outcome, RunRecords
from trainfabric_node.jobs import control as control_module
from trainfabric_node.jobs.records import now
from trainfabric_plan.contract import Role
from trainfabric_plan.errors import NotFound, Unreachable


@pytest.fixture
def training(lab: JobControl, fleet: Fleet, records: RunRecords) -> str:
    """A job whose controller has announced itself and whose coordinator trains; that node's instance id."""
    start(lab)
    name = coordinator(fleet)
    records.announce(controller(name))
    records.report(node(name, NodeState.RUNNING))
    records.publish(1, "steps.jsonl", b'{"step": 1, "loss": 9.0, "tokens": 8, "seconds": 1.0}\n')
    return name


def when_asked(records: RunRecords, act: Callable[[], None]) -> threading.Thread:
    """Plays the controller: acts once the run is to stop."""

    def play() -> None:
        while not records.stop_request():
            tick.wait(0.02)
        act()

    tick = threading.Event()
    thread = threading.Thread(target=play)
    thread.start()
    return thread


def lose(fleet: Fleet, name: str) -> None:
    assert fleet.replace(name)


def test_stopping_without_waiting_only_asks(training: str, lab: JobControl, ledger: JobLedger) -> None:
    status = lab.stop()

    assert status.state is JobState.STOPPING
    assert status.summary == "stopping at step 1 of 40: all ranks save, then the nodes are released"
    assert ledger.current() == ledger.job("first")
    assert wanted() == ALL


def test_stopping_waits_for_the_controller_to_end_the_run(
    training: str, lab: JobControl, ledger: JobLedger, records: RunRecords
) -> None:
    outcome = Outcome(state="stopped", step=24, ended=now())
    thread = when_asked(records, lambda: records.conclude(outcome))

    status = lab.stop(wait_s=20)
    thread.join()

    assert status.state is JobState.STOPPED
    assert records.outcome() == outcome
    assert ledger.current() is None
    assert wanted() == NOTHING


def test_a_controller_that_gives_its_own_node_back_first_still_says_how_the_run_ended(
    training: str, lab: JobControl, fleet: Fleet, records: RunRecords, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = Outcome(state="stopped", step=24, ended=now())
    release, seen = Fleet.release, threading.Event()

    def release_and_tell(of: Fleet) -> None:
        release(of)
        seen.set()

    def end() -> None:
        release(fleet)
        assert seen.wait(10)  # the command has seen that the node is gone, before the outcome is written
        records.conclude(outcome)

    monkeypatch.setattr(Fleet, "release", release_and_tell)
    thread = when_asked(records, end)
    lab.stop(wait_s=20)
    thread.join()

    assert records.outcome() == outcome


@pytest.mark.parametrize("wait_s", [0, 20])
def test_stopping_a_job_whose_nodes_have_not_come_up_releases_them_at_once(
    lab: JobControl, ledger: JobLedger, wait_s: float
) -> None:
    start(lab)

    status = lab.stop(wait_s=wait_s)

    assert (status.state, status.summary) == (
        JobState.STOPPED,
        "stopped: before training began, asked by trainfabric job stop",
    )
    assert wanted() == NOTHING
    assert ledger.current() is None


@pytest.mark.parametrize("wait_s", [0, 20])
def test_stopping_a_job_whose_coordinator_is_gone_releases_the_nodes_at_once(
    training: str,
    lab: JobControl,
    fleet: Fleet,
    ledger: JobLedger,
    monkeypatch: pytest.MonkeyPatch,
    wait_s: float,
) -> None:
    monkeypatch.setattr(control_module, "_LAST_WORD_S", 0.1)
    fleet.replace(training)

    status = lab.stop(wait_s=wait_s)

    assert (status.state, status.summary) == (
        JobState.STOPPED,
        "stopped at step 1 of 40: asked by trainfabric job stop, "
        "with no coordinator that could have saved a checkpoint",
    )
    assert wanted() == NOTHING
    assert ledger.current() is None


def test_a_coordinator_that_is_lost_while_it_stops_is_not_waited_for(
    training: str, lab: JobControl, fleet: Fleet, records: RunRecords, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control_module, "_LAST_WORD_S", 0.1)
    thread = when_asked(records, lambda: lose(fleet, training))

    status = lab.stop(wait_s=60)
    thread.join()

    assert status.state is JobState.STOPPED
    assert wanted() == NOTHING


def test_a_controller_that_does_not_end_the_run_keeps_the_job_until_it_is_forced(
    training: str, lab: JobControl, ledger: JobLedger, records: RunRecords
) -> None:
    records.report(node("i-lost", NodeState.LOST, Role.WORKER))

    with pytest.raises(Unreachable) as caught:
        lab.stop(wait_s=0.1)
    held = ledger.current()
    status = lab.stop(force=True)

    assert str(caught.value) == (
        f"environment lab: the run must end within 0.1 s, got none while there are {training} (running); "
        "wait longer, or stop with force, which loses what was trained since the last checkpoint"
    )
    assert held == ledger.job("first")
    assert (status.state, status.summary) == (JobState.STOPPED, "stopped at step 1 of 40: nodes released by force")
    assert wanted() == NOTHING


def test_there_is_nothing_to_stop_when_no_job_runs(lab: JobControl) -> None:
    with pytest.raises(NotFound) as caught:
        lab.stop(wait_s=1)

    assert str(caught.value) == (
        "environment lab: a job must be running to be stopped, got none; trainfabric job status tells more"
    )
