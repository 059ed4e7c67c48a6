from __future__ import annotations

from tests.node.membership.field import Field, order_of
from tests.node.membership.said import notice
from tests.node.membership.test_core_losses import second, training
from trainfabric_node.jobs import NodeState
from trainfabric_node.membership.statuses import statuses
from trainfabric_plan.contract import Event, Role


def seen(field: Field) -> dict[str, tuple[NodeState, str]]:
    return {status.instance_id: (status.state, status.detail) for status in statuses(field.core, field.now)}


def test_a_node_joins_until_it_is_warm_and_is_a_spare_until_it_trains() -> None:
    field = Field(3)
    field.node(3).ready = False
    field.pass_s(0.2)
    before = seen(field)
    field.node(3).ready = True
    field.pass_s(0.2)

    assert before == {"i-1": (NodeState.SPARE, ""), "i-2": (NodeState.SPARE, ""), "i-3": (NodeState.JOINING, "")}
    assert set(seen(field).values()) == {(NodeState.RUNNING, "epoch 1")}


def test_a_spare_is_told_from_a_member() -> None:
    field = training()
    field.node(5)
    field.pass_s(0.2)

    assert seen(field)["i-5"] == (NodeState.SPARE, "")


def test_a_node_with_a_notice_leaves_and_then_is_lost() -> None:
    field = training()
    field.node(3).notice = notice()
    field.pass_s(0.2)
    before = seen(field)["i-3"]
    for node in field.nodes.values():
        node.says("resume", step=9)
    field.until(second(field))
    field.node(3).is_silent = True
    field.pass_s(2)

    assert before == (NodeState.LEAVING, "terminate at noon")
    assert seen(field)["i-3"] == (NodeState.LOST, "terminate at noon")


def test_a_silent_node_is_lost_when_its_silence_is_believed() -> None:
    field = training()
    field.node(3).is_silent = True
    field.pass_s(1)
    before = seen(field)["i-3"]
    field.until(second(field))

    assert before == (NodeState.RUNNING, "epoch 1")
    assert seen(field)["i-3"] == (NodeState.LOST, "not heard any more")


def test_nodes_that_a_later_controller_does_not_hear_are_lost() -> None:
    field = training()
    field.node(6).ready = False
    field.pass_s(0.2)
    earlier = statuses(field.core, field.now)
    field.node(6).is_silent = True
    field.node(1).is_silent = True
    field.begin(order_of(field.records[0]), incarnation="c-2", instance_id="i-5")
    field.pass_s(1)
    assert [one.instance_id for one in statuses(field.core, field.now, earlier)] == ["i-2", "i-3", "i-4"]

    field.pass_s(1)

    lost = statuses(field.core, field.now, earlier)[-1]
    assert (lost.instance_id, lost.role, lost.state) == ("i-1", Role.COORDINATOR, NodeState.LOST)
    assert lost.detail == "not heard any more"


def test_nodes_that_wait_for_another_are_warm() -> None:
    field = training(wait_s=300)
    field.node(3).is_silent = True
    field.until(lambda: field.told(Event.WAIT))

    assert seen(field)["i-1"] == (NodeState.SPARE, "")


def test_at_the_end_members_are_as_the_run_and_spares_have_stopped() -> None:
    field = training()
    field.node(5)
    field.pass_s(0.2)
    for node in field.nodes.values():
        if node.epoch:
            node.says("done", step=40)
    field.pass_s(0.2)

    assert [state for state, _ in seen(field).values()] == 4 * [NodeState.DONE] + [NodeState.STOPPED]
