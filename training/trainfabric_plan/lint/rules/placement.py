"""Placement groups, zones, and what may be launched into them."""

from __future__ import annotations

from collections.abc import Iterator

from trainfabric_plan.lint.assembly import Assembly
from trainfabric_plan.lint.launches import AUTO_SCALING_GROUP, Launch, known_type, launches
from trainfabric_plan.lint.model import Broken, Rule, Severity
from trainfabric_plan.lint.values import UNKNOWN, Resource, Value

PLACEMENT_GROUP = "AWS::EC2::PlacementGroup"
_LIMITS = "EC2 user guide, limitations-placement-groups, read 2026-11"
_ZONES = "Auto Scaling API model of botocore 1.44.8, CreateAutoScalingGroup.PlacementGroup"


def cluster_group(launch: Launch, user: Resource) -> Value | None:
    """Where a launch or its group names a placement group that is known to be of strategy cluster."""
    named = [launch.placement("GroupName"), launch.placement("GroupId"), user.properties("PlacementGroup")]
    return next((value for value in named if _is_cluster(value)), None)


def _is_cluster(value: Value) -> bool:
    group = value.resource(PLACEMENT_GROUP)
    return group is not None and group.properties("Strategy").text == "cluster"


def _zone_of_subnet(subnet: Value) -> object:
    """Its zone: a text, the index of a `Fn::GetAZs`, or `UNKNOWN`."""
    resource = subnet.resource("AWS::EC2::Subnet")
    if resource is None:
        return UNKNOWN
    zone = resource.properties("AvailabilityZone")
    if zone.text is not None:
        return zone.text
    return _index_of_zones(zone.raw)


def _index_of_zones(raw: object) -> object:
    """The index in `Fn::Select` of `Fn::GetAZs`: different indexes are different zones."""
    match raw:
        case {"Fn::Select": [int() | str() as index, {"Fn::GetAZs": _}]} if str(index).isdigit():
            return int(index)
        case _:
            return UNKNOWN


def _zones(group: Resource) -> tuple[Value, set[object]]:
    """Where a group names its zones, and those that are known to differ from each other."""
    subnets = group.properties("VPCZoneIdentifier")
    if subnets.is_missing:
        zones = group.properties("AvailabilityZones")
        return zones, {zone.text for zone in zones.items if zone.text is not None}
    found = {_zone_of_subnet(subnet) for subnet in subnets.items}
    comparable = {type(zone) for zone in found - {UNKNOWN}}
    return subnets, found - {UNKNOWN} if len(comparable) == 1 else set()


def _distinct(value: Value) -> int:
    """How many of the elements are known to be different ones."""
    return len({repr(item.known) for item in value.items if not item.is_unknown})


def _several_zones(assembly: Assembly) -> Iterator[Broken]:
    for launch, group in _groups(assembly):
        place, zones = _zones(group)
        if cluster_group(launch, group) is not None and len(zones) > 1:
            yield Broken(
                at=place,
                must="in one availability zone for a cluster placement group",
                got=len(zones),
                remedy="name one subnet: nodes of a cluster placement group stand in one zone",
            )


def _efa_several_zones(assembly: Assembly) -> Iterator[Broken]:
    for launch, group in _groups(assembly):
        place, zones = _zones(group)
        if launch.efa_interfaces and cluster_group(launch, group) is None and len(zones) > 1:
            yield Broken(
                at=place,
                must="in one availability zone for nodes that talk over EFA",
                got=len(zones),
                remedy="name one subnet: EFA does not cross zones",
            )


def _several_subnets(assembly: Assembly) -> Iterator[Broken]:
    for launch, group in _groups(assembly):
        place, zones = _zones(group)
        subnets = _distinct(place)
        if cluster_group(launch, group) is not None and len(zones) <= 1 < subnets and not _all_in_one(place):
            yield Broken(
                at=place,
                must="one subnet for a cluster placement group, whose nodes stand in one zone",
                got=subnets,
                remedy="name one subnet, or make sure that all are in one zone",
            )


def _all_in_one(subnets: Value) -> bool:
    found = {_zone_of_subnet(subnet) for subnet in subnets.items}
    return len(found) == 1 and UNKNOWN not in found


def _groups(assembly: Assembly) -> Iterator[tuple[Launch, Resource]]:
    for launch in launches(assembly):
        for user in launch.users:
            if user.type == AUTO_SCALING_GROUP:
                yield launch, user


def _mixed_types(assembly: Assembly) -> Iterator[Broken]:
    for launch, group in _groups(assembly):
        overrides = group.properties("MixedInstancesPolicy", "LaunchTemplate", "Overrides")
        names = {value.text for one in overrides.items if (value := one.at("InstanceType")).text is not None}
        if launch.efa_interfaces and len(names) > 1:
            yield Broken(
                at=overrides,
                must="of one instance type for nodes that talk over EFA",
                got=", ".join(sorted(names)),
                remedy="make a group for each type: a job's step takes as long as its slowest node",
            )


def _unplaceable(assembly: Assembly) -> Iterator[Broken]:
    for launch in launches(assembly):
        for name, place in launch.instance_types:
            row = known_type(name)
            refused = row is not None and row.cluster_placement is False
            if refused and any(_is_cluster(launch.placement(key)) for key in ("GroupName", "GroupId")):
                yield Broken(
                    at=place,
                    must="an instance type that a cluster placement group takes",
                    got=name,
                    remedy="remove the placement group, or take another type",
                )


def _dedicated_host(assembly: Assembly) -> Iterator[Broken]:
    for launch in launches(assembly):
        tenancy = launch.placement("Tenancy")
        if launch.has_placement_group and tenancy.text == "host":
            yield Broken(
                at=tenancy,
                must="default or dedicated in a placement group, which takes no Dedicated Hosts",
                got="host",
                remedy="remove the tenancy or the placement group",
            )


RULES = (
    Rule(
        id="cluster-group-several-zones",
        severity=Severity.ERROR,
        title="A group in a cluster placement group stands in one zone",
        why="Auto Scaling refuses several zones together with a cluster placement group; CDK does not notice.",
        source=_ZONES,
        check=_several_zones,
    ),
    Rule(
        id="cluster-group-several-subnets",
        severity=Severity.WARNING,
        title="A group in a cluster placement group names one subnet",
        why="Subnets are usually in several zones, and a cluster placement group takes one.",
        source=_ZONES,
        check=_several_subnets,
    ),
    Rule(
        id="efa-several-zones",
        severity=Severity.WARNING,
        title="Nodes that talk over EFA stand in one zone",
        why="EFA does not work across availability zones.",
        source="ParallelCluster user guide, efa-v3, read 2026-11",
        check=_efa_several_zones,
    ),
    Rule(
        id="efa-mixed-instance-types",
        severity=Severity.WARNING,
        title="A group of nodes with EFA has one instance type",
        why="The interfaces are those of one type, and the slowest node sets the pace of every step.",
        source="ParallelCluster 3.16.1, InstancesEFAValidator and InstancesNetworkingValidator",
        check=_mixed_types,
    ),
    Rule(
        id="cluster-group-type",
        severity=Severity.ERROR,
        title="The instance type may be launched into a cluster placement group",
        why="EC2 refuses the launch.",
        source=_LIMITS,
        check=_unplaceable,
    ),
    Rule(
        id="placement-group-dedicated-host",
        severity=Severity.ERROR,
        title="No Dedicated Hosts in a placement group",
        why="EC2 refuses the launch.",
        source=_LIMITS,
        check=_dedicated_host,
    ),
)
