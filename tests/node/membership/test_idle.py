"""A fleet without a job is released after a quarter of an hour."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.node.membership.fleets import FakeFleet
from tests.node.samples import spec
from trainfabric_node.jobs import JobLedger
from trainfabric_node.membership.idle import AGAIN_S, PATIENCE_S, Idle
from trainfabric_node.store import open_store


class Rest:
    """A controller that waits for a job, with a clock of its own."""

    def __init__(self, directory: Path) -> None:
        self.ledger = JobLedger(open_store(str(directory / "bucket")))
        self.fleet = FakeFleet("i-1", "i-2")
        self.now = 0.0
        self.idle = Idle(self.ledger, lambda: self.fleet, lambda job: self.fleet, lambda: self.now)

    def pass_s(self, seconds: float) -> None:
        end = self.now + seconds
        while self.now < end:
            self.now += 1
            self.idle.look(self.ledger.current())


@pytest.fixture
def rest(tmp_path: Path) -> Rest:
    return Rest(tmp_path)


def test_nodes_without_a_job_are_released(rest: Rest) -> None:
    rest.pass_s(PATIENCE_S)
    assert rest.fleet.asked == []

    rest.pass_s(2)

    assert rest.fleet.asked == [("release",)]


def test_a_fleet_without_nodes_is_left_alone(rest: Rest) -> None:
    rest.fleet.there = []
    rest.pass_s(2 * PATIENCE_S)

    assert rest.fleet.asked == []


def test_a_job_that_comes_in_time_keeps_its_nodes(rest: Rest) -> None:
    rest.pass_s(PATIENCE_S - 1)
    rest.ledger.claim(spec())
    rest.pass_s(2 * PATIENCE_S)
    rest.ledger.release(spec())
    rest.pass_s(PATIENCE_S - 1)

    assert rest.fleet.asked == []


def test_nodes_are_kept_while_nobody_knows_whether_there_is_a_job(rest: Rest) -> None:
    rest.ledger.claim(spec())
    for _ in range(2):
        rest.now += 2 * PATIENCE_S
        rest.idle.look(None)

    assert rest.fleet.asked == []


def test_a_fleet_that_does_not_answer_is_asked_again(rest: Rest) -> None:
    rest.fleet.failures = 1
    rest.pass_s(PATIENCE_S + 2)
    assert rest.fleet.asked == []

    rest.pass_s(AGAIN_S)

    assert rest.fleet.asked == [("release",)]


def test_a_job_that_is_started_while_nodes_are_released_gets_them_back(
    rest: Rest, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = rest.fleet.release

    def with_a_start() -> None:
        rest.ledger.claim(spec(3))
        release()

    monkeypatch.setattr(rest.fleet, "release", with_a_start)
    rest.pass_s(PATIENCE_S + 2)

    assert rest.fleet.asked == [("release",), ("restore", 3, 0)]
