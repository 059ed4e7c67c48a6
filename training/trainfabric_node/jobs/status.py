"""The state of a job in words and numbers."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Any

from pydantic import AwareDatetime

from trainfabric_node.jobs.ledger import JobLedger
from trainfabric_node.jobs.records import JobSpec, NodeState, NodeStatus, Outcome, now
from trainfabric_node.jobs.run_records import RunRecords
from trainfabric_plan.model import Strict

_SILENT = timedelta(minutes=5)
"""Nodes report every few seconds once they have booted, which takes minutes."""


class JobState(StrEnum):
    """How far a job is."""

    NONE = "none"
    STARTING = "starting"
    RUNNING = "running"
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
    data: str | None = None
    created: AwareDatetime | None = None
    nodes_expected: int | None = None
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


def no_job(environment: str) -> JobStatus:
    """The status of an environment in which no job was ever started."""
    return JobStatus(environment=environment, state=JobState.NONE, summary="no job has been started")


def job_status(ledger: JobLedger, spec: JobSpec) -> JobStatus:
    """The status of a job's newest run."""
    records = ledger.run(spec.job, spec.run)
    nodes, outcome = records.nodes(), records.outcome()
    state = _state(ledger, spec, records, nodes, outcome)
    last = next(iter(ledger.steps(spec.job)[-1:]), {})
    checkpoints = ledger.checkpoints(spec.job)
    commit = checkpoints.newest()
    return JobStatus(
        environment=spec.environment,
        state=state,
        summary=_summary(spec, state, nodes, outcome, last) + _silence(spec, state, nodes),
        job=spec.job,
        run=spec.run,
        resume=spec.resume,
        recipe=spec.recipe.name,
        data=spec.data,
        created=spec.created,
        nodes_expected=spec.plan.nodes,
        nodes=nodes,
        step=last.get("step"),
        steps=spec.recipe.steps,
        loss=last.get("loss"),
        tokens_per_second=_rate(last),
        checkpoint_step=commit.step if commit else None,
        checkpoint_uri=checkpoints.checkpoint_uri(commit) if commit else None,
        records_uri=records.uri,
    )


def _state(
    ledger: JobLedger, spec: JobSpec, records: RunRecords, nodes: list[NodeStatus], outcome: Outcome | None
) -> JobState:
    if outcome:
        return JobState(outcome.state)
    holder = ledger.current()
    if holder is None or holder.nonce != spec.nonce:
        return JobState.FAILED
    if records.stop_request() or any(node.state.ended for node in nodes):
        return JobState.STOPPING
    running = sum(node.state is NodeState.RUNNING for node in nodes)
    return JobState.RUNNING if running >= spec.plan.nodes else JobState.STARTING


def _summary(
    spec: JobSpec, state: JobState, nodes: list[NodeStatus], outcome: Outcome | None, last: dict[str, Any]
) -> str:
    at = f" at step {last['step']} of {spec.recipe.steps}" if last else ""
    if state is JobState.STARTING:
        return f"starting: {len(nodes)} of {spec.plan.nodes} nodes have come up"
    if state is JobState.RUNNING:
        return f"running{at}" if last else "running: the first step is not finished yet"
    if state is JobState.STOPPING:
        left = sum(not node.state.ended for node in nodes)
        return f"stopping{at}: {left} of {len(nodes)} nodes are still at it"
    detail = outcome.detail if outcome else "the run ended without saying how"
    return f"{state}{at}" + (f": {detail}" if detail else "")


def _silence(spec: JobSpec, state: JobState, nodes: list[NodeStatus]) -> str:
    since = now() - max([spec.created, *(node.updated for node in nodes)])
    if state.ended or since < _SILENT:
        return ""
    return f"; no node has reported for {since // timedelta(minutes=1)} minutes"


def _rate(last: dict[str, Any]) -> float | None:
    tokens, seconds = last.get("tokens"), last.get("seconds")
    return tokens / seconds if tokens and seconds else None
