"""What supervisors and the controller say to each other: one JSON object a line over TCP.

A supervisor sends a `Beat` with all that it knows, and the controller answers each with an `Answer` with all that it
wants. Nothing depends on an earlier line, so that either side may start anew at any time.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AwareDatetime, Field

from trainfabric_plan.contract import Role
from trainfabric_plan.model import Strict
from trainfabric_plan.planning import AnyPlan

LONGEST_LINE = 4 * 1024 * 1024
"""Bytes; whoever says more in one line is cut off."""

EpochState = Literal["starting", "running", "resume", "done", "failed"]
"""Of one node's ranks: forked; taken a step; left in order to go on; finished; any of them is gone or stuck."""


class EpochNode(Strict):
    """A member of an epoch; its place in the list is its node rank."""

    instance_id: str
    address: str
    incarnation: str
    """Of its supervisor: one that started anew has lost its ranks, and is not this member."""


class EpochRecord(Strict):
    """One membership of a job, as `contract.epoch_key` keeps it. Numbers count over all runs of the job."""

    job: str
    run: int
    number: Annotated[int, Field(ge=1)]
    nonce: str
    """Names the epoch in the checkpoint log: its claim, and what its ranks commit."""
    nodes: tuple[EpochNode, ...]
    plan: AnyPlan
    """The layout on these nodes; global batch and sample order are those of the job's own plan."""
    detail: str
    """Why there is a new epoch, in words."""
    controller: str
    """Incarnation of the controller."""
    claimed: AwareDatetime


class EpochOrder(Strict):
    """An epoch as its members are to start it."""

    record: EpochRecord
    resume: bool
    """Whether there is a committed checkpoint to go on from."""
    from_step: int | None = None
    """Of which step; of the newest if `None`."""
    rendezvous_host: str
    rendezvous_port: int


class Drain(Strict):
    """All ranks of an epoch are to save at the same step and to leave."""

    epoch: int
    at: Literal["now", "checkpoint"]
    """At the next step, or at the next step that is saved anyway."""
    detail: str


class Notice(Strict):
    """Why a node is about to go."""

    kind: Literal["spot", "rebalance", "leave"]
    detail: str


_URGENCY = {"spot": 0, "leave": 1, "rebalance": 2}


def most_urgent(*notices: Notice | None) -> Notice | None:
    """Of several reasons to go the one that leaves least time; of equal ones the first."""
    return min((one for one in notices if one), key=lambda notice: _URGENCY[notice.kind], default=None)


class Pins(Strict):
    """What a node was launched with; a job takes in no node that differs from its own. `None` where not known."""

    asset_key: str | None = None
    image_id: str | None = None


class Stall(Strict):
    """A rank that has stopped moving."""

    rank: int
    host: str
    detail: str
    stack: str = ""


class NodeEpoch(Strict):
    """How far one node is in an epoch."""

    number: int
    state: EpochState
    step: int = 0
    """The highest optimizer step that a rank of the node has finished, counted over the job; 0 if none."""
    detail: str = ""
    hopeless: bool = False
    """Whether trying again cannot help: something in the input is wrong (`ExitStatus.USER_ERROR`)."""
    of_others: bool = False
    """Whether the ranks failed because ranks elsewhere were gone: no reason of its own."""
    stalls: tuple[Stall, ...] = ()


class Beat(Strict):
    """What a supervisor says."""

    token: str
    """Nonce of the run, which only those know who can read the bucket."""
    sequence: int
    instance_id: str
    address: str
    role: Role
    incarnation: str
    ready: bool
    """Whether its launcher is warm."""
    pins: Pins
    placement: Annotated[int, Field(ge=0)] = 0
    """Number of its placement group; nodes of one number are near each other."""
    notice: Notice | None = None
    epoch: NodeEpoch | None = None
    """The last epoch that it was a member of, as far as it has not been told of another."""


class Answer(Strict):
    """What the controller wants."""

    sequence: int
    """Of the beat."""
    controller: str
    """Incarnation of the controller."""
    epoch: int
    """Number of the current epoch, 0 before the first; ranks of an earlier one are to be killed."""
    order: EpochOrder | None = None
    """The current epoch, if the node is a member of it and has not yet said so."""
    drain: Drain | None = None
    concluded: bool = False
    """The run has ended: its ranks are to be killed, and the node waits for the next run."""


class Refusal(Strict):
    """What the controller says instead of an answer before it ends a connection."""

    refused: str
    """Why."""
