"""What a run does when nodes come and go: part of the environment file, and of every job as it was started."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from trainfabric_plan.model import Strict


class FaultTolerance(Strict):
    """What a run does when nodes are lost or come late."""

    start_deadline_s: Annotated[int, Field(ge=60, le=86_400)] = 1800
    """Seconds in which all nodes must come up when a job starts; then those that did are released, and the job has
    failed, so that no part of a fleet is billed while it waits. Later, nodes that no layout fits are released when no
    other has come for as long; the job has stopped, and can be resumed."""
    wait_for_replacement_s: Annotated[int, Field(ge=0, le=604_800)] = 300
    """Seconds to wait for the replacement of a lost node; then training goes on with the largest layout that fits the
    nodes that are left, and takes the replacement in at a checkpoint. 0 goes on at once."""
    minimum_nodes: Annotated[int, Field(ge=1)] | None = None
    """Fewest nodes to train on; with fewer, a run waits. As few as the layout admits if not given."""
    heartbeats: Literal["production", "fast"] = "production"
    """production: a node may stall for ten seconds, and more, without a restart. fast: a lost node is noticed within
    two seconds, and a stall of two seconds is a loss."""
