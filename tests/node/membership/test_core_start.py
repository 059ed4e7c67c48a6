"""The first epoch of a run: all nodes or none."""

from __future__ import annotations

import pytest

from tests.node.membership.field import DEADLINE_S, Field, small_plan
from tests.node.membership.said import beat
from tests.node.samples import spec
from trainfabric_node.jobs.records import GroupPins, JobPins
from trainfabric_node.membership.actions import Conclude, Replace
from trainfabric_node.membership.protocol import Pins
from trainfabric_plan.contract import Event
from trainfabric_plan.errors import Refused

PINS = JobPins(
    asset_key="code-1.zip",
    groups={
        group: GroupPins(launch_template_id="lt-1", launch_template_version="1", image_id="ami-1")
        for group in ("a", "b")
    },
)
RIGHT = Pins(asset_key="code-1.zip", image_id="ami-1")


def test_training_begins_when_all_nodes_are_up_and_warm() -> None:
    field = Field(3)
    field.node(3).ready = False
    field.pass_s(60)
    assert field.epochs == []

    field.node(3).ready = True
    field.pass_s(0.2)

    assert field.epochs == [["i-1", "i-2", "i-3"]]
    assert [said["node"] for said in field.told(Event.NODE_JOINED)] == ["i-1", "i-2", "i-3"]


def test_a_node_that_joins_is_told_with_address_and_role() -> None:
    field = Field(1)
    field.pass_s(0.1)

    assert field.told() == [
        {"event": "node_joined", "node": "i-1", "address": "10.0.0.1", "role": "coordinator"},
    ]


def test_the_coordinator_is_rank_zero_and_the_others_follow_by_the_number_of_their_address() -> None:
    field = Field(3)
    field.node(1).changes = {"address": "10.0.0.99"}
    field.node(2).changes = {"address": "10.0.0.10"}
    field.node(3).changes = {"address": "10.0.0.9"}
    field.pass_s(0.2)

    assert field.epochs == [["i-1", "i-3", "i-2"]]


def test_nodes_beyond_the_plan_stay_warm_spares() -> None:
    field = Field(2)
    field.node(3), field.node(4)
    field.pass_s(0.2)

    assert field.epochs == [["i-1", "i-2"]]
    answer = field.say(field.node(3))
    assert (answer.epoch, answer.order) == (1, None)


def test_members_are_ordered_to_begin_until_they_have() -> None:
    field = Field(2)
    field.pass_s(0.2)
    member = field.node(2)
    begun, member.epoch = member.epoch, None
    again = field.say(member).order
    member.epoch = begun

    assert again is not None
    assert again.record == field.records[0]
    assert field.say(member).order is None


def test_a_member_whose_supervisor_has_started_anew_is_ordered_nothing() -> None:
    field = Field(2)
    field.pass_s(0.2)
    field.node(2).start_anew()

    assert field.say(field.node(2)).order is None


def test_before_the_first_epoch_its_number_is_zero() -> None:
    field = Field(2)
    field.node(2).ready = False
    field.pass_s(0.2)

    assert field.say(field.node(1)).epoch == 0


def test_a_part_of_a_fleet_is_given_back_when_the_deadline_has_passed() -> None:
    field = Field(4)
    field.node(3).is_silent = True
    field.pass_s(DEADLINE_S - 1)
    assert field.conclusion is None

    field.pass_s(2)

    assert field.conclusion == Conclude(state="failed", detail="only 3 of 4 nodes came up within 1800 s; released")
    assert field.say(field.node(1)).concluded


def test_a_run_that_is_stopped_before_it_began_is_over() -> None:
    field = Field(2)
    field.node(2).ready = False
    field.pass_s(1)
    field.stop()
    field.pass_s(0.1)

    assert field.conclusion == Conclude(state="stopped", detail="before training began, asked by trainfabric job stop")


@pytest.mark.parametrize(
    ("pins", "detail"),
    [
        (Pins(asset_key="code-2.zip", image_id="ami-1"), "training asset must be code-1.zip, got code-2.zip"),
        (Pins(asset_key="code-1.zip", image_id="ami-2"), "image must be ami-1, got ami-2"),
    ],
)
def test_a_node_with_other_code_or_another_image_is_refused_and_given_back(pins: Pins, detail: str) -> None:
    field = Field(2, job=spec(2, plan=small_plan(2), pins=PINS))
    field.node(1).changes = {"pins": RIGHT}
    field.node(2).changes = {"pins": pins}
    field.pass_s(1)

    assert field.epochs == []
    assert field.told(Event.NODE_REFUSED) == [{"event": "node_refused", "node": "i-2", "detail": detail}]
    assert field.replaced == [("i-2", f"launched otherwise than the job: {detail}")]


def test_nodes_that_come_up_wrong_again_and_again_are_given_back_but_not_replaced_without_an_end() -> None:
    field = Field(1, job=spec(1, plan=small_plan(1), pins=PINS))
    field.nodes[1].changes = {"pins": Pins(asset_key="code-2.zip")}
    for number in range(2, 8):
        field.node(number).changes = {"pins": Pins(asset_key="code-2.zip")}
    field.pass_s(1)

    asked = {action.instance_id: action.another for action in field.actions if isinstance(action, Replace)}
    assert asked == {"i-2": True, "i-3": True, "i-4": False, "i-5": False, "i-6": False, "i-7": False}
    assert field.core.is_refusing
    field.pass_s(DEADLINE_S)
    assert field.conclusion is not None
    assert field.conclusion.detail == (
        "only 0 of 1 nodes came up within 1800 s; refused: i-1, i-2, i-3, i-4, i-5, i-6, i-7; released"
    )


def test_warm_workers_do_not_begin_without_the_controllers_own_node() -> None:
    field = Field(4, job=spec(4, plan=small_plan(4)))
    field.node(1).is_silent = True
    field.node(5)
    field.pass_s(119)
    assert field.epochs == []

    field.node(1).is_silent = False
    field.pass_s(0.2)

    assert field.epochs == [["i-1", "i-2", "i-3", "i-4"]]


def test_workers_that_suffice_go_on_when_the_controllers_own_node_does_not_come() -> None:
    field = Field(4, job=spec(4, plan=small_plan(4)))
    field.node(1).is_silent = True
    field.node(5)
    took = field.until(lambda: field.records, within_s=130)

    assert took == pytest.approx(120, abs=0.5)
    assert field.epochs == [["i-2", "i-3", "i-4", "i-5"]]


@pytest.mark.parametrize("pins", [RIGHT, Pins(), Pins(asset_key="code-1.zip")])
def test_what_a_node_does_not_know_of_its_launch_is_not_held_against_it(pins: Pins) -> None:
    field = Field(1, job=spec(1, plan=small_plan(1), pins=PINS))
    field.node(1).changes = {"pins": pins}
    field.pass_s(0.2)

    assert field.epochs == [["i-1"]]


def test_a_beat_of_another_run_is_refused() -> None:
    field = Field(1)

    with pytest.raises(Refused) as refused:
        field.core.hear(beat(token="another"), field.now)

    assert str(refused.value) == (
        "controller: token must be that of job first, got another; read jobs/current.json again"
    )


def test_a_beat_that_comes_late_is_not_believed() -> None:
    field = Field(2)
    old = field.node(2).beat()
    field.pass_s(0.2)
    field.node(2).says("running", step=7)
    field.pass_s(0.2)

    assert field.core.hear(old, field.now) is False
    assert field.core.roster.get("i-2").beat.epoch.step == 7  # type: ignore[union-attr]


def test_a_supervisor_that_another_has_replaced_on_its_node_is_not_believed() -> None:
    field = Field(1)
    old = field.node(1).beat()
    field.core.hear(old, field.now)
    field.node(1).start_anew()
    field.pass_s(0.2)

    assert field.core.hear(old.model_copy(update={"sequence": 99}), field.now) is False
    assert field.records[0].nodes[0].incarnation == "s-1.1"
