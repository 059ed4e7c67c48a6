"""What a node's supervisor works with."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar

from trainfabric_node.agent.files import RunFiles
from trainfabric_node.checkpoint import new_nonce
from trainfabric_node.jobs.ledger import JobLedger
from trainfabric_node.jobs.records import JobSpec
from trainfabric_node.membership.protocol import Notice, Pins
from trainfabric_node.membership.timing import PROFILES, Profile, Timing
from trainfabric_plan.contract import Role, checkpoint_prefix
from trainfabric_plan.errors import TrainfabricError

Answer = TypeVar("Answer")


@dataclass(frozen=True, kw_only=True)
class Node:
    """This node, as the metadata service and its settings describe it.

    Attributes:
        instance_id: Of EC2.
        address: Private address of the primary interface.
        role: What it is in the fleet.
        pins: What it was launched with.
        placement: Number of its placement group.
        incarnation: Of this supervisor; one that starts anew has another, because its ranks are gone.
    """

    instance_id: str
    address: str
    role: Role
    pins: Pins = field(default_factory=Pins)
    placement: int = 0
    incarnation: str = field(default_factory=new_nonce)


class Nodes(Protocol):
    """What a supervisor does with a fleet; see `jobs.fleet.Fleet`."""

    def release(self, but: str | None = None) -> None:
        """Asks for no node any more, but for one."""

    def give_back(self, instance_id: str) -> bool:
        """Terminates a node, and asks for one less."""

    def replace(self, instance_id: str) -> bool:
        """Terminates a node, so that another is launched."""


@dataclass(frozen=True, kw_only=True)
class Host:
    """This node and its surroundings.

    Attributes:
        node: Who it is.
        ledger: The records of the environment's jobs.
        checkpoint_bucket: Address of the bucket, with a slash at its end.
        state: Directory for runs, caches and the launcher's socket.
        variables: Environment variables of the ranks.
        notices: Why EC2 takes the node back or may, most urgent first; raises `Unreachable`.
        fleet: The nodes of a run, to give them back when no coordinator is there to do it.
        timings: How often things happen, and how long silence is borne.
        poll_s: Between two looks for a job.
    """

    node: Node
    ledger: JobLedger
    checkpoint_bucket: str
    state: Path
    variables: Mapping[str, str]
    notices: Callable[[], list[Notice]]
    fleet: Callable[[JobSpec], Nodes]
    timings: Mapping[Profile, Timing] = field(default_factory=lambda: PROFILES)
    poll_s: float = 1.0

    def files(self, spec: JobSpec) -> RunFiles:
        """Where this run's files lie."""
        return RunFiles(directory=self.state / "runs" / spec.job / f"{spec.run:04d}", cache=self.state / "cache")

    def checkpoints(self, spec: JobSpec) -> str:
        """Address of the job's checkpoints."""
        return self.checkpoint_bucket + checkpoint_prefix(spec.job)

    def timing(self, spec: JobSpec) -> Timing:
        """That of the job's policy."""
        return self.timings[spec.policy.heartbeats]


def attempt(action: Callable[[], Answer]) -> Answer | None:
    """The action's answer; `None`, with a line in the log, if a service does not answer.

    Watching must not end because a look or an upload failed: training goes on without them.
    """
    try:
        return action()
    except TrainfabricError as error:
        logging.getLogger(__name__).warning("%s", error)
        return None
