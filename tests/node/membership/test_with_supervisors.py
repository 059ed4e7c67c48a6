"""The controller with supervisors and launchers as they are; their ranks only count."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.node.membership.field import small_plan
from tests.node.membership.fleets import FakeFleet
from tests.node.membership.test_session import Nowhere
from tests.node.supervisor.lab import Lab
from tests.node.supervisor.processes import until
from trainfabric_node.jobs.records import JobSpec, StopRequest, now
from trainfabric_node.membership.controller import Controller
from trainfabric_node.membership.protocol import EpochRecord
from trainfabric_node.membership.session import Station
from trainfabric_node.membership.timing import FAST
from trainfabric_plan.policy import FaultTolerance

NAMES = ("i-1", "i-2", "i-3")


class Trial:
    """A controller and three nodes."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.fleet = FakeFleet()
        lab.timing = {}
        policy = FaultTolerance(wait_for_replacement_s=0)
        self.job: JobSpec = lab.start(3, plan=small_plan(3), policy=policy)
        station = Station(
            instance_id="i-1",
            address="127.0.0.1",
            control_port=0,
            rendezvous_port=29400,
            ledger=lab.ledger,
            fleet=lambda job: self.fleet,
            deployed=lambda: self.fleet,
            metrics=Nowhere(),
            timings={"production": FAST},
            poll_s=0.1,
        )
        self.controller = Controller(station)
        self.thread = threading.Thread(target=self.controller.serve)
        self.thread.start()
        for name in NAMES:
            lab.node(name, "coordinator" if name == "i-1" else "worker")

    def close(self) -> None:
        self.controller.leave()
        self.thread.join(30)

    def records(self) -> list[EpochRecord]:
        store = self.lab.ledger.store
        return [EpochRecord.model_validate_json(store.get(key)) for key in store.list("jobs/first/epochs/")]

    def await_steps(self, epoch: int, *names: str) -> None:
        """Until every rank of these members has taken a step in an epoch, and no other is there."""
        until(lambda: len(self.records()) >= epoch, 30)
        for node, name in enumerate(names):
            for rank in (2 * node, 2 * node + 1):
                until(lambda at=name, number=rank: self.lab.nodes[at].step(number, epoch) > 0, 30)  # type: ignore[misc]

    def events(self, *kinds: str) -> list[dict[str, Any]]:
        events = self.lab.ledger.run("first", 1).events()
        return [event for event in events if event["event"] in kinds]


@pytest.fixture
def trial(lab: Lab) -> Iterator[Trial]:
    made = Trial(lab)
    try:
        made.await_steps(1, *NAMES)
        yield made
    finally:
        made.close()


def test_a_rank_that_is_killed_is_back_on_the_same_nodes_within_seconds(trial: Trial) -> None:
    begun = time.monotonic()
    signal_to(trial.lab.nodes["i-2"].rank(2), signal.SIGKILL)
    trial.await_steps(2, *NAMES)
    took = time.monotonic() - begun

    assert took < 5
    assert [node.instance_id for node in trial.records()[1].nodes] == list(NAMES)
    assert "i-2: rank 2" in trial.records()[1].detail


def test_a_supervisor_that_is_killed_and_started_again_is_back_within_seconds(trial: Trial) -> None:
    node = trial.lab.nodes["i-2"]
    node.supervisor.kill()
    node.supervisor.wait()
    node.supervisor = trial.lab.supervise("i-2")
    until(lambda: len(trial.records()[-1].nodes) == 3 and len(trial.records()) > 1, 30)
    trial.await_steps(len(trial.records()), *NAMES)

    assert trial.fleet.asked[0][0] == "protect"
    assert [asked for asked in trial.fleet.asked if asked[0] == "replace"] == []


def test_a_node_that_is_gone_is_left_behind_and_given_back(trial: Trial) -> None:
    node = trial.lab.nodes["i-3"]
    begun = time.monotonic()
    for process in (node.supervisor, node.launcher):
        process.kill()
        process.wait()
    trial.await_steps(2, "i-1", "i-2")
    took = time.monotonic() - begun

    assert took < 6
    until(lambda: ("replace", "i-3") in trial.fleet.asked)


def test_a_spot_node_leaves_in_order(trial: Trial) -> None:
    (trial.lab.folder / "notice-i-3").write_text("terminate at noon")
    trial.await_steps(2, "i-1", "i-2")

    assert [event["state"] for event in trial.events("epoch_ended")] == ["resume"]
    until(lambda: ("replace", "i-3") in trial.fleet.asked)


def test_a_frozen_node_is_left_behind_and_takes_no_step_when_it_is_back(trial: Trial) -> None:
    node = trial.lab.nodes["i-3"]
    frozen = [node.launcher.pid, node.supervisor.pid, node.rank(4), node.rank(5)]
    for process in frozen:
        signal_to(process, signal.SIGSTOP)
    trial.await_steps(2, "i-1", "i-2")
    until(lambda: ("replace", "i-3") in trial.fleet.asked)
    before = node.step(4)
    for process in reversed(frozen):
        signal_to(process, signal.SIGCONT)
    until(lambda: "goes on without this node" in node.printed())

    assert node.step(4) <= before + 5
    assert len(trial.records()) == 2


def test_a_job_that_is_stopped_leaves_nothing_behind(trial: Trial) -> None:
    trial.lab.ledger.run("first", 1).request_stop(StopRequest(detail="by trainfabric job stop", requested=now()))
    until(lambda: trial.lab.ledger.current() is None, 30)
    until(lambda: trial.lab.ranks() == [])

    outcome = trial.lab.ledger.run("first", 1).outcome()
    assert outcome is not None
    assert (outcome.state, outcome.detail) == ("stopped", "asked by trainfabric job stop")
    assert trial.lab.ledger.run("first", 1).logging_nodes() == list(NAMES)


def signal_to(process: int, number: signal.Signals) -> None:
    os.kill(process, number)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    made = Lab(tmp_path)
    try:
        yield made
    finally:
        made.close()
