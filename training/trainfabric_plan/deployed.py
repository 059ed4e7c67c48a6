"""What a deployed environment tells whoever works with it: the value of its SSM parameter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field, ValidationError, model_validator

from trainfabric_plan.contract import Role, environment_parameter
from trainfabric_plan.errors import mistake
from trainfabric_plan.model import Strict

MOST_GROUPS_OF_A_SMALL_PARAMETER = 16
"""Auto Scaling groups whose description fits a standard parameter of 4 KiB, with every name at its longest: about 170
bytes each, and 1 KiB for the rest. More take an advanced one of 8 KiB, which SSM bills (SSM user guide,
parameter-store-advanced-parameters, 2026-11)."""

MOST_GROUPS = 40
"""Auto Scaling groups whose description fits an advanced parameter."""


class NodeGroup(Strict):
    """One Auto Scaling group: nodes of one role in one placement group."""

    name: str
    role: Role
    launch_template: str | None
    """Id of its launch template; `None` if it is not ours to pin."""
    nodes: Annotated[int, Field(ge=0)]
    """Nodes of it that train when the whole environment does; 0 for a coordinator that only controls."""
    spares: Annotated[int, Field(ge=0)] = 0
    """Nodes that it admits beyond these."""
    placement: Annotated[int, Field(ge=0)] = 0
    """Number of its placement group, counted from 0; nodes of one number are near each other."""


class DeployedEnvironment(Strict):
    """Names of deployed resources, written by the stacks, read by the command line and the nodes."""

    name: str
    region: str
    data_bucket: str
    checkpoint_bucket: str
    lustre_dns_name: str
    lustre_mount_name: str
    groups: tuple[NodeGroup, ...]
    """The coordinator's first; a fleet of one node has no other."""
    ranks_per_node: int
    asset_bucket: str
    """Where the training asset lies that the launch templates name; the next deploy may replace it."""
    asset_key: str
    events_queue: str | None = None
    """URL of the queue in which EC2's notices for the nodes arrive; `None` if there is none."""

    @model_validator(mode="after")
    def _has_one_coordinator(self) -> DeployedEnvironment:
        roles = [group.role for group in self.groups]
        if roles[:1] != [Role.COORDINATOR] or Role.COORDINATOR in roles[1:] or self.coordinator.nodes > 1:
            raise ValueError("the first group must be the coordinator's, the others of workers")
        return self

    @property
    def coordinator(self) -> NodeGroup:
        """The group of the coordinator: one node."""
        return self.groups[0]

    @property
    def worker_groups(self) -> tuple[NodeGroup, ...]:
        """The groups of workers, those of the coordinator's placement group first; none for a fleet of one node."""
        return self.groups[1:]

    @property
    def coordinator_trains(self) -> bool:
        """Whether the coordinator is one of the nodes that train; else it only controls, and comes on top of them."""
        return trains(self.coordinator)

    @property
    def nodes(self) -> int:
        """Nodes that train when the whole environment does."""
        return sum(group.nodes for group in self.groups)

    @property
    def spares(self) -> int:
        """Nodes that the groups admit beyond these."""
        return sum(group.spares for group in self.groups)

    def group(self, name: str) -> NodeGroup:
        """The group of this name; raises `KeyError`."""
        return {group.name: group for group in self.groups}[name]


def trains(coordinator: NodeGroup) -> bool:
    """Whether the node of a coordinator's group is one of those that train."""
    return coordinator.nodes > 0


def group_sizes(groups: Sequence[NodeGroup], nodes: int, spares: int) -> dict[str, int]:
    """How many nodes each group is asked for, so that nodes are near each other: groups are filled one after the other.

    Fewer nodes than are deployed leave the last groups empty, never the coordinator's placement group. Spares are first
    those of groups that have nodes. What no group has room for is asked of the last one, which says so.

    Args:
        groups: All of an environment, the coordinator's first.
        nodes: That train.
        spares: Beyond these.

    Returns:
        By the name of the group; the coordinator's is one, whether it trains or not.
    """
    coordinator, *workers = groups
    sizes: dict[str, int] = {}
    left = nodes - trains(coordinator)
    for group in workers:
        sizes[group.name] = min(group.nodes, left)
        left -= sizes[group.name]
    left += spares
    for group in sorted(workers, key=lambda one: not sizes[one.name]):
        more = min(group.nodes + group.spares - sizes[group.name], left)
        sizes[group.name] += more
        left -= more
    if workers:
        sizes[workers[-1].name] += left
    return {coordinator.name: 1, **sizes}


def parse_deployed(text: str, environment: str) -> DeployedEnvironment:
    """The value of an environment's parameter.

    Raises:
        InvalidInput: If another version of trainfabric wrote it.
    """
    try:
        return DeployedEnvironment.model_validate_json(text)
    except ValidationError as error:
        problem = error.errors()[0]
        got = f"{'.'.join(map(str, problem['loc']))}: {problem['msg'].lower()}".removeprefix(": ")
        where, name = f"environment {environment}", environment_parameter(environment)
        raise mistake(where, name, "as this version writes it", got, "deploy the environment again") from None
