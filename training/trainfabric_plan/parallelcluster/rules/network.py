"""EFA, placement groups, subnets and security groups."""

from __future__ import annotations

from collections.abc import Iterator

from trainfabric_plan.catalog import InstanceType, efa_interfaces
from trainfabric_plan.parallelcluster.broken import Broken
from trainfabric_plan.parallelcluster.rule import SCHEMA, VALIDATORS, error, warning
from trainfabric_plan.parallelcluster.view import BLOCK, Cluster


def _efa_type(cluster: Cluster) -> Iterator[Broken]:
    for one in cluster.resources:
        for row in one.rows:
            if one.has_efa and not row.efa_interface_count:
                yield Broken(at=one.path("Efa", "Enabled"), rule=f"false for {row.name}, which has no EFA", got="true")


def _efa_off(cluster: Cluster) -> Iterator[Broken]:
    for one in cluster.resources:
        for row in one.rows:
            several = one.most is None or one.most > 1
            if several and row.efa_interface_count and not one.has_efa and one.flag("Efa", "Enabled") is not None:
                rule = f"true for {row.name}: ranks of several nodes speak over TCP without it"
                yield Broken(at=one.path("Efa", "Enabled"), rule=rule, got="false")
            elif several and row.efa_interface_count and row.accelerators and not one.has("Efa"):
                rule = f"given for {row.name}, true to use its EFA: ranks of several nodes speak over TCP without it"
                yield Broken(at=one.path("Efa"), rule=rule, got="nothing")


def _gdr(cluster: Cluster) -> Iterator[Broken]:
    for one in cluster.resources:
        if one.flag("Efa", "GdrSupport") and not one.has_efa:
            yield Broken(at=one.path("Efa", "GdrSupport"), rule="left out without EFA", got="true")


def _gdr_without_effect(cluster: Cluster) -> Iterator[Broken]:
    for one in cluster.resources:
        if one.has("Efa", "GdrSupport") and one.has_efa:
            rule = "left out: it has had no effect since release 3.0.2"
            yield Broken(at=one.path("Efa", "GdrSupport"), rule=rule, got=str(one.get("Efa", "GdrSupport")))


def _explicit_group(cluster: Cluster) -> Iterator[Broken]:
    for one in cluster.resources:
        group = one.placement
        says = group.has("Enabled") or group.has("Name") or group.has("Id")
        if one.has_efa and one.queue.capacity not in (BLOCK, None) and not says:
            rule = "given where EFA is on: nodes stand near each other, or you know that they need not"
            remedy = "set Networking.PlacementGroup.Enabled: true, or false with a reservation that has its own"
            yield Broken(at=one.path("Networking", "PlacementGroup"), rule=rule, got="nothing", remedy=remedy)


def _group_names(cluster: Cluster) -> Iterator[Broken]:
    for part in (*cluster.queues, *cluster.resources):
        group = part.section("Networking", "PlacementGroup")
        named = group.has("Name") or group.has("Id")
        if group.has("Name") and group.has("Id"):
            yield Broken(at=group.at, rule="either Name or Id", got="both")
        if named and group.flag("Enabled") is False:
            yield Broken(at=group.path("Enabled"), rule="true or left out where a group is named", got="false")


def _group_types(cluster: Cluster) -> Iterator[Broken]:
    for one in cluster.resources:
        for row in one.rows:
            group = one.placement
            placed = group.flag("Enabled") or group.has("Name") or group.has("Id")
            if placed and row.cluster_placement is False:
                yield Broken(
                    at=group.at, rule=f"off for {row.name}, which starts in no cluster placement group", got="on"
                )


def _subnets(cluster: Cluster) -> Iterator[Broken]:
    for queue in cluster.queues:
        several = queue.count("Networking", "SubnetIds") > 1
        for one in queue.resources if several else ():
            group = one.placement
            if one.has_efa:
                why = "EFA does not cross zones"
            elif group.flag("Enabled") or group.has("Name") or group.has("Id"):
                why = "a cluster placement group does not cross zones"
            elif len(one.instance_types) == 1 and one.has("InstanceType"):
                why = f"{one.path('InstanceType')} is one type; several subnets take Instances"
            else:
                continue
            at, got = queue.path("Networking", "SubnetIds"), str(queue.count("Networking", "SubnetIds"))
            yield Broken(at=at, rule=f"one subnet: {why}", got=got)
            break


def _scattered(cluster: Cluster) -> Iterator[Broken]:
    found = {subnet: queue for queue in cluster.queues for subnet in queue.texts("Networking", "SubnetIds")}
    storage = any(part.text("StorageType") == "FsxLustre" for part in cluster.storage)
    if len(found) > 1 and storage:
        rule = "one subnet for all queues beside Lustre: a file system stands in one zone, the rest reads across zones"
        yield Broken(at="Scheduling.SlurmQueues", rule=rule, got=", ".join(sorted(found)))


def _public_addresses(cluster: Cluster) -> Iterator[Broken]:
    for one in cluster.resources:
        if not one.queue.flag("Networking", "AssignPublicIp"):
            continue
        for row in one.rows:
            if _interfaces(row, efa=one.has_efa) > 1:
                rule = f"false for {row.name}: EC2 gives nodes of several interfaces no public address"
                remedy = "use a private subnet with a NAT gateway"
                at = one.queue.path("Networking", "AssignPublicIp")
                yield Broken(at=at, rule=rule, got="true", remedy=remedy)


def _interfaces(row: InstanceType, *, efa: bool) -> int:
    """ParallelCluster attaches an interface to every card where EFA is off."""
    return len(efa_interfaces(row)) if efa and row.efa_interface_count else len(row.cards or ())


def _groups(cluster: Cluster) -> Iterator[Broken]:
    for part in (cluster.head, *cluster.queues, *cluster.pools):
        if part.has("Networking", "SecurityGroups") and part.has("Networking", "AdditionalSecurityGroups"):
            remedy = "keep AdditionalSecurityGroups: ParallelCluster's own group lets EFA and Slurm through"
            rule = "either SecurityGroups or AdditionalSecurityGroups"
            yield Broken(at=part.path("Networking"), rule=rule, got="both", remedy=remedy)


def _architecture(cluster: Cluster) -> Iterator[Broken]:
    from trainfabric_plan.catalog import find_instance_type

    head = find_instance_type(cluster.head.text("InstanceType") or "")
    for one in cluster.resources:
        for row in one.rows:
            if head and row.architecture != head.architecture:
                rule = f"of architecture {head.architecture}, as the head node {head.name} is: a cluster has one"
                got = f"{row.name}, which is {row.architecture}"
                yield Broken(at=one.path("InstanceType"), rule=rule, got=got)


RULES = (
    error(
        "pcluster-efa-type",
        _efa_type,
        title="EFA is on for types that have it",
        why="ParallelCluster refuses EFA for a type without it.",
    ),
    warning(
        "pcluster-efa-off",
        _efa_off,
        title="EFA is on where several nodes of a type have it",
        why="Collectives run at a fraction of the network.",
        source=VALIDATORS,
    ),
    error("pcluster-gdr", _gdr, title="GdrSupport stands beside EFA", why="ParallelCluster refuses it without EFA."),
    warning(
        "pcluster-gdr-idle",
        _gdr_without_effect,
        title="GdrSupport is left out",
        why="GPUDirect RDMA is on with EFA; the key says otherwise and does nothing.",
        source="ParallelCluster release notes, 3.0.2, read 2026-11",
    ),
    error(
        "pcluster-efa-placement",
        _explicit_group,
        title="A queue with EFA says where its nodes stand",
        why="ParallelCluster refuses EFA without a word about placement.",
    ),
    error(
        "pcluster-placement-names",
        _group_names,
        title="A placement group is named once, and on",
        why="ParallelCluster refuses contradictions about the group.",
    ),
    error(
        "pcluster-placement-type",
        _group_types,
        title="Types that start in no cluster placement group are put into none",
        why="EC2 starts the type in no cluster placement group.",
    ),
    error(
        "pcluster-subnets",
        _subnets,
        title="Nodes that stay in one zone have one subnet",
        why="ParallelCluster refuses several subnets here.",
    ),
    warning(
        "pcluster-one-zone",
        _scattered,
        title="All queues beside Lustre are in one subnet",
        why="Reads cross zones, slowly and for a fee; EFA does not cross them at all.",
        source="FSx for Lustre User Guide, file system access, read 2026-11",
    ),
    error(
        "pcluster-public-address",
        _public_addresses,
        title="Nodes of several interfaces get no public address",
        why="EC2 refuses the launch.",
    ),
    error(
        "pcluster-security-groups",
        _groups,
        title="Security groups stand in place of the cluster's own, or beside them",
        why="The schema takes one of both.",
        source=SCHEMA,
    ),
    error(
        "pcluster-architecture",
        _architecture,
        title="Nodes are of the head node's architecture",
        why="ParallelCluster refuses nodes that the head node cannot serve.",
    ),
)
