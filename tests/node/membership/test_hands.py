"""Nodes are given back when that is still wanted, and when AWS answers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.node.membership.fleets import FakeFleet
from trainfabric_node.membership.actions import Replace
from trainfabric_node.membership.hands import Hands
from trainfabric_plan.errors import Unreachable

LOST = Replace(instance_id="i-3", detail="not heard for 60 s")


class Verdict:
    """As a test says, and what it is told."""

    def __init__(self) -> None:
        self.wanted = True
        self.told: list[Any] = []

    def is_unwanted(self, instance_id: str) -> bool:
        return self.wanted

    def is_gone(self, request: Replace, *, by_us: bool) -> None:
        self.told.append(("gone", request.instance_id, by_us))

    def is_kept(self, request: Replace) -> None:
        self.told.append(("kept", request.instance_id))


class Pair:
    def __init__(self) -> None:
        self.fleet, self.judge = FakeFleet(), Verdict()
        self.hands = Hands(lambda: self.fleet, self.judge)


@pytest.fixture
def pair() -> Pair:
    return Pair()


def test_a_node_is_given_back_once_and_another_asked_for(pair: Pair) -> None:
    pair.hands.replace(LOST)
    pair.hands.work()
    pair.hands.work()

    assert pair.fleet.asked == [("replace", "i-3")]
    assert pair.judge.told == [("gone", "i-3", True)]


def test_a_node_in_whose_place_no_other_is_wanted_makes_the_fleet_smaller(pair: Pair) -> None:
    pair.hands.replace(Replace(instance_id="i-9", detail="launched otherwise than the job", another=False))
    pair.hands.work()

    assert pair.fleet.asked == [("give_back", "i-9")]


def test_a_node_that_was_heard_while_aws_did_not_answer_is_not_given_back(pair: Pair) -> None:
    pair.fleet.failures = 1
    pair.hands.replace(LOST)
    with pytest.raises(Unreachable):
        pair.hands.work()
    assert pair.judge.told == [("kept", "i-3")]

    pair.judge.wanted = False
    pair.hands.work()
    pair.judge.wanted = True
    pair.hands.work()

    assert pair.fleet.asked == []
