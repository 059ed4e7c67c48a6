"""The decisions of a controller: what is known of nodes and epochs, policy and time, to what is to be done.

Nothing here reads a clock, a socket or the bucket. All times are seconds of one monotonic clock.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from trainfabric_node.jobs.records import JobSpec, StopRequest
from trainfabric_node.membership.actions import Action, Conclude, Form, Say
from trainfabric_node.membership.course import Course, End, stalls
from trainfabric_node.membership.protocol import Answer, Beat, Drain, EpochOrder, Notice
from trainfabric_node.membership.roster import Node, Roster, members
from trainfabric_node.membership.timing import Timing
from trainfabric_node.membership.watch import REFUSALS, Past, Watch
from trainfabric_plan.contract import Event
from trainfabric_plan.errors import Refused
from trainfabric_plan.planning import AnyPlan, Plan, shrunk_command, shrunk_plan

FRUITLESS = 3
"""So many failures in a row without a step or a checkpoint more end a run."""

FRUITLESS_LOSSES = 10
"""As many if lost nodes are among the reasons, which may be nobody's fault."""

_OWN_S = 120.0
"""That the first epoch waits for the controller's own node, on demand and rank 0, once there are enough others."""

_LATE = 0.5
"""Share of the silence that counts as death: a controller that stood still itself for longer knows nothing of it."""


@dataclass(frozen=True, kw_only=True)
class Own:
    """The controller itself.

    Attributes:
        incarnation: Of this process.
        instance_id: Of its node.
        began: When it began to listen.
        deadline: When the nodes of a run that has had no epoch must be up.
    """

    incarnation: str
    instance_id: str
    began: float
    deadline: float


class Core:
    """What a controller knows and wants in one run.

    Args:
        spec: The run.
        timing: That of its policy.
        own: The controller.
        order: The newest epoch of the run, if it has had one.
        past: What earlier controllers of the run have told.
    """

    def __init__(
        self, spec: JobSpec, timing: Timing, own: Own, order: EpochOrder | None = None, past: Past | None = None
    ) -> None:
        self._spec = spec
        self._timing = timing
        self._own = own
        self._roster = Roster(timing, spec.pins, own.began, spec.shares)
        self._watch = Watch(self._roster, timing, own.instance_id, past or Past())
        self._course = Course(order=order) if order else None
        self._silent_until = own.began + max(3 * timing.beat_s, timing.settle_s) + 2 * timing.ask_s if order else 0.0
        self._last_tick = own.began
        self._forming = False
        self._stop: StopRequest | None = None
        self._concluded: Conclude | None = None
        self._enough_since: float | None = None
        self._waiting: tuple[float | None, int] | None = None
        self._best_step = 0
        self._commits = 0
        self._fruitless: list[bool] = []
        self._suspect = ""
        self._told_stalls: set[tuple[int, str, int]] = set()
        self._plans: dict[int, AnyPlan | None] = {}

    # --- what comes in

    def hear(self, beat: Beat, now: float) -> bool:
        """Takes a beat in; whether it holds news that a tick should look at now.

        Raises:
            Refused: If it is not of this run.
        """
        if not hmac.compare_digest(beat.token.encode(), self._spec.nonce.encode()):
            remedy = "read jobs/current.json again"
            raise Refused(f"controller: token must be that of job {self._spec.job}, got another; {remedy}")
        return self._roster.hear(beat, now)

    def answer(self, beat: Beat) -> Answer:
        """What the controller wants of the node that said this."""
        course = self._course
        answer = Answer(
            sequence=beat.sequence,
            controller=self._own.incarnation,
            epoch=course.record.number if course else 0,
            concluded=self._concluded is not None,
        )
        if course is None or self._concluded or course.end or not course.member(beat.instance_id, beat.incarnation):
            return answer
        has_begun = beat.epoch is not None and beat.epoch.number == course.record.number
        return answer.model_copy(update={"order": None if has_begun else course.order, "drain": course.drain})

    def ask_to_stop(self, request: StopRequest | None) -> None:
        """Takes in that somebody asked the run to end."""
        self._stop = self._stop or request

    def committed(self, commits: int) -> None:
        """Takes in how many checkpoints the log holds."""
        self._commits = max(self._commits, commits)

    def announce(self, instance_id: str, notice: Notice) -> bool:
        """Takes in what EC2 announces about a node; whether a tick should look at it now."""
        return self._roster.announce(instance_id, notice)

    def formed(self, order: EpochOrder) -> None:
        """The epoch that was to be formed is claimed."""
        self._forming, self._waiting = False, None
        self._course = Course(order=order, best_step=self._best_step, commits=self._commits)

    def abandon(self) -> None:
        """Somebody else has ended the run."""
        self._concluded = self._concluded or Conclude(state="stopped", detail="ended by another")

    def not_formed(self) -> None:
        """The epoch that was to be formed could not be claimed now; the next tick decides anew."""
        self._forming = False

    def given_back(self, instance_id: str) -> None:
        """A node is gone from the fleet; whatever it says from now on, it is taken in no more."""
        if node := self._roster.get(instance_id):
            node.replaced, node.given_up = True, False

    def give_up(self, instance_id: str) -> None:
        """A node is to be given back that does not come up."""
        self.given_back(instance_id)

    def spare(self, instance_id: str, now: float) -> None:
        """A node could not be given back now; one that is only silent may be heard meanwhile, and is judged anew."""
        node = self._roster.get(instance_id)
        if node and node.given_up:
            node.given_up = node.replaced = False
            node.spared = now

    # --- what is known

    def is_unwanted(self, instance_id: str) -> bool:
        """Whether a node that was to be given back still is: it has not been heard again."""
        node = self._roster.get(instance_id)
        return node is None or node.replaced

    @property
    def is_refusing(self) -> bool:
        """Whether so many nodes came up wrong that more would be wrong as well."""
        return len(self._watch.refused) > REFUSALS

    @property
    def course(self) -> Course | None:
        """The current epoch."""
        return self._course

    @property
    def roster(self) -> Roster:
        """The nodes."""
        return self._roster

    @property
    def concluded(self) -> Conclude | None:
        """How the run has ended, once that is decided."""
        return self._concluded

    @property
    def is_waiting(self) -> bool:
        """Whether too few nodes are there, and nothing trains."""
        return self._waiting is not None

    def quiet(self, now: float) -> bool:
        """Whether no node is heard any more: all have learnt that the run is over, or are gone."""
        return all(self._roster.is_silent(node.beat.instance_id, now) for node in self._roster)

    # --- what follows

    def tick(self, now: float) -> list[Action]:
        """What is to be done now."""
        if now - self._last_tick > _LATE * self._timing.dead_s:
            self._roster.since = now
        self._last_tick = now
        if self._concluded or self._forming:
            return []
        actions = [*self._watch.look(self._course, now), *self._watch_epoch(now)]
        if not self._concluded and (self._course is None or self._course.end):
            actions += self._decide(now)
        return actions

    # --- the current epoch

    def _watch_epoch(self, now: float) -> Iterator[Action]:
        course = self._course
        if course is None or course.end:
            return
        yield from self._tell_stalls(course)
        end = course.advance(self._roster, self._timing, now)
        if end is None:
            if now >= self._silent_until:
                yield from self._drain(course, now)
            return
        fields = {"epoch": course.record.number, "state": end.state, "detail": end.detail}
        yield Say(event=Event.EPOCH_ENDED, fields=fields)
        yield from self._after(course, end, now)

    def _tell_stalls(self, course: Course) -> Iterator[Action]:
        number = course.record.number
        for name, said in stalls(course, self._roster):
            for stall in said.stalls:
                if (number, name, stall.rank) not in self._told_stalls:
                    self._told_stalls.add((number, name, stall.rank))
                    fields = {"epoch": number, "node": name, **stall.model_dump()}
                    yield Say(event=Event.RANK_STALLED, fields=fields)

    def _drain(self, course: Course, now: float) -> Iterator[Action]:
        wanted = self._wanted_drain(course, now)
        if wanted is None or (course.drain and (course.drain.at == "now" or wanted[0] == "checkpoint")):
            return
        at, detail, node = wanted
        course.ask(Drain(epoch=course.record.number, at=at, detail=detail), now)
        fields = {"epoch": course.record.number, "at": at, **({"node": node} if node else {}), "detail": detail}
        yield Say(event=Event.DRAIN, fields=fields)

    def _wanted_drain(self, course: Course, now: float) -> tuple[Literal["now", "checkpoint"], str, str] | None:
        """Whether the ranks should leave, when, and why; and because of which node, if it is for one."""
        if self._stop:
            return "now", _asked(self._stop), ""
        inside = [node for node in self._roster if course.member(node.beat.instance_id)]
        for node in inside:
            if node.is_leaving and node.notice:
                return "now", f"{node.beat.instance_id}: {node.notice.detail}", node.beat.instance_id
        if not all((said := node.of_epoch(course.record)) and said.state == "running" for node in inside):
            return None
        candidates = self._roster.candidates(now)
        larger = self._plan(len(candidates))
        if larger and larger.ranks > course.record.plan.ranks:
            there = f"{len(candidates)} nodes are there, enough for {larger.shape}"
            return "checkpoint", f"{there} in place of {course.record.plan.shape}", ""
        at_risk = [node.beat.instance_id for node in inside if node.is_at_risk]
        if at_risk and sum(not node.is_at_risk for node in candidates) >= len(course.record.nodes):
            detail = f"{', '.join(at_risk)}: EC2 recommends to do without it, and another node is there"
            return "checkpoint", detail, at_risk[0]
        return None

    def _after(self, course: Course, end: End, now: float) -> Iterator[Action]:
        """What an epoch's end means for the run."""
        is_fruitless = end.state == "failed" and end.step <= course.best_step and self._commits <= course.commits
        self._fruitless = [*self._fruitless, end.has_lost] if is_fruitless else []
        self._best_step = max(self._best_step, end.step)
        if end.state == "done":
            yield self._conclude(Conclude(state="done"))
        elif end.hopeless:
            yield self._conclude(Conclude(state="failed", detail=end.detail))
        elif self._stop:
            broken = f"; the last epoch failed: {end.detail}" if end.state == "failed" else ""
            yield self._conclude(Conclude(state="stopped", detail=_asked(self._stop) + broken))
        elif self._fruitless.count(False) >= FRUITLESS or len(self._fruitless) >= FRUITLESS_LOSSES:
            times = f"failed {len(self._fruitless)} times in a row without a step or a checkpoint more"
            yield self._conclude(Conclude(state="failed", detail=f"{times}; last, {end.detail}"))
        else:
            yield from self._suspect_node(end, now)
            for node in list(self._roster):
                yield from self._watch.let_go(node, course, now)

    def _suspect_node(self, end: End, now: float) -> Iterator[Action]:
        """A node on which two failures in a row began, and on no other, is given back; not the controller's own."""
        if end.state != "failed" or len(end.origins) != 1:
            self._suspect = ""
            return
        (name,) = end.origins
        node, again = self._roster.get(name), self._suspect == name
        self._suspect = name
        if again and node and not node.replaced and name != self._own.instance_id:
            self._watch.lost_at = now
            yield self._watch.replace(node, "two failures in a row began on it")

    def _conclude(self, conclusion: Conclude) -> Conclude:
        self._concluded = conclusion
        return conclusion

    # --- the next epoch

    def _decide(self, now: float) -> Iterator[Action]:
        if now < self._silent_until:
            return
        if self._stop:
            began = "" if self._course else "before training began, "
            yield self._conclude(Conclude(state="stopped", detail=began + _asked(self._stop)))
            return
        candidates = self._roster.candidates(now, self._course.record if self._course else None)
        if len(candidates) >= self._spec.plan.nodes:
            if self._course or self._may_begin(candidates, now):
                yield self._form(candidates, self._spec.plan)
        elif self._course is None:
            yield from self._gather(candidates, now)
        elif not self._roster.undecided(now):
            yield from self._make_do(candidates, now)

    def _may_begin(self, candidates: Sequence[Node], now: float) -> bool:
        """Whether the controller's own node, if it trains, is among those there, or was waited for long enough."""
        if not self._spec.coordinator_trains:
            return True
        if self._enough_since is None:
            self._enough_since = now
        own = self._own.instance_id
        return any(node.beat.instance_id == own for node in candidates) or now - self._enough_since >= _OWN_S

    def _gather(self, candidates: Sequence[Node], now: float) -> Iterator[Action]:
        """Nothing trains before all nodes are there; a part of a fleet is not kept for longer than the deadline."""
        self._enough_since = None
        if now < self._own.deadline:
            return
        wanted, within = self._spec.plan.nodes, self._spec.policy.start_deadline_s
        refused = f"; refused: {', '.join(sorted(self._watch.refused))}" if self._watch.refused else ""
        detail = f"only {len(candidates)} of {wanted} nodes came up within {within} s{refused}; released"
        yield self._conclude(Conclude(state="failed", detail=detail))

    def _make_do(self, candidates: list[Node], now: float) -> Iterator[Action]:
        """Waits for a replacement, then goes on with what is there; nodes that no layout fits are not kept for long."""
        policy, since = self._spec.policy, self._since(candidates, now)
        until = since + policy.wait_for_replacement_s
        plan = self._plan(len(candidates))
        if now >= until and plan:
            yield self._form(candidates, plan)
            return
        there = f"{len(candidates)} of {self._spec.plan.nodes} nodes are there"
        if plan is None:
            until = since + max(policy.wait_for_replacement_s, policy.start_deadline_s)
            there += "; no layout fits them, another node is waited for"
            if now >= until:
                detail = f"{there}, but none came within {until - since:g} s; released, to be resumed"
                yield self._conclude(Conclude(state="stopped", detail=detail))
                return
        if self._waiting != (until, len(candidates)):
            self._waiting = until, len(candidates)
            yield Say(event=Event.WAIT, fields={"detail": there, "until": until})

    def _since(self, candidates: Sequence[Node], now: float) -> float:
        """Since when nodes are missing."""
        course = self._course
        if course and len(candidates) < len(course.record.nodes):
            self._watch.lost_at = max(course.settled, self._watch.lost_at or 0.0)
        if self._watch.lost_at is None:
            self._watch.lost_at = now
        return self._watch.lost_at

    def _form(self, candidates: Sequence[Node], plan: AnyPlan) -> Form:
        before = self._course.record if self._course else None
        chosen = list(candidates[: plan.nodes])
        self._forming = True
        return Form(nodes=members(chosen, before), plan=plan, detail=self._why(plan))

    def _why(self, plan: AnyPlan) -> str:
        course = self._course
        if course is None or course.end is None:
            return f"{plan.nodes} nodes are there"
        ended = {"resume": "left in order", "failed": "failed", "done": "done"}[course.end.state]
        return f"epoch {course.record.number} {ended}: {course.end.detail}"

    def _plan(self, nodes: int) -> AnyPlan | None:
        """The largest plan of the job on so many nodes."""
        if nodes not in self._plans:
            self._plans[nodes] = _on_fewer(self._spec, nodes)
        return self._plans[nodes]


def _on_fewer(spec: JobSpec, nodes: int) -> AnyPlan | None:
    if not isinstance(spec.plan, Plan):
        return shrunk_command(spec.plan, nodes)
    assert spec.recipe is not None
    return shrunk_plan(spec.plan, spec.recipe, nodes, spec.policy.minimum_nodes)


def _asked(request: StopRequest) -> str:
    return f"{request.reason} {request.detail}".strip()
