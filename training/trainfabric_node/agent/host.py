"""What a node's agent works with."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import TypeVar

from trainfabric_node.agent.launch import JOIN_TIMEOUT_S, Launch, Node, RunFiles, torchrun_command
from trainfabric_node.agent.metrics import MetricSink
from trainfabric_node.jobs.ledger import JobLedger
from trainfabric_node.jobs.records import JobSpec, StopReason
from trainfabric_plan.contract import RENDEZVOUS_PORT, checkpoint_prefix
from trainfabric_plan.errors import TrainfabricError

Answer = TypeVar("Answer")


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How often an agent looks, and how long it waits, in seconds.

    Attributes:
        poll_s: Between two looks at what is asked.
        publish_s: Between two uploads, at least.
        metrics_s: Between two publications of metrics.
        heartbeat_s: Between two reports of a node that still runs.
        notice_s: Between two looks for a spot notice; AWS recommends five seconds.
        meet_s: For the coordinator to come up and say where to meet.
        stop_s: For a step and a checkpoint, after a stop was asked for.
        unbegun_s: For torchrun to end by itself, after a stop was asked for before its ranks were there.
        interrupted_s: For the same if the node is being taken away; a spot notice comes two minutes ahead.
        failed_s: For a trainer to notice by itself that another node's has failed.
        result_s: For the node with rank 0 to publish the result.
        peers_s: For the other nodes to report their end to the coordinator.
        absent_s: Since the coordinator has last reported, or this node's end, until a worker concludes in its place.
    """

    poll_s: float = 1.0
    publish_s: float = 3.0
    metrics_s: float = 10.0
    heartbeat_s: float = 15.0
    notice_s: float = 5.0
    meet_s: float = JOIN_TIMEOUT_S
    stop_s: float = 600.0
    unbegun_s: float = 5.0
    interrupted_s: float = 90.0
    failed_s: float = 30.0
    result_s: float = 60.0
    peers_s: float = 120.0
    absent_s: float = 300.0

    def after(self, reason: StopReason) -> float:
        """How long a trainer may go on after a stop for this reason."""
        return {"asked": self.stop_s, "interrupted": self.interrupted_s, "failed": self.failed_s}[reason]


@dataclass(frozen=True, kw_only=True)
class Host:
    """This node and its surroundings.

    Attributes:
        node: Who it is.
        region: AWS region.
        ledger: The records of the environment's jobs.
        checkpoint_bucket: Address of the bucket, with a slash at its end.
        state: Directory for runs and caches.
        variables: What the trainer inherits from the environment.
        interruption: Says why the node is being taken away, or `None`; raises `Unreachable`.
        release_nodes: Asks for no nodes any more, when a run is over.
        metrics: Where the coordinator publishes training metrics.
        rendezvous_port: TCP port of the rendezvous, if this node is the coordinator.
        build_command: From a launch to the command that trains.
        patience: How long to wait for what.
        leaving: Set when the agent is to end.
    """

    node: Node
    region: str
    ledger: JobLedger
    checkpoint_bucket: str
    state: Path
    variables: Mapping[str, str]
    interruption: Callable[[], str | None]
    release_nodes: Callable[[], None]
    metrics: MetricSink
    rendezvous_port: int = RENDEZVOUS_PORT
    build_command: Callable[[Launch], Sequence[str]] = torchrun_command
    patience: Patience = field(default_factory=Patience)
    leaving: Event = field(default_factory=Event)

    def files(self, spec: JobSpec) -> RunFiles:
        """Where this run's files lie."""
        return RunFiles(directory=self.state / "runs" / spec.job / f"{spec.run:04d}", cache=self.state / "cache")

    def checkpoints(self, spec: JobSpec) -> str:
        """Address of the job's checkpoints."""
        return self.checkpoint_bucket + checkpoint_prefix(spec.job)


def attempt(action: Callable[[], Answer]) -> Answer | None:
    """The action's answer; `None`, with a line in the agent's log, if a service does not answer.

    Watching must not end because a look or an upload failed: training goes on without them.
    """
    try:
        return action()
    except TrainfabricError as error:
        logging.getLogger(__name__).warning("%s", error)
        return None
