"""Which silent nodes are given back, and which are not."""

from __future__ import annotations

from tests.node.membership.test_core_losses import training
from trainfabric_node.membership.timing import FAST
from trainfabric_plan.contract import Event


def test_a_lost_node_that_still_says_nothing_has_not_joined() -> None:
    field = training()
    field.node(3).is_silent = True
    field.pass_s(6)
    assert [said["node"] for said in field.told(Event.NODE_JOINED)] == ["i-1", "i-2", "i-3", "i-4"]

    field.node(3).is_silent = False
    field.pass_s(0.2)

    assert [said["node"] for said in field.told(Event.NODE_JOINED)][4:] == ["i-3"]


def test_a_controller_that_hears_nobody_but_its_own_node_gives_none_back() -> None:
    field = training()
    for number in (2, 3, 4):
        field.node(number).is_silent = True
    field.pass_s(300)
    assert field.replaced == []

    for number in (2, 3, 4):
        field.node(number).is_silent = False
    field.pass_s(0.5)
    field.node(1).says("running", step=7)
    field.until(lambda: field.told(Event.DRAIN))
    field.node(1).says("resume", step=8)
    field.until(lambda: len(field.epochs[-1]) == 4)

    assert field.replaced == []


def test_nodes_that_are_heard_again_one_after_the_other_are_not_given_back() -> None:
    field = training()
    for number in (2, 3, 4):
        field.node(number).is_silent = True
    field.pass_s(60)
    for number in (2, 3, 4):
        field.node(number).is_silent = False
        field.pass_s(3)

    assert field.replaced == []


def test_nodes_are_given_back_when_half_of_the_others_are_heard() -> None:
    field = training(8)
    for number in (2, 3, 4):
        field.node(number).is_silent = True
    field.pass_s(30)

    assert sorted(name for name, _ in field.replaced) == ["i-2", "i-3", "i-4"]


def test_nodes_that_are_gone_do_not_count_as_silent_for_ever() -> None:
    field = training()
    for number in (3, 4):
        field.node(number).is_silent = True
        field.pass_s(30)
    assert [name for name, _ in field.replaced] == ["i-3", "i-4"]


def test_a_node_that_is_heard_before_it_was_given_back_stays() -> None:
    field = training()
    field.fleet_answers = False
    field.node(3).is_silent = True
    field.pass_s(30)
    assert [name for name, _ in field.replaced] == ["i-3"]
    assert field.core.is_unwanted("i-3")

    field.node(3).is_silent = False
    field.pass_s(0.2)

    assert not field.core.is_unwanted("i-3")
    assert "i-3" in [node.beat.instance_id for node in field.core.roster.candidates(field.now)]


def test_a_node_that_could_not_be_given_back_is_asked_for_again_when_it_stays_silent() -> None:
    field = training()
    field.fleet_answers = False
    field.node(3).is_silent = True
    field.pass_s(30)
    field.core.spare("i-3", field.now)
    assert not field.core.is_unwanted("i-3")
    field.pass_s(FAST.give_up_s - 0.5)
    assert len(field.replaced) == 1

    field.pass_s(1)

    assert [name for name, _ in field.replaced] == ["i-3", "i-3"]
