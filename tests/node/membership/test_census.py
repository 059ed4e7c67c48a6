"""The fleet against what is heard, on the clock of a test."""

from __future__ import annotations

import threading

from tests.node.membership.field import Field, small_plan
from tests.node.membership.fleets import FakeFleet
from tests.node.membership.test_core_losses import training
from tests.node.membership.test_core_start import PINS
from tests.node.samples import spec
from trainfabric_node.membership.actions import Replace
from trainfabric_node.membership.census import Census
from trainfabric_node.membership.hands import Hands
from trainfabric_node.membership.protocol import Pins


class CoreJudge:
    """Asks the core of a field."""

    def __init__(self, field: Field) -> None:
        self.field = field

    def is_unwanted(self, instance_id: str) -> bool:
        return self.field.core.is_unwanted(instance_id)

    def is_gone(self, request: Replace, *, by_us: bool) -> None:
        self.field.core.given_back(request.instance_id)

    def is_kept(self, request: Replace) -> None:
        self.field.core.spare(request.instance_id, self.field.now)


class Count:
    """A census of a field."""

    def __init__(self, field: Field, *there: str) -> None:
        self.field, self.fleet = field, FakeFleet(*there)
        self.hands = Hands(lambda: self.fleet, CoreJudge(field))
        self.census = Census(field.job, "i-1", field.core, threading.Lock(), self.hands, lambda: self.field.now)

    def look(self) -> list[object]:
        """What is asked of the fleet, after a look now."""
        self.census.count()
        self.hands.work()
        return self.fleet.asked

    def later(self, seconds: float) -> list[object]:
        self.field.now += seconds
        return self.look()


def test_a_node_that_beats_and_is_never_warm_is_given_back() -> None:
    field = training()
    field.node(5).ready = False
    field.pass_s(0.2)
    count = Count(field, "i-1", "i-2", "i-3", "i-4", "i-5")

    assert count.look() == []
    assert count.later(1801) == [("replace", "i-5")]


def test_a_node_whose_launcher_starts_anew_is_not() -> None:
    field = training()
    field.node(4).ready = False
    field.pass_s(0.2)
    count = Count(field, "i-1", "i-2", "i-3", "i-4")
    count.look()

    assert count.later(1801) == []


def test_a_node_that_is_heard_before_it_was_given_back_stays() -> None:
    field = training()
    count = Count(field, "i-1", "i-2", "i-3", "i-4", "i-5")
    count.look()
    field.now += 1801
    count.census.count()
    field.node(5)
    field.pass_s(0.2)

    count.hands.work()

    assert count.fleet.asked == []


def test_a_fleet_that_has_become_smaller_is_asked_for_its_size() -> None:
    count = Count(training(), "i-1", "i-2", "i-3")

    assert count.look() == []
    assert count.later(61) == [("restore", 4, 0)]


def test_nothing_is_asked_for_once_the_run_is_over() -> None:
    field = training()
    count = Count(field, "i-1", "i-2", "i-9")
    count.look()
    field.stop()
    for node in field.nodes.values():
        node.says("resume", step=9)
    field.pass_s(0.5)
    assert field.conclusion is not None

    assert count.later(3600) == []


def test_nothing_is_asked_for_when_all_that_comes_up_is_wrong() -> None:
    field = Field(2, job=spec(2, plan=small_plan(2), pins=PINS))
    for number in range(1, 6):
        field.node(number).changes = {"pins": Pins(asset_key="code-2.zip")}
    field.pass_s(0.5)
    count = Count(field, "i-1")
    count.look()

    assert count.later(3600) == []
