"""What becomes of single nodes: who joins, who is refused, who leaves, and who is lost. No I/O, as in `core`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trainfabric_node.membership.actions import Action, Replace, Say
from trainfabric_node.membership.course import Course
from trainfabric_node.membership.roster import Node, Roster
from trainfabric_node.membership.timing import Timing
from trainfabric_plan.contract import Event

REFUSALS = 3
"""Nodes with other pins in whose place others are asked for; more would be launched and given back without an end."""

_NOTICES = {"spot": Event.SPOT_NOTICE, "rebalance": Event.REBALANCE}


@dataclass(frozen=True, kw_only=True)
class Past:
    """What earlier controllers of a run have told.

    Attributes:
        up: Ids of nodes that were up, as far as their statuses said last.
        told: Kinds of events, each with the node that it was about.
    """

    up: frozenset[str] = frozenset()
    told: frozenset[tuple[Event, str]] = frozenset()


def told_nodes(events: Iterable[Mapping[str, Any]]) -> frozenset[tuple[Event, str]]:
    """What events of a run have told about single nodes."""
    about = {Event.SPOT_NOTICE, Event.REBALANCE, Event.NODE_REFUSED}
    return frozenset((Event(one["event"]), one["node"]) for one in events if one["event"] in about and "node" in one)


class Watch:
    """Looks at each node that is known.

    Args:
        roster: The nodes.
        timing: How long silence is borne.
        own_id: The controller's own node, which stays as long as the controller does.
        past: What need not be told again.
    """

    def __init__(self, roster: Roster, timing: Timing, own_id: str, past: Past) -> None:
        self._roster = roster
        self._timing = timing
        self._own_id = own_id
        self._up = set(past.up)
        self._told = past.told
        self.refused = {name for event, name in past.told if event is Event.NODE_REFUSED}
        """Nodes that were not launched as the job wants it."""
        self.lost_at: float | None = None
        """When a node was last lost."""

    def look(self, course: Course | None, now: float) -> Iterator[Action]:
        """What follows from what the nodes have said, or have not."""
        for node in list(self._roster):
            yield from self._welcome(node)
            yield from self._take_notice(node)
            yield from self._miss(node, now)
            yield from self.let_go(node, course, now)

    def let_go(self, node: Node, course: Course | None, now: float) -> Iterator[Action]:
        """A node that leaves is given back when its epoch, if it is in one, has ended."""
        notice, name = node.notice, node.beat.instance_id
        in_epoch = course is not None and course.end is None and course.member(name) is not None
        if notice is None or not node.is_leaving or node.replaced or in_epoch:
            return
        self.lost_at = now
        yield Say(event=Event.NODE_LOST, fields={"node": name, "detail": f"it leaves: {notice.detail}"})
        yield self.replace(node, notice.detail)

    def replace(self, node: Node, detail: str, *, another: bool = True) -> Replace:
        """Gives a node back; it is taken in no more."""
        node.replaced = True
        return Replace(instance_id=node.beat.instance_id, detail=detail, another=another)

    def _welcome(self, node: Node) -> Iterator[Action]:
        if node.lost:
            return
        yield from self._refuse(node)
        if node.joined or not self._roster.is_right(node):
            return
        node.joined, beat = True, node.beat
        if beat.instance_id in self._up:
            self._up.discard(beat.instance_id)
            return
        fields = {"node": beat.instance_id, "address": beat.address, "role": beat.role.value}
        again = {"detail": "its supervisor started anew"} if node.former else {}
        yield Say(event=Event.NODE_JOINED, fields={**fields, **again})

    def _refuse(self, node: Node) -> Iterator[Action]:
        """A wrong node is given back, whoever has told of it; the controller's own stays until the run is over."""
        name, why = node.beat.instance_id, self._roster.refusal(node)
        if not why:
            return
        if name not in self.refused:
            self.refused.add(name)
            yield Say(event=Event.NODE_REFUSED, fields={"node": name, "detail": why})
        if not node.replaced and name != self._own_id:
            detail = f"launched otherwise than the job: {why}"
            yield self.replace(node, detail, another=len(self.refused) <= REFUSALS)

    def _take_notice(self, node: Node) -> Iterator[Action]:
        notice, name = node.notice, node.beat.instance_id
        if notice is None or notice.kind in node.noticed:
            return
        node.noticed.add(notice.kind)
        event = _NOTICES.get(notice.kind)
        if event and (event, name) not in self._told:
            yield Say(event=event, fields={"node": name, "detail": notice.detail})

    def _miss(self, node: Node, now: float) -> Iterator[Action]:
        name = node.beat.instance_id
        if node.replaced:
            return
        if not node.lost and self._roster.is_dead(name, now):
            node.lost, node.joined, self.lost_at = True, False, now
            detail = f"not heard for {self._timing.dead_s:g} s"
            yield Say(event=Event.NODE_LOST, fields={"node": name, "detail": detail})
        if node.lost and self._is_given_up(node, now):
            node.given_up = True
            yield self.replace(node, f"not heard for {self._timing.give_up_s:g} s")

    def _is_given_up(self, node: Node, now: float) -> bool:
        """Whether it is silent for long enough, and it is not the controller that hears nobody."""
        name = node.beat.instance_id
        if not self._roster.hears_others(name, self._own_id, now):
            node.spared = now  # nodes come back one after the other
        return min(self._roster.silence_s(name, now), now - node.spared) > self._timing.give_up_s
