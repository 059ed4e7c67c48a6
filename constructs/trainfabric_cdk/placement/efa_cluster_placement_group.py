"""The placement groups of a fleet: as many as are asked for, and none where the capacity has a place already."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from trainfabric_cdk.capacity import Capacity
from trainfabric_cdk.errors import is_known, is_whole_number, property_error, refuse
from trainfabric_cdk.properties import checked_types
from trainfabric_plan.capacity import PlacementRule
from trainfabric_plan.errors import Mistake
from trainfabric_plan.topology import PlacedNodes, Topology, balanced_ranges


@dataclass(frozen=True, kw_only=True)
class NodeRange:
    """Nodes that share a placement group, by their numbers in rank order.

    Attributes:
        first: Number of the first node; the coordinator of a fleet is node 0.
        last: Number of the last node, itself included; `None` if the number of nodes was not given.
        name: Name of the group, known at deploy time if EC2 chooses it; `None` if they are in none.
        group: The group; `None` if they are in none.
    """

    first: int
    last: int | None
    name: str | None
    group: ec2.IPlacementGroup | None

    @property
    def nodes(self) -> int | None:
        """How many they are."""
        return None if self.last is None else self.last - self.first + 1


class EfaClusterPlacementGroup(Construct):
    """Nodes close to each other, in one zone, for the latency that EFA is bought for, as far as their capacity lets it.

    On demand and spot nodes get a group of strategy cluster, which EC2 names, so that it can be replaced. Nodes of a
    Capacity Block get none: they have their place, and a launch into a group fails for want of capacity. Nodes of a
    reservation stand in the group that the reservation was made in, or in none (EC2 user guide, capacity-blocks-launch
    and cr-cpg; read 2026-11). Spot nodes in a group must terminate when interrupted.

    AWS documents 500 placement groups per account and region. A limit on the instances of one cluster group was looked
    for and not found (EC2 user guide, limitations-placement-groups and create-placement-group; API, PlacementGroup;
    read 2026-11-30): what limits a group is the capacity close together when its nodes launch. `max_nodes_per_group` is
    for what experience or AWS Support says of a type and a zone (docs/how-to/place-a-large-fleet.md).

    Args:
        scope: Parent construct.
        id: Construct id.
        capacity: How the nodes are bought; on demand if not given.
        nodes: Number of nodes, spares included. Needed only to cut them into several groups and for a topology.
        max_nodes_per_group: Most nodes of one group; a single group if not given.

    Attributes:
        groups: The nodes by group, in rank order, without a gap; at least one entry, whether or not it has a group.
        topology: The same as plain data.

    Raises:
        PropertyError: If the nodes cannot be cut so, or their capacity is placed already.
    """

    @checked_types(but=("capacity", "nodes", "max_nodes_per_group"))
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        capacity: Capacity | None = None,
        nodes: int | None = None,
        max_nodes_per_group: int | None = None,
    ) -> None:
        super().__init__(scope, id)
        capacity = capacity or Capacity.on_demand()
        refuse(_mistakes(self.node.path, capacity, nodes, max_nodes_per_group))
        ranges = _ranges(nodes, max_nodes_per_group)
        self.groups: tuple[NodeRange, ...] = tuple(
            self._placed(capacity, number, first, last) for number, (first, last) in enumerate(ranges, start=1)
        )

    @property
    def topology(self) -> Topology:
        """Which nodes are in which group, as data for `topology.conf` and rank order."""
        return Topology(
            placed=tuple(PlacedNodes(first=range.first, last=range.last, group=range.name) for range in self.groups)
        )

    @property
    def placement_group(self) -> ec2.IPlacementGroup:
        """The single group, for whoever takes one of the CDK's.

        Raises:
            PropertyError: If there is none, or there are several.
        """
        found = [range.group for range in self.groups if range.group]
        if len(found) != 1:
            remedy = "read groups, which has the group of each range of nodes"
            raise property_error(self, "placement_group", "read only where there is a single one", len(found), remedy)
        return found[0]

    @property
    def placement_group_name(self) -> str:
        """Name of the single group.

        Raises:
            PropertyError: If there is none, or there are several.
        """
        return self.placement_group.placement_group_name

    def _placed(self, capacity: Capacity, number: int, first: int, last: int | None) -> NodeRange:
        suffix = "" if number == 1 else str(number)
        name = self._group_name(capacity, suffix)
        group = ec2.PlacementGroup.from_placement_group_name(self, f"Group{suffix}Name", name) if name else None
        return NodeRange(first=first, last=last, name=name, group=group)

    def _group_name(self, capacity: Capacity, suffix: str) -> str | None:
        if capacity.placement is not PlacementRule.CLUSTER:
            return capacity.placement_group_name
        id = f"Group{suffix}" if suffix else "Resource"
        return ec2.CfnPlacementGroup(self, id, strategy="cluster").attr_group_name


def _ranges(nodes: int | None, most: int | None) -> list[tuple[int, int | None]]:
    if nodes is None:
        return [(0, None)]
    return list(balanced_ranges(nodes, most or nodes))


def _mistakes(where: str, capacity: Capacity, nodes: object, most: object) -> Iterator[Mistake]:
    if nodes is not None:
        yield from _number_mistakes(where, "nodes", nodes)
    if most is None:
        return
    yield from _number_mistakes(where, "max_nodes_per_group", most)
    if capacity.placement is not PlacementRule.CLUSTER:
        rule, got = (
            f"absent for {capacity.kind.value}: its nodes have their place",
            str(most) if is_known(most) else "a token",
        )
        yield Mistake(where=where, name="max_nodes_per_group", rule=rule, got=got, remedy="leave it out")
    elif nodes is None:
        remedy = "add nodes, or leave max_nodes_per_group out"
        yield Mistake(where=where, name="nodes", rule="given with max_nodes_per_group", got="nothing", remedy=remedy)


def _number_mistakes(where: str, name: str, value: object) -> Iterator[Mistake]:
    if not is_known(value):
        remedy = "give it as a number: the groups follow from it"
        yield Mistake(where=where, name=name, rule="at least 1", got="a token", remedy=remedy)
    elif not is_whole_number(value):
        yield Mistake(where=where, name=name, rule="a whole number", got=repr(value))
    elif value < 1:
        yield Mistake(where=where, name=name, rule="at least 1", got=str(value))
