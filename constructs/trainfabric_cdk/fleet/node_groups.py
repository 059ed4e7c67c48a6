"""Which Auto Scaling groups a fleet has: the coordinator's, and one of workers for every placement group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_ec2 as ec2

from trainfabric_cdk.placement import NodeRange
from trainfabric_plan.contract import Role


@dataclass(frozen=True, kw_only=True)
class PlannedGroup:
    """An Auto Scaling group to make.

    Attributes:
        role: What its nodes are.
        number: From 1, among the groups of this role.
        nodes: Nodes of it that train when the whole fleet does; 0 for a coordinator that only controls.
        spares: Nodes that it admits beyond these.
        placement: Number of its placement group, from 0.
        placement_group: Name of that group, maybe a token; `None` if its nodes are in none.
    """

    role: Role
    number: int
    nodes: int
    spares: int
    placement: int
    placement_group: str | None

    @property
    def most(self) -> int:
        """Most nodes that it may have."""
        return max(self.nodes, 1 if self.role is Role.COORDINATOR else 0) + self.spares

    def id(self, what: str) -> str:
        """Construct id of a part of it, such as `WorkerGroup`, `WorkerGroup2`."""
        return f"{self.role.value.capitalize()}{what}{'' if self.number == 1 else self.number}"


@dataclass(frozen=True, kw_only=True)
class FleetGroup:
    """An Auto Scaling group of a fleet, as it is made.

    Attributes:
        role: What its nodes are.
        number: From 1, among the groups of this role.
        nodes: Nodes of it that train when the whole fleet does; 0 for a coordinator that only controls.
        spares: Nodes that it admits beyond these.
        placement: Number of its placement group, from 0: nodes of one number are near each other.
        group: The Auto Scaling group.
        launch_template: Its launch template.
    """

    role: Role
    number: int
    nodes: int
    spares: int
    placement: int
    group: autoscaling.CfnAutoScalingGroup
    launch_template: ec2.CfnLaunchTemplate


def planned_groups(
    ranges: Sequence[NodeRange], *, nodes: int, spares: int, coordinator_trains: bool
) -> Iterator[PlannedGroup]:
    """The groups of a fleet, the coordinator's first.

    Nodes are numbered from 0; a coordinator that trains is node 0, and the spares come last.

    Args:
        ranges: The nodes by placement group, in order and without a gap, spares included.
        nodes: That train.
        spares: Beyond these.
        coordinator_trains: Whether the coordinator is node 0.
    """
    yield PlannedGroup(
        role=Role.COORDINATOR,
        number=1,
        nodes=int(coordinator_trains),
        spares=0,
        placement=0,
        placement_group=ranges[0].name if coordinator_trains else None,
    )
    number = 0
    for placement, place in enumerate(ranges):
        first = max(place.first, int(coordinator_trains))
        after = nodes + spares if place.last is None else place.last + 1
        training = max(min(after, nodes) - first, 0)
        if after > first:
            number += 1
            yield PlannedGroup(
                role=Role.WORKER,
                number=number,
                nodes=training,
                spares=after - first - training,
                placement=placement,
                placement_group=place.name,
            )


def fleet_group(
    planned: PlannedGroup, group: autoscaling.CfnAutoScalingGroup, launch_template: ec2.CfnLaunchTemplate
) -> FleetGroup:
    """A planned group that is made."""
    return FleetGroup(
        role=planned.role,
        number=planned.number,
        nodes=planned.nodes,
        spares=planned.spares,
        placement=planned.placement,
        group=group,
        launch_template=launch_template,
    )
