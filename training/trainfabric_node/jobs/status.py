"""The state of a job in words and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from pydantic import AwareDatetime, Field

from trainfabric_node.jobs.fleet import Member
from trainfabric_node.jobs.ledger import JobLedger
from trainfabric_node.jobs.phase import Phase, Whereabouts, whereabouts
from trainfabric_node.jobs.records import (
    REPORT_S,
    ControllerAddress,
    JobSpec,
    NodeState,
    NodeStatus,
    Outcome,
    StopRequest,
    now,
)
from trainfabric_node.jobs.story import tell
from trainfabric_plan.contract import Role
from trainfabric_plan.model import Strict

NODES_GONE = "its nodes are gone"
NOT_THERE = "not in the fleet any more"
_EVERY_EPOCH = 10**9
"""A command need not tell of its steps: it counts as training from the beginning of an epoch."""

_SILENT = timedelta(seconds=5 * REPORT_S)


class JobState(StrEnum):
    """How far a job is."""

    NONE = "none"
    STARTING = "starting"
    """Nodes come up, or the ranks of the run's first epoch load."""
    RUNNING = "running"
    DRAINING = "draining"
    """All ranks save and leave, because the membership changes."""
    WAITING = "waiting"
    """Too few nodes, or no coordinator."""
    RESUMING = "resuming"
    """The membership has changed; the ranks have not finished a step since."""
    STOPPING = "stopping"
    STOPPED = "stopped"
    DONE = "done"
    FAILED = "failed"

    @property
    def ended(self) -> bool:
        """Whether nothing of it runs any more."""
        return self in (JobState.NONE, JobState.STOPPED, JobState.DONE, JobState.FAILED)


class JobStatus(Strict):
    """A job as its records show it. What is not known yet, or never was, is `None`."""

    environment: str
    state: JobState
    summary: str
    """The state in a sentence."""
    job: str | None = None
    run: int | None = None
    resume: bool | None = None
    recipe: str | None = None
    command: str | None = None
    """Somebody else's, which runs in place of a recipe."""
    data: str | None = None
    created: AwareDatetime | None = None
    nodes_expected: int | None = None
    """Nodes of the job's own plan."""
    spares: int = 0
    epoch: int | None = None
    """Number of the newest epoch of the run."""
    nodes_training: int | None = None
    """Nodes of that epoch."""
    layout: str | None = None
    """Its layout, or that of the job's own plan before the first epoch."""
    nodes: list[NodeStatus] = []
    step: int | None = None
    """Last optimizer step that the nodes have published, counted from 1 over all runs."""
    steps: int | None = None
    """Optimizer steps of the whole job."""
    loss: float | None = None
    tokens_per_second: float | None = None
    checkpoint_step: int | None = None
    """Step of the newest committed checkpoint."""
    checkpoint_uri: str | None = None
    records_uri: str | None = None
    """Where the newest run's telemetry and logs lie."""
    story: list[str] = []
    """What happened in the newest run, in order: a time of day in UTC and a sentence each."""
    lines: list[str] = Field(default=[], exclude=True)
    """The story for those who follow it: whatever comes has a line of its own, so that none changes any more."""
    events: list[dict[str, Any]] = []
    """What the story is told from; see `contract.Event`."""


def no_job(environment: str) -> JobStatus:
    """The status of an environment in which no job was ever started."""
    return JobStatus(environment=environment, state=JobState.NONE, summary="no job has been started")


def job_status(
    ledger: JobLedger, spec: JobSpec, members: Sequence[Member] | None = None, *, abandoned: bool = False
) -> JobStatus:
    """The status of a job's newest run.

    Args:
        ledger: The records.
        spec: The run.
        members: The nodes that the fleet has now; `None` if that is not known.
        abandoned: Whether its nodes are gone, and with them all who could have said how it ended.
    """
    run = _Run.read(ledger, spec, members, abandoned)
    checkpoints = ledger.checkpoints(spec.job)
    commit = checkpoints.newest()
    state = run.state()
    return JobStatus(
        environment=spec.environment,
        state=state,
        summary=run.summary(state) + run.silence(state),
        job=spec.job,
        run=spec.run,
        resume=spec.resume,
        recipe=spec.recipe.name if spec.recipe else None,
        command=spec.command.command if spec.command else None,
        data=spec.data,
        created=spec.created,
        nodes_expected=spec.plan.nodes,
        spares=spec.spares,
        epoch=run.where.epoch or None,
        nodes_training=run.where.nodes or None,
        layout=run.where.layout or spec.plan.shape,
        nodes=run.shown_nodes(),
        step=run.last.get("step"),
        steps=spec.recipe.steps if spec.recipe else None,
        loss=run.last.get("loss"),
        tokens_per_second=_rate(run.last),
        checkpoint_step=commit.step if commit else None,
        checkpoint_uri=checkpoints.checkpoint_uri(commit) if commit else None,
        records_uri=ledger.run(spec.job, spec.run).uri,
        story=tell(spec, run.events, run.stop, run.outcome),
        lines=tell(spec, run.events, run.stop, run.outcome, summed_up=False),
        events=run.events,
    )


def lost_coordinator(controller: ControllerAddress | None, members: Sequence[Member] | None) -> bool:
    """Whether the node that a run's controller was on is gone, as far as is known."""
    if controller is None or members is None:
        return False
    return all(one.leaving for one in members if one.instance_id == controller.instance_id)


@dataclass(frozen=True, kw_only=True)
class _Run:
    """What a status is made of."""

    spec: JobSpec
    holds: bool
    """Whether the run holds the environment."""
    nodes: list[NodeStatus]
    events: list[dict[str, Any]]
    last: dict[str, Any]
    where: Whereabouts
    controller: ControllerAddress | None
    stop: StopRequest | None
    outcome: Outcome | None
    members: Sequence[Member] | None
    abandoned: bool

    @classmethod
    def read(cls, ledger: JobLedger, spec: JobSpec, members: Sequence[Member] | None, abandoned: bool) -> _Run:
        records = ledger.run(spec.job, spec.run)
        holder = ledger.current()
        events, last = records.events(), ledger.last_step(spec.job) or {}
        return cls(
            spec=spec,
            holds=holder is not None and holder.nonce == spec.nonce,
            nodes=records.nodes(),
            events=events,
            last=last,
            where=whereabouts(events, last.get("epoch", 0) if spec.command is None else _EVERY_EPOCH),
            controller=records.controller(),
            stop=records.stop_request(),
            outcome=records.outcome(),
            members=members,
            abandoned=abandoned,
        )

    def state(self) -> JobState:
        if self.outcome:
            return JobState(self.outcome.state)
        if not self.holds or self.abandoned:
            return JobState.FAILED
        if self.stop:
            return JobState.STOPPING
        if self._lost_coordinator():
            return JobState.WAITING
        states = {
            Phase.GATHERING: JobState.STARTING,
            Phase.LOADING: JobState.STARTING if self.where.first else JobState.RESUMING,
            Phase.TRAINING: JobState.RUNNING,
            Phase.DRAINING: JobState.DRAINING,
            Phase.BETWEEN: JobState.RESUMING,
            Phase.WAITING: JobState.WAITING,
            Phase.RELEASING: JobState.STOPPING,
        }
        return states[self.where.phase]

    def summary(self, state: JobState) -> str:
        of = f" of {self.spec.recipe.steps}" if self.spec.recipe else ""
        at = f" at step {self.last['step']}{of}" if self.last else ""
        why = self._why(state)
        return f"{state}{at}" + (f": {why}" if why else "")

    def _why(self, state: JobState) -> str:
        if state.ended:
            silent = NODES_GONE if self.abandoned else "the run ended without saying how"
            return self.outcome.detail if self.outcome else silent
        if self._lost_coordinator():
            return self._coordinator()
        if self.stop:
            return "all ranks save, then the nodes are released"
        return self._phase()

    def shown_nodes(self) -> list[NodeStatus]:
        """As last written; but one that is not in the fleet any more, or whose run has ended, cannot be up."""
        there = None if self.members is None else {member.instance_id for member in self.members}
        return [self._shown(node, gone=there is not None and node.instance_id not in there) for node in self.nodes]

    def _shown(self, node: NodeStatus, *, gone: bool) -> NodeStatus:
        if node.state.ended:
            return node
        if self.outcome:
            return node.model_copy(update={"state": NodeState.STOPPED})
        return node.model_copy(update={"state": NodeState.LOST, "detail": NOT_THERE}) if gone else node

    def _lost_coordinator(self) -> bool:
        """At the end of a run it goes with the others, before the outcome is written."""
        releasing = self.where.phase is Phase.RELEASING
        return not releasing and lost_coordinator(self.controller, self.members)

    def _coordinator(self) -> str:
        gone = f"the coordinator {self.controller.instance_id if self.controller else ''} is gone"
        coming = [one for one in self.members or () if one.role is Role.COORDINATOR and not one.leaving]
        if not coming:
            return f"{gone}, and its replacement is not launched yet"
        return f"{gone}; its replacement {coming[0].instance_id} is coming up ({coming[0].life_cycle_state})"

    def _phase(self) -> str:
        where, because = self.where, f": {self.where.detail}" if self.where.detail else ""
        match where.phase:
            case Phase.GATHERING:
                up = sum(not one.state.ended and one.state is not NodeState.CONTROLLING for one in self.shown_nodes())
                return f"{up} of {self.spec.plan.nodes + self.spec.spares} nodes have come up"
            case Phase.LOADING:
                return f"epoch {where.epoch} is formed, and its ranks have not finished a step yet"
            case Phase.TRAINING:
                fewer = where.nodes < self.spec.plan.nodes
                return f"on {where.nodes} of {self.spec.plan.nodes} nodes, {where.layout}" if fewer else ""
            case Phase.DRAINING:
                return f"all ranks save and leave{because}"
            case Phase.BETWEEN:
                return f"epoch {where.epoch} has ended, and the next one is formed{because}"
            case Phase.WAITING:
                until = "for as long as it takes" if where.until is None else f"until {_clock(where.until)}"
                return f"{where.detail or 'too few nodes'}, {until}"
            case Phase.RELEASING:
                return "the nodes are released"

    def silence(self, state: JobState) -> str:
        """That no node was heard of, if they should have been."""
        heard = [node.updated for node in self.nodes] + [_time(event) for event in self.events[-1:]]
        since = now() - max([self.spec.created, *heard])
        if state.ended or since < _SILENT:
            return ""
        return f"; no node has reported for {since // timedelta(minutes=1)} minutes"


def _rate(last: dict[str, Any]) -> float | None:
    tokens, seconds = last.get("tokens"), last.get("seconds")
    return tokens / seconds if tokens and seconds else None


def _time(event: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(event["time"])


def _clock(time: str) -> str:
    return f"{datetime.fromisoformat(time).astimezone(UTC):%H:%M:%S} UTC"
