"""The course of one epoch: where its members are, and how it has ended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from trainfabric_node.membership.protocol import Drain, EpochNode, EpochOrder, EpochRecord, NodeEpoch
from trainfabric_node.membership.roster import Roster
from trainfabric_node.membership.timing import Timing
from trainfabric_plan.planning import Plan

FINISH_S = 1800.0
"""For the other nodes once somebody else's command has ended well on one: it may still write a last checkpoint."""

Condition = Literal["there", "lost", "anew", "failed", "resume", "done"]
"""Of a member: training; dead; its supervisor started anew, without its ranks; as it says."""


@dataclass(frozen=True, kw_only=True)
class End:
    """How an epoch has ended.

    Attributes:
        state: resume: all its ranks agreed to leave, and a checkpoint is committed.
        detail: Why, in words.
        origins: Nodes on which a failure began.
        has_lost: Whether a member was lost.
        hopeless: Whether trying again cannot help.
        step: The highest step that a member has told of.
    """

    state: Literal["resume", "done", "failed"]
    detail: str
    origins: frozenset[str] = frozenset()
    has_lost: bool = False
    hopeless: bool = False
    step: int = 0


@dataclass(kw_only=True)
class Course:
    """The current epoch.

    Attributes:
        order: As its members are told.
        best_step: The highest step that any epoch had reached when it began.
        commits: How many checkpoints the log held then.
        drain: What its members are asked, if they are to leave.
        end: How it has ended, once it has.
        settled: When its end was known.
    """

    order: EpochOrder
    best_step: int = 0
    commits: int = 0
    drain: Drain | None = None
    drained: float = 0.0
    end: End | None = None
    settled: float = 0.0
    _trouble: float | None = None
    _leaving: float | None = None
    _order_of_failures: list[str] = field(default_factory=list)

    @property
    def record(self) -> EpochRecord:
        """The epoch as it was claimed."""
        return self.order.record

    def member(self, instance_id: str, incarnation: str | None = None) -> EpochNode | None:
        """The member of this id, of this incarnation if one is given."""
        for node in self.record.nodes:
            if node.instance_id == instance_id and incarnation in (None, node.incarnation):
                return node
        return None

    def ask(self, drain: Drain, now: float) -> None:
        """Asks all members to leave."""
        self.drain, self.drained = drain, now

    def advance(self, roster: Roster, timing: Timing, now: float) -> End | None:
        """How the epoch has ended, if that is certain now."""
        where = {node.instance_id: condition(node, self.record, roster, now) for node in self.record.nodes}
        self._remember(where, now)
        if self._is_over(where, roster, timing, now):
            self.end, self.settled = self._judge(where, roster, timing), now
        return self.end

    def _remember(self, where: dict[str, Condition], now: float) -> None:
        """Since when there is trouble, since when members leave; a member heard again takes the trouble back."""
        troubled = [name for name, one in where.items() if one in ("lost", "anew", "failed")]
        self._order_of_failures += [name for name in troubled if name not in self._order_of_failures]
        left = any(one in ("resume", "done") for one in where.values())
        self._trouble = (self._trouble if self._trouble is not None else now) if troubled else None
        self._leaving = (self._leaving if self._leaving is not None else now) if left else None

    def _is_over(self, where: dict[str, Condition], roster: Roster, timing: Timing, now: float) -> bool:
        if all(one in ("resume", "done") for one in where.values()):
            return True
        if self._trouble is not None and now - self._trouble >= timing.settle_s:
            # ranks elsewhere fail at once when a node goes, while its own last beat is still fresh
            return all(
                one in ("lost", "anew") or roster.is_dead(name, now) or roster.was_heard_after(name, self._trouble)
                for name, one in where.items()
            )
        if self._leaving is not None and now - self._leaving >= self._patience(timing):
            return True
        return self.drain is not None and self.drain.at == "now" and now - self.drained >= timing.drain_s

    @property
    def _is_own(self) -> bool:
        """Whether it runs somebody else's command, whose nodes need not have agreed before one of them ends."""
        return not isinstance(self.record.plan, Plan)

    def _has_to_finish(self, where: dict[str, Condition]) -> bool:
        """Whether a command that has ended well on one node has not on another: it is started again to say so there."""
        return self._is_own and any(one in ("lost", "anew", "failed") for one in where.values())

    def _patience(self, timing: Timing) -> float:
        """For the others once one has left: ranks of ours have agreed to, somebody else's node 0 may still save."""
        finishing = self.drain is None and self._is_own
        return FINISH_S if finishing else timing.drain_s

    def _judge(self, where: dict[str, Condition], roster: Roster, timing: Timing) -> End:
        said = {name: _said(name, self.record, roster) for name in where}
        step = max((one.step for one in said.values() if one), default=0)
        if "done" in where.values() and not self._has_to_finish(where):
            return End(state="done", detail="all steps are done", step=step)
        if "resume" in where.values():  # all ranks had agreed, and what they saved was committed before any left
            return End(state="resume", detail=self.drain.detail if self.drain else "asked to leave", step=step)
        origins = [name for name in self._order_of_failures if _is_origin(where[name], said[name])]
        shown = origins or self._order_of_failures
        late = f"not all ranks left within {timing.drain_s:g} s of being asked"
        return End(
            state="failed",
            detail="; ".join(f"{name}: {_reason(where[name], said[name])}" for name in shown) or late,
            origins=frozenset(origins),
            has_lost="lost" in where.values(),
            hopeless=any((one := said[name]) is not None and one.hopeless for name in origins),
            step=step,
        )


def condition(member: EpochNode, record: EpochRecord, roster: Roster, now: float) -> Condition:
    """Where a member of an epoch is; what it said of its end stands, whatever becomes of it."""
    node = roster.get(member.instance_id)
    said = node.of_epoch(record) if node and node.beat.incarnation == member.incarnation else None
    if said and said.state in ("failed", "resume", "done"):
        return said.state
    if node and node.beat.incarnation != member.incarnation:
        return "anew"
    return "lost" if roster.is_dead(member.instance_id, now) else "there"


def stalls(course: Course, roster: Roster) -> Iterator[tuple[str, NodeEpoch]]:
    """Members that tell of ranks which have stopped moving, with what they say."""
    for member in course.record.nodes:
        said = _said(member.instance_id, course.record, roster)
        if said and said.stalls:
            yield member.instance_id, said


def _said(name: str, record: EpochRecord, roster: Roster) -> NodeEpoch | None:
    node = roster.get(name)
    return node.of_epoch(record) if node else None


def _is_origin(where: Condition, said: NodeEpoch | None) -> bool:
    return where in ("lost", "anew") or (where == "failed" and said is not None and not said.of_others)


def _reason(where: Condition, said: NodeEpoch | None) -> str:
    if where == "lost":
        return "it has gone silent"
    if where == "anew":
        return "its supervisor started anew"
    return said.detail if said and said.detail else "its ranks failed without a reason"
