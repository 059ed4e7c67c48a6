"""What of an instance type, a way to buy it and a placement EC2 does not accept together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aws_cdk import Annotations
from aws_cdk import aws_ec2 as ec2
from constructs import IConstruct

from trainfabric_cdk.capacity import Capacity
from trainfabric_cdk.errors import is_known, property_error, refuse
from trainfabric_cdk.fleet.checks import checked_instance
from trainfabric_cdk.fleet.coordinator import Coordinator
from trainfabric_cdk.placement import EfaClusterPlacementGroup, NodeRange
from trainfabric_plan.capacity import (
    MOST_NODES_OF_A_BLOCK,
    CapacityKind,
    PlacementRule,
    are_too_many_for_a_block,
    partial_ultraserver,
)
from trainfabric_plan.catalog import InstanceType
from trainfabric_plan.catalog.types import NO_SOURCE, REFRESH
from trainfabric_plan.errors import Mistake


def placed(
    placement_group: EfaClusterPlacementGroup | ec2.IPlacementGroup | None, workers: Capacity
) -> tuple[NodeRange, ...]:
    """The nodes by placement group; those of a reservation are in its group, whether or not it is given again."""
    if isinstance(placement_group, EfaClusterPlacementGroup):
        return placement_group.groups
    name = placement_group.placement_group_name if placement_group else workers.placement_group_name
    return (NodeRange(first=0, last=None, name=name, group=placement_group),)


def is_close(workers: Capacity, ranges: Sequence[NodeRange]) -> bool:
    """Whether the nodes stand near each other, as far as can be told: a block and a reservation have their place."""
    return workers.placement is not PlacementRule.CLUSTER or all(place.name is not None for place in ranges)


def coordinator_capacity(coordinator: Coordinator, workers: Capacity) -> Capacity:
    """How the coordinator is bought: like the workers if it trains and their reservation holds, else on demand."""
    if coordinator.trains and workers.rule.reserved and not workers.rule.interruptible:
        return workers
    return Capacity.on_demand()


def check_capacity(
    scope: IConstruct,
    instance: InstanceType,
    workers: Capacity,
    coordinator: Coordinator,
    ranges: Sequence[NodeRange],
    *,
    nodes: int,
    spares: int,
) -> None:
    """Refuse what EC2 does not accept together.

    Raises:
        PropertyError: With every mistake.
    """
    where, of_the_coordinator = scope.node.path, coordinator_capacity(coordinator, workers)
    mistakes = list(placement_mistakes(where, instance, workers, ranges, nodes=nodes + spares))
    if coordinator.trains and of_the_coordinator is not workers:
        mistakes += capacity_mistakes(where, instance, of_the_coordinator, nodes=1, name="coordinator")
    if nodes > 1 or not coordinator.trains or of_the_coordinator is workers:
        mistakes += capacity_mistakes(where, instance, workers, nodes=nodes + spares)
    refuse(mistakes)
    _warn_of_partial_ultraservers(scope, instance, workers, nodes + spares)


def check_queue_capacity(
    scope: IConstruct, instance: InstanceType, workers: Capacity, *, nodes: int, efa: bool
) -> None:
    """Refuse what EC2 does not accept together for the nodes of a Slurm queue, which gets a group with EFA.

    Raises:
        PropertyError: With every mistake.
    """
    if not is_known(nodes):
        return
    clustered = efa and workers.placement is PlacementRule.CLUSTER
    ranges = [NodeRange(first=0, last=None, name="one of ParallelCluster, for EFA" if clustered else None, group=None)]
    where = scope.node.path
    refuse(
        [
            *placement_mistakes(where, instance, workers, ranges, nodes=nodes),
            *capacity_mistakes(where, instance, workers, nodes=nodes),
        ]
    )
    _warn_of_partial_ultraservers(scope, instance, workers, nodes)


def _warn_of_partial_ultraservers(scope: IConstruct, instance: InstanceType, workers: Capacity, nodes: int) -> None:
    if workers.kind is CapacityKind.CAPACITY_BLOCK and (waste := partial_ultraserver(instance, nodes)):
        Annotations.of(scope).add_warning_v2("trainfabric:partialUltraServer", waste)


def checked_control(scope: IConstruct, instance_type: object, nodes: InstanceType) -> InstanceType:
    """The catalog's row of the type of a coordinator that only controls.

    Raises:
        PropertyError: If it is not known, of another architecture than the nodes, or not sold on demand.
    """
    row = checked_instance(scope, instance_type, efa=False, name="coordinator")
    if row.architecture != nodes.architecture:
        rule = f"of architecture {nodes.architecture}, as {nodes.name} is: they share the image"
        raise property_error(scope, "coordinator", rule, f"{row.name}, which is {row.architecture}")
    refuse(capacity_mistakes(scope.node.path, row, Capacity.on_demand(), nodes=1, name="control coordinator"))
    return row


def capacity_mistakes(
    where: str, instance: InstanceType, capacity: Capacity, *, nodes: int, name: str = "workers"
) -> Iterator[Mistake]:
    """What EC2 refuses of the way in which nodes are bought.

    Args:
        where: Path of the construct.
        instance: The type of the nodes.
        capacity: How they are bought.
        nodes: How many are bought so, spares included.
        name: Which nodes.
    """
    sold = instance.usage_classes
    if sold is not None and capacity.rule.usage_class not in sold:
        remedy = "choose one of these, or another instance type"
        if name == "coordinator":
            remedy = "use Coordinator.control(), or buy all nodes in one of these ways"
        if name == "control coordinator":
            name, remedy = "coordinator", "choose another type for Coordinator.control, such as m7i.large"
        yield Mistake(
            where=where,
            name=name,
            rule=f"bought in a way in which EC2 sells {instance.name}: {', '.join(sorted(sold))}",
            got=capacity.kind.value,
            remedy=remedy,
        )
    is_block = capacity.kind is CapacityKind.CAPACITY_BLOCK
    if is_block and are_too_many_for_a_block(instance, nodes):
        yield Mistake(
            where=where,
            name="nodes",
            rule=f"at most the {MOST_NODES_OF_A_BLOCK} instances of one Capacity Block, spares included",
            got=str(nodes),
            remedy="use fewer nodes, or another way to buy them",
        )


def placement_mistakes(
    where: str, instance: InstanceType, workers: Capacity, ranges: Sequence[NodeRange], *, nodes: int
) -> Iterator[Mistake]:
    """What EC2 refuses of the placement groups.

    Args:
        where: Path of the construct.
        instance: The type of the nodes.
        workers: How they are bought.
        ranges: The nodes by placement group.
        nodes: How many stand in them, spares included.
    """
    named = [place.name for place in ranges if place.name is not None]
    yield from _range_mistakes(where, ranges, nodes)
    if named and instance.cluster_placement is False:
        rule, remedy = f"absent for {instance.name}, which starts in no cluster placement group", "leave it out"
        yield Mistake(where=where, name="placement_group", rule=rule, got=_shown(named[0]), remedy=remedy)
    elif named and workers.placement is PlacementRule.CLUSTER and instance.cluster_placement is None:
        reason = instance.unknown.get("cluster_placement", NO_SOURCE)
        rule = f"absent for {instance.name}: whether it starts in a cluster placement group is not known ({reason})"
        remedy = f"buy it with Capacity.block, or run `{REFRESH}` where the type is offered"
        yield Mistake(where=where, name="placement_group", rule=rule, got=_shown(named[0]), remedy=remedy)
    elif named and workers.placement is PlacementRule.NONE:
        rule = "absent for a Capacity Block: it has its place, and a launch into a group fails for want of capacity"
        remedy = "leave it out, or give EfaClusterPlacementGroup the capacity"
        yield Mistake(where=where, name="placement_group", rule=rule, got=_shown(named[0]), remedy=remedy)
    elif workers.placement is PlacementRule.OF_RESERVATION:
        yield from _foreign_groups(where, workers, named)


def _foreign_groups(where: str, workers: Capacity, named: Sequence[str]) -> Iterator[Mistake]:
    """A launch into another group than the reservation's own finds no capacity (ParallelCluster 3.16.1,
    `PlacementGroupCapacityReservationValidator`)."""
    own = workers.placement_group_name
    for name in named:
        if own is None or (is_known(own, name) and own != name):
            yield Mistake(
                where=where,
                name="placement_group",
                rule=f"the group that the reservation was made in, {'none' if own is None else own}",
                got=_shown(name),
                remedy="leave it out, and name the group in the Capacity if there is one",
            )


def _range_mistakes(where: str, ranges: Sequence[NodeRange], nodes: int) -> Iterator[Mistake]:
    last = ranges[-1].last
    if last is not None and last + 1 != nodes:
        yield Mistake(
            where=where,
            name="placement_group",
            rule=f"made for the {nodes} nodes of the fleet, spares included",
            got=f"one for {last + 1} nodes",
            remedy=f"give EfaClusterPlacementGroup nodes={nodes}",
        )


def _shown(name: str) -> str:
    return name if is_known(name) else "one made in this app"
