"""Nodes of several placement groups: the order of ranks, and which node takes whose place."""

from __future__ import annotations

from tests.node.membership.field import Field, small_plan
from tests.node.membership.said import notice
from tests.node.samples import spec
from trainfabric_node.jobs import NodeState
from trainfabric_node.membership.protocol import Notice
from trainfabric_node.membership.statuses import statuses
from trainfabric_plan.contract import Event, Role
from trainfabric_plan.deployed import NodeGroup
from trainfabric_plan.policy import FaultTolerance


def groups(*, coordinator: int = 1) -> tuple[NodeGroup, ...]:
    """Of two and two nodes that train, each with a spare beside it."""
    near = 2 - coordinator
    return (
        NodeGroup(name="c", role=Role.COORDINATOR, launch_template=None, nodes=coordinator),
        NodeGroup(name="w", role=Role.WORKER, launch_template=None, nodes=near, spares=1),
        NodeGroup(name="w-2", role=Role.WORKER, launch_template=None, nodes=2, spares=1, placement=1),
    )


def field_of(*placements: int, coordinator: int = 1) -> Field:
    """Node 1 is the coordinator, if it trains; the others are workers in these placement groups."""
    policy = FaultTolerance(heartbeats="fast", wait_for_replacement_s=0)
    job = spec(4, plan=small_plan(4), groups=groups(coordinator=coordinator), spares=2, policy=policy)
    field = Field(0, job=job, instance_id="i-1" if coordinator else "i-control")
    for number, placement in enumerate(placements, 1):
        changes = {"placement": placement, **({} if coordinator else {"role": Role.WORKER})}
        field.node(number).changes = changes
    return field


def test_ranks_go_by_placement_group_with_the_coordinator_first_in_its_own() -> None:
    field = field_of(0, 1, 0, 1)
    field.pass_s(0.2)

    assert field.epochs == [["i-1", "i-3", "i-2", "i-4"]]


def test_of_more_nodes_than_the_plan_has_as_many_of_each_placement_group_train_as_it_wants() -> None:
    field = field_of(0, 0, 0, 1, 1, 1)
    field.pass_s(0.2)

    assert field.epochs == [["i-1", "i-2", "i-4", "i-5"]]


def test_a_lost_node_is_made_good_with_the_spare_of_its_own_placement_group() -> None:
    field = field_of(0, 0, 0, 1, 1, 1)
    field.pass_s(0.2)
    field.node(4).is_silent = True
    for number in (1, 2, 5):
        field.node(number).says("failed", of_others=True)
    field.until(lambda: len(field.epochs) == 2)

    assert field.epochs[1] == ["i-1", "i-2", "i-5", "i-6"]


def test_a_spare_of_another_placement_group_is_better_than_none() -> None:
    field = field_of(0, 0, 0, 1, 1)
    field.pass_s(0.2)
    field.node(5).is_silent = True
    for number in (1, 2, 4):
        field.node(number).says("failed", of_others=True)
    field.until(lambda: len(field.epochs) == 2)

    assert field.epochs[1] == ["i-1", "i-2", "i-3", "i-4"]


def test_a_replacement_of_the_coordinator_is_rank_zero_again() -> None:
    field = field_of(0, 0, 1, 1)
    field.pass_s(0.2)
    field.node(1).is_silent = True
    field.node(9).changes = {"placement": 0, "role": Role.COORDINATOR}
    for number in (2, 3, 4):
        field.node(number).says("failed", of_others=True)
    field.until(lambda: len(field.epochs) == 2)

    assert field.epochs[1] == ["i-9", "i-2", "i-3", "i-4"]


def test_a_node_at_risk_is_taken_last_whatever_its_placement_group() -> None:
    field = field_of(0, 0, 0, 1, 1)
    field.node(4).notice = notice("rebalance")
    field.pass_s(0.2)

    assert field.epochs == [["i-1", "i-2", "i-3", "i-5"]]


def test_a_coordinator_that_only_controls_is_not_waited_for_and_no_member() -> None:
    field = field_of(0, 0, 1, 1, coordinator=0)
    field.pass_s(0.2)

    assert field.epochs == [["i-1", "i-2", "i-3", "i-4"]]


def test_a_coordinator_that_only_controls_is_shown_as_what_it_is_until_the_run_ends() -> None:
    field = field_of(0, 0, 1, 1, coordinator=0)
    field.pass_s(0.2)
    during = statuses(field.core, field.now, own="i-control")
    again = statuses(field.core, field.now + 1000, earlier=during, own="i-control")
    elsewhere = statuses(field.core, field.now + 1000, earlier=during, own="i-next")
    field.stop()
    for number in (1, 2, 3, 4):
        field.node(number).says("resume", step=3)
    field.until(lambda: field.conclusion)
    after = statuses(field.core, field.now, own="i-control")

    assert next((one.instance_id, one.role, one.state) for one in during) == (
        "i-control",
        Role.COORDINATOR,
        NodeState.CONTROLLING,
    )
    assert [one.state for one in again if one.instance_id == "i-control"] == [NodeState.CONTROLLING]
    assert [one.state for one in elsewhere if one.instance_id == "i-control"] == [NodeState.LOST]
    assert [one.state for one in after if one.instance_id == "i-control"] == [NodeState.STOPPED]


def test_what_ec2_announces_about_a_member_counts_as_if_the_node_had_said_it_and_is_told_once() -> None:
    field = field_of(0, 0, 1, 1)
    field.pass_s(0.2)
    news = field.core.announce("i-4", Notice(kind="spot", detail="terminate at noon"))
    field.pass_s(0.2)
    field.node(4).notice = notice(detail="terminate at 12:00")
    again = field.core.announce("i-4", Notice(kind="spot", detail="terminate at noon"))
    field.pass_s(0.2)

    assert (news, again) == (True, False)
    assert field.told(Event.SPOT_NOTICE) == [{"event": "spot_notice", "node": "i-4", "detail": "terminate at noon"}]
    assert field.told(Event.DRAIN) == [
        {"event": "drain", "epoch": 1, "at": "now", "node": "i-4", "detail": "i-4: terminate at noon"}
    ]


def test_what_ec2_announces_about_nodes_of_others_is_nothing_to_the_run() -> None:
    field = field_of(0, 0, 1, 1)
    field.pass_s(0.2)

    assert not field.core.announce("i-foreign", Notice(kind="spot", detail="terminate at noon"))
    field.pass_s(0.2)
    assert field.told(Event.SPOT_NOTICE, Event.DRAIN) == []


def test_the_more_urgent_of_two_announcements_counts() -> None:
    field = field_of(0, 0, 1, 1)
    field.pass_s(0.2)
    first = field.core.announce("i-3", Notice(kind="spot", detail="terminate at noon"))
    field.pass_s(0.2)

    assert (first, field.core.announce("i-3", Notice(kind="rebalance", detail="recommended"))) == (True, False)
    field.pass_s(0.2)
    assert field.told(Event.REBALANCE) == []
