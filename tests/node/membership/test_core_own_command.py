"""What differs when the nodes run somebody else's command: they need not have agreed, and it adapts itself."""

from __future__ import annotations

from tests.node.membership.field import Field
from tests.node.membership.test_core_leaving import drained, leave
from tests.node.samples import spec
from trainfabric_node.jobs import JobCommand
from trainfabric_node.membership.actions import Conclude
from trainfabric_node.membership.course import FINISH_S
from trainfabric_node.membership.timing import FAST
from trainfabric_plan.contract import Event
from trainfabric_plan.planning import CommandPlan
from trainfabric_plan.policy import FaultTolerance


def running(minimum_nodes: int = 3) -> Field:
    """Three nodes in their first epoch."""
    plan = CommandPlan(
        environment="lab",
        command="./run",
        image=None,
        nodes=3,
        ranks_per_node=8,
        minimum_nodes=minimum_nodes,
        usd_per_hour=None,
        usd_per_hour_at_least=0.0,
        reasons=[],
    )
    policy = FaultTolerance(wait_for_replacement_s=0, start_deadline_s=60, heartbeats="fast")
    job = spec(3, recipe=None, command=JobCommand(command="./run"), plan=plan, policy=policy)
    field = Field(3, job=job)
    field.until(lambda: field.epochs)
    field.pass_s(1)
    return field


def test_a_command_that_needs_all_nodes_waits_for_another() -> None:
    field = running()
    field.node(3).is_silent = True
    field.until(lambda: field.told(Event.WAIT))
    field.node(4)
    field.until(lambda: len(field.epochs) == 2)

    assert field.epochs[1] == ["i-1", "i-2", "i-4"]


def test_a_command_that_adapts_itself_goes_on_with_what_is_left_and_takes_the_next_in() -> None:
    field = running(minimum_nodes=2)
    field.node(3).is_silent = True
    field.until(lambda: len(field.epochs) == 2)
    smaller = field.records[1].plan.ranks
    field.pass_s(1)
    field.node(4)
    field.until(lambda: drained(field, "checkpoint"))
    leave(field)
    field.until(lambda: len(field.epochs) == 3)

    assert (smaller, field.records[2].plan.ranks) == (16, 24)
    assert field.told(Event.DRAIN)[0]["detail"] == (
        "3 nodes are there, enough for 3 × 8 ranks of a command in place of 2 × 8 ranks of a command"
    )


def test_a_command_is_done_when_it_has_ended_well_on_all_nodes() -> None:
    field = running()
    leave(field, "done", but=(1,))
    field.pass_s(FAST.drain_s + 5)
    early = field.conclusion
    field.node(1).says("done")
    field.pass_s(1)

    assert early is None
    assert field.conclusion == Conclude(state="done")


def test_a_node_that_never_ends_is_not_waited_for_without_an_end() -> None:
    field = running()
    leave(field, "done", but=(1,))
    took = field.until(lambda: field.conclusion, within_s=FINISH_S + 10)

    assert took >= FINISH_S
    assert field.conclusion == Conclude(state="done")


def test_a_command_that_fails_on_one_node_while_others_are_done_is_started_again() -> None:
    field = running()
    leave(field, "done", but=(1,))
    field.node(1).says("failed", detail="the last checkpoint could not be written")
    field.until(lambda: len(field.epochs) == 2)

    assert field.told(Event.EPOCH_ENDED)[0]["state"] == "failed"
    assert field.conclusion is None
