"""A run is over when its nodes are released, and not before."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.node.membership.fleets import FakeFleet
from tests.node.samples import spec
from trainfabric_node.jobs import JobLedger
from trainfabric_node.jobs.records import Outcome, now
from trainfabric_node.membership.ending import Ending
from trainfabric_node.store import open_store
from trainfabric_plan.errors import TrainfabricError


class Stage:
    """The end of a run; it leaves after so many pauses as a test says."""

    def __init__(self, directory: Path) -> None:
        self.ledger = JobLedger(open_store(str(directory / "bucket")))
        self.ledger.claim(spec())
        self.fleet = FakeFleet()
        self.errors: list[TrainfabricError] = []
        self.pauses: list[float] = []
        self.patience = 1000
        self.ending = Ending(self.ledger, spec(), self.fleet.release, self.errors.append, self.pause)

    def pause(self, seconds: float) -> bool:
        self.pauses.append(seconds)
        return len(self.pauses) < self.patience

    def end(self) -> bool:
        return self.ending.bring_about(Outcome(state="done", step=9, ended=now()))

    def is_over(self) -> bool:
        return self.ledger.run("first", 1).outcome() is not None or self.ledger.current() is None


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_nodes_are_released_however_long_that_takes(stage: Stage) -> None:
    stage.fleet.failures = 100

    assert stage.end()
    assert stage.fleet.asked == [("release",)]
    assert stage.ledger.run("first", 1).outcome() is not None
    assert stage.ledger.current() is None
    assert stage.pauses == [5, 10, 20, 40, *96 * [60]]
    assert [str(error) for error in stage.errors] == ["autoscaling does not answer"]


def test_a_run_whose_nodes_are_still_there_is_not_over_when_its_controller_leaves(stage: Stage) -> None:
    stage.fleet.failures, stage.patience = 100, 3

    assert not stage.end()
    assert not stage.is_over()


def test_nodes_of_the_next_run_are_not_released_when_somebody_else_has_ended_this_one(stage: Stage) -> None:
    stage.ledger.release(spec())
    stage.ledger.claim(spec(run=2, nonce="next"))

    assert stage.end()
    assert stage.fleet.asked == []
    holder = stage.ledger.current()
    assert holder is not None
    assert holder.run == 2
