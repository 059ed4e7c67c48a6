"""One run under one controller: beats come in, decisions are carried out, and the end is brought about."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from trainfabric_node.checkpoint import new_nonce
from trainfabric_node.jobs.ledger import JobLedger
from trainfabric_node.jobs.records import ControllerAddress, JobSpec, NodeState, NodeStatus, Outcome, StopRequest, now
from trainfabric_node.membership.actions import Action, Conclude, Form, Replace, Say
from trainfabric_node.membership.announced import Announcement, Announcements, BlockEnds
from trainfabric_node.membership.census import Census
from trainfabric_node.membership.clerk import Asked, Clerk
from trainfabric_node.membership.core import Core, Own
from trainfabric_node.membership.ending import Ending
from trainfabric_node.membership.epochs import Epochs
from trainfabric_node.membership.hands import FleetLike, Hands
from trainfabric_node.membership.metrics import MetricSink, StepMetrics
from trainfabric_node.membership.protocol import Answer, Beat, EpochOrder
from trainfabric_node.membership.statuses import statuses
from trainfabric_node.membership.timing import PROFILES, Profile, Timing
from trainfabric_node.membership.watch import Past, told_nodes
from trainfabric_node.membership.worker import Worker
from trainfabric_plan.contract import Event
from trainfabric_plan.errors import Refused, TrainfabricError, Unreachable

_LOG = logging.getLogger(__name__)
_METRICS_S = 10.0
_MEMBERS_S = 30.0
_QUEUE_S = 1.0
_UP = (NodeState.RUNNING, NodeState.SPARE)
_FAREWELL_S = 20.0
"""For the nodes of a run that has failed to upload what they have written, before they are released."""

_HANDS_S = 5.0
_THREADS_S = 5.0


@dataclass(frozen=True, kw_only=True)
class Station:
    """The controller's node and its surroundings.

    Attributes:
        instance_id: Of the node.
        address: Of the node; the controller listens on it alone.
        control_port: Where it listens; 0 for any free port.
        rendezvous_port: Of the rendezvous store beside it.
        ledger: The records of the environment's jobs.
        fleet: Opens the fleet of a job.
        deployed: Opens the environment's fleet as it is deployed.
        metrics: Where training metrics go.
        announcements: Opens the queue of what EC2 announces about nodes, if there is one; calls the first with each
            announcement as long as the second does not say that the run is over.
        timings: How often things happen, and how long silence is borne.
        incarnation: Of this process.
        poll_s: Between two looks for a job.
        clock: Seconds, monotonic.
    """

    instance_id: str
    address: str
    control_port: int
    rendezvous_port: int
    ledger: JobLedger
    fleet: Callable[[JobSpec], FleetLike]
    deployed: Callable[[], FleetLike]
    metrics: MetricSink
    announcements: Callable[[Callable[[Announcement], None], Callable[[], bool]], Announcements] | None = None
    timings: dict[Profile, Timing] = field(default_factory=lambda: dict(PROFILES))
    incarnation: str = field(default_factory=new_nonce)
    poll_s: float = 1.0
    clock: Callable[[], float] = time.monotonic

    def as_announced(self, port: int) -> ControllerAddress:
        """Where this controller listens."""
        return ControllerAddress(
            host=self.address,
            port=port,
            rendezvous_port=self.rendezvous_port,
            incarnation=self.incarnation,
            instance_id=self.instance_id,
            announced=now(),
        )


class _Judge:
    """Asks the core about nodes that are to be given back, and tells what became of them."""

    def __init__(
        self,
        core: Core,
        lock: threading.Lock,
        clock: Callable[[], float],
        say: Callable[[Event, dict[str, Any]], None],
    ) -> None:
        self._core = core
        self._lock = lock
        self._clock = clock
        self._say = say

    def is_unwanted(self, instance_id: str) -> bool:
        with self._lock:
            return self._core.is_unwanted(instance_id)

    def is_gone(self, request: Replace, *, by_us: bool) -> None:
        with self._lock:
            self._core.given_back(request.instance_id)
        if by_us and request.another:
            self._say(Event.NODE_REPLACED, {"node": request.instance_id, "detail": request.detail})

    def is_kept(self, request: Replace) -> None:
        with self._lock:
            self._core.spare(request.instance_id, self._clock())


class Session:
    """A run from the moment its controller has announced itself.

    Args:
        station: The controller's node.
        spec: The run.
        controller: As it is announced.

    Raises:
        Refused: If a later run or another controller has taken the job over.
        Unreachable: If the bucket does not answer.
    """

    def __init__(self, station: Station, spec: JobSpec, controller: ControllerAddress) -> None:
        self._station = station
        self._spec = spec
        self._timing = station.timings[spec.policy.heartbeats]
        self._records = station.ledger.run(spec.job, spec.run)
        self._epochs = Epochs(station.ledger, spec, controller)
        self._lock = threading.Lock()
        self._woken = threading.Event()
        self._stale = ""
        self._leaving: Callable[[], bool] = lambda: False
        self._has_ended = False
        self._reservations = {one.capacity_reservation for one in spec.pins.groups.values()} if spec.pins else set()
        self._committed_step: int | None = None
        order = self._epochs.adopt()
        self._earlier = self._records.nodes()
        self._core = self._make_core(order)
        self._clerk = Clerk(
            station.ledger, spec, station.incarnation, self._statuses, self._hear_bucket, self._timing.ask_s
        )
        judge = _Judge(self._core, self._lock, station.clock, self._say)
        self._hands = Hands(lambda: station.fleet(spec), judge)
        self._metrics = StepMetrics(
            self._records, self._epoch, lambda: self._committed_step, station.metrics, _METRICS_S
        )
        self._clerks = Worker("clerk", self._clerk.work, self._timing.ask_s, self._woken.set)
        self._handwork = Worker("hands", self._hands.work, _HANDS_S, self._woken.set)
        census = Census(spec, station.instance_id, self._core, self._lock, self._hands, station.clock)
        self._census = Worker("census", census.count, _MEMBERS_S, self._woken.set)
        self._telemetry = Worker("metrics", self._metrics.publish_when_due, 1.0, self._woken.set)
        self._workers = [self._clerks, self._handwork, self._census, self._telemetry]
        if station.announcements:
            queue = station.announcements(self._hear_announcement, self._is_over)
            self._workers.append(Worker("announcements", queue.work, _QUEUE_S, self._woken.set))
        goes_on = f"goes on with epoch {order.record.number}" if order else "waits for the nodes"
        self._say(Event.CONTROLLER, {"node": station.instance_id, "detail": goes_on})
        if order:
            self._hands.protect(node.instance_id for node in order.record.nodes)

    def respond(self, beat: Beat) -> Answer:
        """What is wanted of the node that says this; raises `Refused` if it is not of the run."""
        with self._lock:
            has_news = self._core.hear(beat, self._station.clock())
            answer = self._core.answer(beat)
        if has_news:
            self._woken.set()
        return answer

    def follow(self, leaving: Callable[[], bool]) -> None:
        """Carries the decisions out until the run is over or the process is to leave.

        Raises:
            Refused: If another controller goes on with the run.
        """
        self._leaving = leaving
        for worker in self._workers:
            worker.start()
        try:
            while not leaving() and self._core.concluded is None:
                self._look()
                for worker in self._workers:
                    worker.check()
                self._woken.wait(self._timing.beat_s / 2)
                self._woken.clear()
        finally:
            self._has_ended = True
            for worker in self._workers:
                worker.stop(_THREADS_S)

    def wake(self) -> None:
        """Lets `follow` look now."""
        self._woken.set()

    def _look(self) -> None:
        if self._stale:
            raise Refused(self._stale)
        with self._lock:
            actions = self._core.tick(self._station.clock())
        for action in actions:
            self._do(action)

    def _do(self, action: Action) -> None:
        match action:
            case Say():
                self._say(action.event, self._with_times(action.fields))
            case Replace():
                self._hands.replace(action)
                self._handwork.hurry()
            case Form():
                self._form(action)
            case Conclude():
                self._finish(action)

    # --- epochs

    def _form(self, form: Form) -> None:
        try:
            order = self._epochs.claim(form)
        except Unreachable as error:
            _LOG.warning("the next epoch could not be claimed: %s", error)
            time.sleep(self._timing.beat_s)
            with self._lock:
                self._core.not_formed()
            return
        with self._lock:
            self._core.formed(order)
        self._tell_epoch(order)
        self._hands.protect(node.instance_id for node in order.record.nodes)
        self._handwork.hurry()

    def _tell_epoch(self, order: EpochOrder) -> None:
        record = order.record
        fields = {
            "epoch": record.number,
            "nodes": [node.instance_id for node in record.nodes],
            "layout": record.plan.shape,
            "ranks": record.plan.ranks,
            "detail": record.detail,
        }
        self._say(Event.EPOCH, fields)

    # --- the end

    def _finish(self, conclusion: Conclude) -> None:
        """Releases the nodes, says how the run ended and frees the environment.

        In this order: whoever sees the outcome may start the next run at once, and its nodes must not be released then.
        """
        self._say(Event.RELEASE, {"detail": conclusion.detail or conclusion.state})
        self._await_farewell()
        for worker in (self._clerks, self._handwork, self._census, self._telemetry):
            worker.stop(_THREADS_S)
        attempt(self._metrics.publish)
        outcome = Outcome(state=conclusion.state, step=self._newest_step(), detail=conclusion.detail, ended=now())
        ending = Ending(self._station.ledger, self._spec, self._hands.release, self._complain, self._pause)
        if ending.bring_about(outcome):
            _LOG.info("job %s, run %d: %s %s", self._spec.job, self._spec.run, outcome.state, outcome.detail)

    def _complain(self, error: TrainfabricError) -> None:
        """The nodes are still there, and billed: that is told at once, as it may take long."""
        self._say(Event.RELEASE, {"detail": f"tried again until it succeeds: {error}"})
        attempt(self._clerk.publish)

    def _pause(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while not self._leaving() and (left := until - time.monotonic()) > 0:
            self._woken.wait(left)
            self._woken.clear()
        return not self._leaving()

    def _await_farewell(self) -> None:
        """Ranks that left in order are uploaded; others are killed now, and their last words on the way."""
        course, until = self._core.course, time.monotonic() + _FAREWELL_S
        if course is None or (course.end is not None and course.end.state != "failed"):
            return
        while time.monotonic() < until:
            with self._lock:
                if self._core.quiet(self._station.clock()):
                    return
            time.sleep(self._timing.beat_s)

    # --- what the threads ask

    def _hear_bucket(self, asked: Asked) -> None:
        ours, holder = self._station.incarnation, asked.holder
        with self._lock:
            self._core.ask_to_stop(asked.stop)
            if asked.commits:
                self._core.committed(len(asked.commits))
                self._committed_step = asked.commits[-1].step
            if holder != self._spec.nonce and self._core.concluded is None:
                _LOG.warning("job %s, run %d: ended by another", self._spec.job, self._spec.run)
                self._core.abandon()
        if asked.controller not in (None, ours):
            self._stale = (
                f"job {self._spec.job}: controller must be {asked.controller}, which is announced, got {ours}; "
                "the other one goes on"
            )
        if asked.stop or self._stale:
            self._woken.set()

    def _hear_announcement(self, said: Announcement) -> None:
        """What EC2 says of nodes of others is dropped."""
        if isinstance(said, BlockEnds):
            if said.reservation in self._reservations:
                detail = f"because Capacity Block {said.reservation} ends at {said.end}"
                self._records.request_stop(StopRequest(detail=detail, requested=now()))
                self._clerks.hurry()
            return
        with self._lock:
            is_news = self._core.announce(said.instance_id, said.notice)
        if is_news:
            self._woken.set()

    def _is_over(self) -> bool:
        return self._has_ended or self._leaving() or self._core.concluded is not None

    def _statuses(self) -> list[NodeStatus]:
        with self._lock:
            own = "" if self._spec.coordinator_trains else self._station.instance_id
            return statuses(self._core, self._station.clock(), self._earlier, own)

    def _epoch(self) -> int:
        course = self._core.course
        return course.record.number if course else 0

    def _newest_step(self) -> int | None:
        commits = attempt(self._epochs.commits)
        return commits[-1].step if commits else None

    # --- small things

    def _make_core(self, order: EpochOrder | None) -> Core:
        began, spec = self._station.clock(), self._spec
        due = spec.created + timedelta(seconds=spec.policy.start_deadline_s)
        deadline = began + max((due - datetime.now(UTC)).total_seconds(), self._timing.dead_s)
        up = frozenset(node.instance_id for node in self._earlier if node.state in _UP)
        past = Past(up=up, told=told_nodes(self._records.events()))
        own = Own(
            incarnation=self._station.incarnation,
            instance_id=self._station.instance_id,
            began=began,
            deadline=deadline,
        )
        return Core(spec, self._timing, own, order, past)

    def _say(self, event: Event, fields: dict[str, Any]) -> None:
        _LOG.info("%s %s", event.value, " ".join(f"{name}={value}" for name, value in fields.items()))
        self._clerk.say(event, fields)
        self._clerks.hurry()

    def _with_times(self, fields: dict[str, Any]) -> dict[str, Any]:
        until = fields.get("until")
        if until is None:
            return fields
        moment = datetime.now(UTC) + timedelta(seconds=until - self._station.clock())
        return {**fields, "until": moment.isoformat(timespec="milliseconds")}


def attempt(action: Callable[[], Any]) -> Any:
    """The action's answer; `None`, with a line in the log, if a service does not answer."""
    try:
        return action()
    except TrainfabricError as error:
        _LOG.warning("%s", error)
        return None
