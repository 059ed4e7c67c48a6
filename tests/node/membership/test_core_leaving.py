"""What follows when nodes, EC2 or somebody want the ranks to leave in order."""

from __future__ import annotations

import pytest

from tests.node.membership.field import Field, order_of
from tests.node.membership.said import notice
from tests.node.membership.test_core_losses import second, training
from trainfabric_node.membership.actions import Conclude
from trainfabric_node.membership.timing import FAST
from trainfabric_node.membership.watch import Past, told_nodes
from trainfabric_plan.contract import Event


def leave(field: Field, state: str = "resume", step: int = 9, but: tuple[int, ...] = ()) -> None:
    """All members do as they are asked."""
    members = {node.instance_id for node in field.records[-1].nodes}
    for node in field.nodes.values():
        if node.name in members and node.number not in but:
            node.says(state, step)


def drained(field: Field, at: str) -> bool:
    """Whether all members have been asked."""
    number = field.records[-1].number
    members = [node.instance_id for node in field.records[-1].nodes]
    asked = [node.answer.drain for node in field.nodes.values() if node.name in members and node.answer]
    return all(drain is not None and (drain.epoch, drain.at) == (number, at) for drain in asked)


def test_a_spot_notice_lets_all_ranks_save_and_leave_and_the_node_go() -> None:
    field = training()
    field.node(3).notice = notice("spot", "terminate at noon")
    field.until(lambda: drained(field, "now"), within_s=1)
    leave(field)
    took = field.until(second(field))

    assert took <= 3 * FAST.beat_s
    assert field.told(Event.SPOT_NOTICE, Event.DRAIN, Event.EPOCH_ENDED, Event.NODE_LOST) == [
        {"event": "spot_notice", "node": "i-3", "detail": "terminate at noon"},
        {"event": "drain", "epoch": 1, "at": "now", "node": "i-3", "detail": "i-3: terminate at noon"},
        {"event": "epoch_ended", "epoch": 1, "state": "resume", "detail": "i-3: terminate at noon"},
        {"event": "node_lost", "node": "i-3", "detail": "it leaves: terminate at noon"},
    ]
    assert field.replaced == [("i-3", "terminate at noon")]
    assert field.epochs[1] == ["i-1", "i-2"]
    assert field.records[1].detail == "epoch 1 left in order: i-3: terminate at noon"


def test_a_node_with_a_notice_is_not_given_back_before_its_ranks_have_left() -> None:
    field = training()
    field.node(3).notice = notice()
    field.pass_s(1)
    leave(field, but=(2,))
    field.pass_s(5)

    assert field.replaced == []


def test_a_supervisor_that_is_told_to_leave_leaves_as_for_a_spot_notice() -> None:
    field = training()
    field.node(3).notice = notice("leave", "the supervisor was told to leave")
    field.until(lambda: drained(field, "now"), within_s=1)
    leave(field)
    field.until(second(field))

    assert field.told(Event.SPOT_NOTICE) == []
    assert field.told(Event.DRAIN)[0]["detail"] == "i-3: the supervisor was told to leave"
    assert field.replaced == [("i-3", "the supervisor was told to leave")]


def test_a_spare_with_a_notice_is_given_back_at_once_and_nobody_leaves() -> None:
    field = training()
    field.node(5)
    field.pass_s(1)
    field.node(5).notice = notice()
    field.pass_s(1)

    assert field.replaced == [("i-5", "terminate at noon")]
    assert field.told(Event.DRAIN) == []


def test_a_spare_takes_the_place_of_a_node_with_a_notice() -> None:
    field = training(wait_s=300)
    field.node(5)
    field.pass_s(1)
    field.node(3).notice = notice()
    field.until(lambda: drained(field, "now"), within_s=1)
    leave(field)
    field.until(second(field), within_s=1)

    assert field.epochs[1] == ["i-1", "i-2", "i-4", "i-5"]


def test_ranks_that_do_not_leave_in_time_have_failed() -> None:
    field = training()
    field.node(3).notice = notice()
    field.until(lambda: field.told(Event.EPOCH_ENDED))

    assert field.told(Event.EPOCH_ENDED) == [
        {
            "event": "epoch_ended",
            "epoch": 1,
            "state": "failed",
            "detail": "not all ranks left within 60 s of being asked",
        }
    ]
    assert field.replaced == [("i-3", "terminate at noon")]


def test_a_node_that_is_gone_before_it_could_leave_is_lost() -> None:
    field = training()
    field.node(3).notice = notice()
    field.pass_s(0.3)
    field.node(3).is_silent = True
    field.until(second(field))

    assert field.told(Event.EPOCH_ENDED)[0]["state"] == "failed"


def test_when_one_has_left_in_order_the_checkpoint_is_there_whatever_becomes_of_the_others() -> None:
    field = training()
    field.node(3).notice = notice()
    field.until(lambda: drained(field, "now"), within_s=1)
    leave(field, but=(3,))
    field.node(3).is_silent = True
    field.until(second(field))

    assert field.told(Event.EPOCH_ENDED)[0]["state"] == "resume"


def test_a_mere_recommendation_moves_nobody() -> None:
    field = training()
    field.node(3).notice = notice("rebalance", "recommended at noon")
    field.pass_s(120)

    assert field.told(Event.REBALANCE) == [{"event": "rebalance", "node": "i-3", "detail": "recommended at noon"}]
    assert field.told(Event.DRAIN) == []
    assert field.replaced == []


def test_a_spare_takes_the_place_of_a_node_at_risk_at_the_next_checkpoint() -> None:
    field = training()
    field.node(5)
    field.pass_s(1)
    field.node(3).notice = notice("rebalance", "recommended at noon")
    field.until(lambda: drained(field, "checkpoint"), within_s=1)
    leave(field, step=10)
    field.until(second(field), within_s=1)
    field.pass_s(60)

    assert field.told(Event.DRAIN)[0]["detail"] == ("i-3: EC2 recommends to do without it, and another node is there")
    assert field.epochs[1:] == [["i-1", "i-2", "i-4", "i-5"]]
    assert field.replaced == []


def test_what_an_earlier_controller_has_told_of_a_node_is_not_told_again() -> None:
    field = training()
    field.node(3).notice = notice("rebalance", "recommended at noon")
    field.pass_s(1)
    told = told_nodes(field.told())
    assert told == {(Event.REBALANCE, "i-3")}

    field.begin(order_of(field.records[0]), past=Past(up=frozenset(field.epochs[0]), told=told), incarnation="c-2")
    field.pass_s(5)
    field.node(3).notice = notice()
    field.pass_s(0.5)

    assert len(field.told(Event.REBALANCE)) == 1
    assert len(field.told(Event.SPOT_NOTICE)) == 1


def test_a_node_at_risk_is_told_of_once_even_when_the_notice_follows() -> None:
    field = training()
    field.node(3).notice = notice("rebalance")
    field.pass_s(1)
    field.node(3).notice = notice("spot")
    field.pass_s(1)

    assert len(field.told(Event.REBALANCE)) == 1
    assert len(field.told(Event.SPOT_NOTICE)) == 1


def test_a_replacement_is_taken_in_at_a_checkpoint_when_fewer_nodes_train() -> None:
    field = training()
    field.node(3).is_silent = True
    field.until(second(field))
    field.pass_s(20)
    assert [said["at"] for said in field.told(Event.DRAIN)] == []

    field.node(5)
    for number in (1, 2):
        field.node(number).says("running", step=7)
    field.until(lambda: drained(field, "checkpoint"), within_s=1)
    leave(field, step=10)
    field.until(lambda: len(field.records) == 3, within_s=1)

    larger, smaller = field.job.plan.layout, field.records[1].plan.layout
    detail = f"4 nodes are there, enough for {larger} in place of {smaller}"
    assert field.told(Event.DRAIN) == [{"event": "drain", "epoch": 2, "at": "checkpoint", "detail": detail}]
    assert field.epochs[2] == ["i-1", "i-2", "i-4", "i-5"]
    assert field.records[2].plan == field.job.plan


def test_a_replacement_that_makes_no_larger_layout_is_not_taken_in() -> None:
    field = training()
    for number in (2, 3, 4):
        field.node(number).is_silent = True
    field.until(second(field))
    assert [record.plan.nodes for record in field.records] == [4, 1]
    field.node(5)
    field.until(lambda: drained(field, "checkpoint"), within_s=1)
    leave(field, step=10)
    field.until(lambda: len(field.records) == 3)
    field.node(6)
    field.pass_s(60)

    assert [record.plan.nodes for record in field.records] == [4, 1, 2]


def test_ranks_that_wait_for_a_checkpoint_leave_at_once_when_a_notice_comes() -> None:
    field = training()
    field.node(3).is_silent = True
    field.until(second(field))
    field.node(5)
    for number in (1, 2):
        field.node(number).says("running", step=7)
    field.until(lambda: drained(field, "checkpoint"), within_s=1)
    field.node(2).notice = notice()
    field.until(lambda: drained(field, "now"), within_s=1)

    assert [said["at"] for said in field.told(Event.DRAIN)] == ["checkpoint", "now"]


def test_no_bound_is_set_on_the_way_to_a_checkpoint() -> None:
    field = training()
    field.node(5)
    field.node(3).notice = notice("rebalance")
    field.until(lambda: drained(field, "checkpoint"), within_s=1)
    field.pass_s(10 * FAST.drain_s)

    assert field.told(Event.EPOCH_ENDED) == []


def test_a_run_that_is_stopped_saves_and_is_over() -> None:
    field = training()
    field.stop()
    field.until(lambda: drained(field, "now"), within_s=1)
    assert field.conclusion is None
    leave(field)
    field.pass_s(0.2)

    assert field.conclusion == Conclude(state="stopped", detail="asked by trainfabric job stop")
    assert field.say(field.node(2)).concluded


def test_a_run_that_is_stopped_while_its_epoch_fails_is_over_when_that_has_ended() -> None:
    field = training()
    field.stop()
    field.pass_s(0.2)
    field.node(2).says("failed", detail="rank 2: killed")
    field.pass_s(1)

    assert field.conclusion == Conclude(
        state="stopped", detail="asked by trainfabric job stop; the last epoch failed: i-2: rank 2: killed"
    )


def test_a_run_that_is_stopped_while_it_waits_for_a_node_is_over_at_once() -> None:
    field = training(wait_s=300)
    field.node(3).is_silent = True
    field.until(lambda: field.told(Event.WAIT))
    field.stop()
    field.pass_s(0.1)

    assert field.conclusion == Conclude(state="stopped", detail="asked by trainfabric job stop")


def test_a_run_whose_steps_are_all_done_is_over() -> None:
    field = training()
    leave(field, "done", step=40)
    field.pass_s(0.2)

    assert field.told(Event.EPOCH_ENDED)[0]["state"] == "done"
    assert field.conclusion == Conclude(state="done")


def test_a_run_is_done_though_a_node_is_lost_after_its_last_step() -> None:
    field = training()
    leave(field, "done", step=40, but=(4,))
    field.node(4).is_silent = True
    field.until(lambda: field.conclusion)

    assert field.conclusion == Conclude(state="done")


def test_after_the_end_nothing_is_decided_any_more() -> None:
    field = training()
    leave(field, "done", step=40)
    field.pass_s(1)
    told = len(field.actions)
    for node in field.nodes.values():
        node.is_silent = True
    field.pass_s(60)

    assert field.actions[told:] == []
    assert field.core.quiet(field.now)


@pytest.mark.parametrize("at", ["now", "checkpoint"])
def test_a_later_controller_asks_again_what_its_predecessor_asked(at: str) -> None:
    field = training()
    field.node(5)
    field.node(3).notice = notice("spot" if at == "now" else "rebalance")
    field.until(lambda: drained(field, at), within_s=1)
    field.begin(order_of(field.records[0]), incarnation="c-2")
    field.pass_s(3)

    assert drained(field, at)
