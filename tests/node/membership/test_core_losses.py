"""What follows when nodes, supervisors and ranks are lost."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.node.membership.field import Field, Simulated, order_of, small_plan
from tests.node.samples import spec
from trainfabric_node.membership.protocol import Stall
from trainfabric_node.membership.timing import FAST, PRODUCTION, Timing
from trainfabric_node.membership.watch import Past
from trainfabric_plan.contract import Event
from trainfabric_plan.policy import FaultTolerance


def training(nodes: int = 4, timing: Timing = FAST, wait_s: int = 0, minimum: int | None = None) -> Field:
    policy = FaultTolerance(wait_for_replacement_s=wait_s, minimum_nodes=minimum)
    field = Field(nodes, timing, job=spec(nodes, plan=small_plan(nodes), policy=policy))
    field.until(lambda: field.records)
    for _ in range(2):
        field.pass_s(timing.beat_s)
    for node in field.nodes.values():
        node.says("running", step=5)
    field.pass_s(2 * timing.beat_s)
    return field


def second(field: Field) -> Callable[[], object]:
    return lambda: len(field.records) > 1


def test_an_epoch_goes_on_while_all_members_are_heard() -> None:
    field = training().pass_s(600)

    assert field.epochs == [["i-1", "i-2", "i-3", "i-4"]]
    assert field.told(Event.EPOCH_ENDED, Event.DRAIN, Event.NODE_LOST) == []


@pytest.mark.parametrize(("stall_s", "timing"), [(10.0, PRODUCTION), (15.0, PRODUCTION), (1.0, FAST)])
def test_a_stall_is_no_loss(stall_s: float, timing: Timing) -> None:
    field = training(timing=timing)
    field.node(3).is_silent = True
    field.pass_s(stall_s)
    field.node(3).is_silent = False
    field.pass_s(60)

    assert len(field.epochs) == 1
    assert field.told(Event.EPOCH_ENDED, Event.NODE_LOST) == []


def test_a_stall_of_ten_seconds_of_all_nodes_is_no_loss_in_the_production_profile() -> None:
    field = training(timing=PRODUCTION)
    for node in field.nodes.values():
        node.is_silent = True
    field.pass_s(10)
    for node in field.nodes.values():
        node.is_silent = False
    field.pass_s(60)

    assert len(field.epochs) == 1
    assert field.told(Event.EPOCH_ENDED, Event.NODE_LOST) == []


@pytest.mark.parametrize("timing", [PRODUCTION, FAST])
def test_a_controller_that_stood_still_itself_blames_nobody(timing: Timing) -> None:
    field = training(timing=timing)
    field.now += 300
    assert field.core.tick(field.now) == []
    field.pass_s(60)

    assert len(field.epochs) == 1


@pytest.mark.parametrize(("timing", "within_s"), [(FAST, 1.9), (PRODUCTION, 22.0)])
def test_a_node_that_falls_silent_is_lost_and_the_others_go_on(timing: Timing, within_s: float) -> None:
    field = training(timing=timing)
    field.node(3).is_silent = True
    took = field.until(second(field))

    assert timing.dead_s - timing.beat_s <= took <= within_s
    assert field.epochs[1] == ["i-1", "i-2"]
    assert field.told(Event.NODE_LOST) == [
        {"event": "node_lost", "node": "i-3", "detail": f"not heard for {timing.dead_s:g} s"}
    ]
    assert field.told(Event.EPOCH_ENDED) == [
        {"event": "epoch_ended", "epoch": 1, "state": "failed", "detail": "i-3: it has gone silent"}
    ]
    assert field.records[1].detail == "epoch 1 failed: i-3: it has gone silent"


def test_the_batch_stays_when_fewer_nodes_go_on() -> None:
    field = training()
    field.node(3).is_silent = True
    field.until(second(field))
    plans = [record.plan for record in field.records]

    assert [plan.layout.data for plan in plans] == [4, 2]
    assert [plan.micro_batch * plan.layout.data * plan.accumulation for plan in plans] == [16 * 2, 16]
    assert [plan.global_batch for plan in plans] == [16, 16]


def test_the_ranks_that_fail_because_of_a_lost_node_do_not_make_an_epoch_with_it() -> None:
    field = training()
    field.node(3).is_silent = True
    field.pass_s(0.1)
    for number in (1, 2, 4):
        field.node(number).says("failed", step=5, of_others=True, detail="connection reset by peer")
    took = field.until(second(field))

    assert took <= 1.9
    assert len(field.epochs) == 2
    assert field.told(Event.EPOCH_ENDED)[0]["detail"] == "i-3: it has gone silent"


def test_a_rank_that_is_killed_makes_a_new_epoch_on_the_same_nodes_at_once() -> None:
    field = training()
    field.node(2).says("failed", step=5, detail="rank 2 was ended by signal 9")
    took = field.until(second(field))

    assert took <= FAST.settle_s + 3 * FAST.beat_s
    assert field.epochs[1] == field.epochs[0]
    assert field.records[1].detail == "epoch 1 failed: i-2: rank 2 was ended by signal 9"


def test_a_supervisor_that_has_started_anew_has_lost_its_ranks() -> None:
    field = training()
    field.node(2).start_anew()
    took = field.until(second(field))

    assert took <= FAST.settle_s + 3 * FAST.beat_s
    assert field.epochs[1] == field.epochs[0]
    assert field.records[1].nodes[1].incarnation == "s-2.1"
    assert field.told(Event.NODE_JOINED)[-1]["detail"] == "its supervisor started anew"


def test_of_two_that_fail_at_the_same_time_both_reasons_are_told() -> None:
    field = training()
    field.node(2).says("failed", detail="rank 2: out of memory")
    field.pass_s(0.1)
    field.node(4).says("failed", detail="rank 6: out of memory")
    field.until(second(field))

    assert field.records[1].detail == "epoch 1 failed: i-2: rank 2: out of memory; i-4: rank 6: out of memory"


def test_the_order_of_the_nodes_stays_when_one_is_lost() -> None:
    field = training(4)
    field.node(2).is_silent = True
    field.until(second(field))

    assert field.epochs[1] == ["i-1", "i-3"]


def test_a_replacement_is_waited_for_until_the_deadline() -> None:
    field = training(wait_s=300)
    field.node(3).is_silent = True
    field.until(lambda: field.told(Event.WAIT))
    lost_at = field.now
    assert field.told(Event.WAIT)[0]["detail"] == "3 of 4 nodes are there"
    assert field.told(Event.WAIT)[0]["until"] == pytest.approx(lost_at + 300, abs=0.3)

    took = field.until(second(field), within_s=400)

    assert took == pytest.approx(300, abs=0.5)
    assert field.epochs[1] == ["i-1", "i-2"]
    assert len(field.told(Event.WAIT)) == 1


def test_a_replacement_that_comes_in_time_is_taken_in_at_once() -> None:
    field = training(wait_s=300)
    field.node(3).is_silent = True
    field.pass_s(60)
    field.node(5)
    took = field.until(second(field))

    assert took <= 0.2
    assert field.epochs[1] == ["i-1", "i-2", "i-4", "i-5"]
    assert field.records[1].plan == field.job.plan


def test_a_warm_spare_takes_the_place_of_a_lost_node_without_a_wait() -> None:
    field = training(wait_s=300)
    field.node(5)
    field.pass_s(1)
    field.node(3).is_silent = True
    took = field.until(second(field))

    assert took <= 1.9
    assert field.epochs[1] == ["i-1", "i-2", "i-4", "i-5"]


def test_a_spare_that_changes_nothing_restarts_nobody() -> None:
    field = training()
    field.node(5)
    field.pass_s(120)

    assert len(field.epochs) == 1
    assert field.told(Event.DRAIN) == []


def test_with_fewer_nodes_than_any_layout_needs_a_run_waits_for_one() -> None:
    field = training(4, wait_s=0, minimum=3)
    field.node(3).is_silent = True
    field.node(4).is_silent = True
    field.pass_s(120)
    assert len(field.epochs) == 1
    (told,) = field.told(Event.WAIT)[-1:]
    assert told["detail"] == "2 of 4 nodes are there; no layout fits them, another node is waited for"
    assert told["until"] is not None

    field.node(5), field.node(6)
    field.pass_s(0.2)

    assert field.epochs[1] == ["i-1", "i-2", "i-5", "i-6"]


def test_nodes_that_no_layout_fits_are_not_kept_beyond_the_deadline_of_a_start() -> None:
    field = training(4, wait_s=0, minimum=3)
    field.node(3).is_silent = True
    field.node(4).is_silent = True

    field.pass_s(1800 + 60)

    concluded = field.core.concluded
    assert concluded is not None
    assert concluded.state == "stopped"
    assert concluded.detail == (
        "2 of 4 nodes are there; no layout fits them, another node is waited for, "
        "but none came within 1800 s; released, to be resumed"
    )


def test_a_lost_node_is_given_back_when_it_stays_silent() -> None:
    field = training()
    field.node(3).is_silent = True
    field.pass_s(FAST.give_up_s - 0.5)
    assert field.replaced == []

    field.pass_s(60)

    assert field.replaced == [("i-3", "not heard for 14 s")]


def test_a_node_that_comes_back_before_it_is_given_back_is_taken_in_at_a_checkpoint() -> None:
    field = training()
    field.node(3).is_silent = True
    field.pass_s(4)
    field.node(3).is_silent = False
    field.pass_s(0.2)
    assert field.node(3).epoch is None
    for number in (1, 2):
        field.node(number).says("running", step=7)
    field.pass_s(0.2)
    assert [said["at"] for said in field.told(Event.DRAIN)] == ["checkpoint"]

    for number in (1, 2):
        field.node(number).says("resume", step=10)
    field.until(lambda: len(field.records) > 2)

    assert field.epochs[2] == ["i-1", "i-2", "i-3", "i-4"]
    assert field.replaced == []


def test_a_node_that_comes_back_after_it_was_given_back_is_wanted_no_more() -> None:
    field = training()
    field.node(3).is_silent = True
    field.pass_s(30)
    field.node(3).is_silent = False
    field.pass_s(30)

    answer = field.node(3).answer
    assert answer is not None
    assert (answer.epoch, answer.order) == (2, None)
    assert field.epochs == [["i-1", "i-2", "i-3", "i-4"], ["i-1", "i-2"]]


def test_what_is_silent_but_not_lost_is_waited_for_before_the_others_go_on() -> None:
    field = training()
    field.node(2).says("failed", detail="rank 2: killed")
    field.node(3).is_silent = True
    field.pass_s(1.0)
    assert field.told(Event.EPOCH_ENDED) == []

    field.node(3).is_silent = False
    field.until(second(field))

    assert field.epochs[1] == field.epochs[0]


def test_a_rank_that_stands_still_is_named_once_with_its_stack() -> None:
    field = training()
    stall = {"rank": 5, "host": "10.0.0.3", "detail": "stopped (T)", "stack": "main.py:1"}
    field.node(3).says("failed", stalls=(Stall.model_validate(stall),), detail="rank 5 at 10.0.0.3 stands still")
    field.until(second(field))
    field.pass_s(5)

    assert field.told(Event.RANK_STALLED) == [{"event": "rank_stalled", "epoch": 1, "node": "i-3", **stall}]


def test_the_supervisor_of_the_coordinator_is_a_member_like_any_other() -> None:
    field = training()
    field.node(1).is_silent = True
    field.until(second(field))

    assert field.epochs[1] == ["i-2", "i-3"]


def test_a_later_controller_goes_on_with_the_epoch() -> None:
    field = training()
    field.begin(order_of(field.records[0]), past=Past(up=frozenset(field.epochs[0])), incarnation="c-2")
    told = len(field.actions)
    field.pass_s(120)

    assert field.actions[told:] == []
    assert field.say(field.node(1)).controller == "c-2"
    assert field.say(field.node(1)).epoch == 1


@pytest.mark.parametrize(("timing", "within_s"), [(FAST, 3.0), (PRODUCTION, 25.0)])
def test_a_later_controller_that_misses_a_member_goes_on_without_it(timing: Timing, within_s: float) -> None:
    field = training(timing=timing)
    field.node(1).is_silent = True
    for number in (2, 3, 4):
        field.node(number).says("failed", of_others=True, detail="connection reset by peer")
    field.begin(order_of(field.records[0]), incarnation="c-2", instance_id="i-5")
    field.nodes[5] = Simulated(5)
    took = field.until(second(field))

    assert took < within_s
    assert field.epochs[1] == ["i-2", "i-3", "i-4", "i-5"]


def test_a_later_controller_lets_members_show_themselves_before_it_decides() -> None:
    field = training()
    for node in field.nodes.values():
        node.says("failed", detail="killed")
        node.is_silent = True
    field.begin(order_of(field.records[0]), incarnation="c-2")
    field.node(1).is_silent = False
    field.pass_s(0.3)
    for node in field.nodes.values():
        node.is_silent = False
    field.until(second(field))

    assert field.epochs[1] == field.epochs[0]


def test_a_claim_that_did_not_succeed_is_tried_again() -> None:
    field = Field(1)
    field.core.hear(field.node(1).beat(), field.now)
    first = field.core.tick(field.now)
    waiting = field.core.tick(field.now + 0.05)
    field.core.not_formed()
    again = field.core.tick(field.now + 0.1)

    assert waiting == []
    assert again == [first[-1]]
