"""How nodes are bought, and how many."""

from __future__ import annotations

from collections.abc import Iterator

from trainfabric_plan.parallelcluster.broken import Broken
from trainfabric_plan.parallelcluster.rule import SCHEMA, VALIDATORS, error, warning
from trainfabric_plan.parallelcluster.view import BLOCK, ON_DEMAND, SPOT, Cluster, Resource

_CLASSES = {ON_DEMAND: "on-demand", SPOT: "spot", BLOCK: "capacity-block"}
_ID, _GROUP = "CapacityReservationId", "CapacityReservationResourceGroupArn"
_PRIORITIES = ("prioritized", "capacity-optimized-prioritized")


def _sizes(cluster: Cluster) -> Iterator[Broken]:
    for one in cluster.resources:
        if one.most is not None and one.least > one.most:
            yield Broken(at=one.path("MinCount"), rule=f"at most MaxCount, {one.most}", got=str(one.least))


def _blocks(cluster: Cluster) -> Iterator[Broken]:
    for one in _of_kind(cluster, BLOCK):
        if not one.reservation.has(_ID):
            at, remedy = one.path("CapacityReservationTarget"), f"add {_ID}"
            yield Broken(at=at, rule="given for CAPACITY_BLOCK", got="nothing", remedy=remedy)
        if one.least < 1 or one.least != one.most:
            rule = "MaxCount, and at least 1, for CAPACITY_BLOCK, whose nodes are static"
            yield Broken(at=one.path("MinCount"), rule=rule, got=f"{one.least} with MaxCount {one.most}")


def _block_placement(cluster: Cluster) -> Iterator[Broken]:
    for one in _of_kind(cluster, BLOCK):
        group = one.placement
        if group.flag("Enabled") or group.has("Name") or group.has("Id"):
            rule = "off for CAPACITY_BLOCK: the block has its place, and a launch into a group finds no capacity"
            yield Broken(at=group.at, rule=rule, got="on", remedy="set Enabled: false")


def _usage_class(cluster: Cluster) -> Iterator[Broken]:
    for one in cluster.resources:
        wanted = _CLASSES.get(one.queue.capacity or "")
        for row in one.rows:
            if wanted and row.usage_classes is not None and wanted not in row.usage_classes:
                rule = f"a way in which EC2 sells {row.name}: {', '.join(sorted(row.usage_classes))}"
                yield Broken(at=one.queue.path("CapacityType"), rule=rule, got=str(one.queue.capacity))


def _spot_price(cluster: Cluster) -> Iterator[Broken]:
    for one in cluster.resources:
        if one.has("SpotPrice") and one.queue.capacity in (ON_DEMAND, BLOCK):
            rule = f"left out with CapacityType {one.queue.capacity}"
            yield Broken(at=one.path("SpotPrice"), rule=rule, got=str(one.get("SpotPrice")))


def _static_spot(cluster: Cluster) -> Iterator[Broken]:
    for one in _of_kind(cluster, SPOT):
        if one.least:
            rule = "0 for spot: the cluster is not created while EC2 has no capacity for its static nodes"
            yield Broken(at=one.path("MinCount"), rule=rule, got=str(one.least))


def _one_target(cluster: Cluster) -> Iterator[Broken]:
    for part in (*cluster.queues, *cluster.resources):
        target = part.section("CapacityReservationTarget")
        if target.raw and target.has(_ID) == target.has(_GROUP):
            got = "both" if target.has(_ID) else "neither"
            yield Broken(at=target.at, rule=f"either {_ID} or {_GROUP}", got=got)


def _strategy(cluster: Cluster) -> Iterator[Broken]:
    for queue in cluster.queues:
        wanted, capacity = queue.text("AllocationStrategy"), queue.capacity
        if wanted is None or capacity is None:
            continue
        at = queue.path("AllocationStrategy")
        if capacity == ON_DEMAND and wanted not in ("lowest-price", "prioritized"):
            yield Broken(at=at, rule="lowest-price or prioritized on demand", got=wanted)
        elif capacity == SPOT and wanted == "prioritized":
            yield Broken(at=at, rule="capacity-optimized-prioritized for spot, to go by priority", got=wanted)
        elif capacity == BLOCK:
            yield Broken(at=at, rule="left out with CAPACITY_BLOCK", got=wanted)


def _idle_strategy(cluster: Cluster) -> Iterator[Broken]:
    for queue in cluster.queues:
        single = all(len(one.instance_types) == 1 for one in queue.resources)
        if queue.resources and single and queue.has("AllocationStrategy") and queue.capacity != BLOCK:
            rule = "left out where every compute resource has one instance type: there is nothing to choose from"
            yield Broken(at=queue.path("AllocationStrategy"), rule=rule, got=str(queue.get("AllocationStrategy")))


def _one_type(cluster: Cluster) -> Iterator[Broken]:
    for queue in cluster.queues:
        with_efa = [one for one in queue.resources if one.has_efa]
        types = sorted({name for one in with_efa for name in one.instance_types})
        if len(types) > 1:
            rule = "of one instance type where EFA is on: jobs over EFA and the ranks need equal nodes"
            remedy = "make a queue for each type"
            yield Broken(at=queue.path("ComputeResources"), rule=rule, got=", ".join(types), remedy=remedy)


def _types(cluster: Cluster) -> Iterator[Broken]:
    for one in cluster.resources:
        if one.has("InstanceType") and one.has("Instances"):
            remedy = "remove one of them"
            yield Broken(at=one.at, rule="either InstanceType or Instances", got="both", remedy=remedy)
        elif not one.has("InstanceType") and not one.has("Instances"):
            yield Broken(at=one.path("InstanceType"), rule="given, or Instances", got="nothing")
        names = list(one.instance_types)
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield Broken(at=one.path("Instances"), rule="of different types", got=f"{name} {names.count(name)} times")


def _of_kind(cluster: Cluster, kind: str) -> Iterator[Resource]:
    return (one for one in cluster.resources if one.queue.capacity == kind)


RULES = (
    error(
        "pcluster-sizes",
        _sizes,
        title="A compute resource has no more nodes at least than at most",
        why="ParallelCluster refuses fewer nodes at most than at least.",
    ),
    error(
        "pcluster-block-nodes",
        _blocks,
        title="Nodes of a Capacity Block are static, and of a block that is named",
        why="ParallelCluster refuses the queue: nodes of a block are static.",
    ),
    error(
        "pcluster-block-placement",
        _block_placement,
        title="Nodes of a Capacity Block stand in no placement group",
        why="EC2 answers InsufficientInstanceCapacity: a block's capacity lies in no placement group of yours.",
        source="aws-parallelcluster PR 6311; EC2 User Guide, Capacity Blocks, read 2026-11",
    ),
    error(
        "pcluster-usage-class",
        _usage_class,
        title="EC2 sells the type in the way in which it is bought",
        why="EC2 does not sell the type in this way.",
    ),
    error(
        "pcluster-spot-price",
        _spot_price,
        title="Only spot nodes have a spot price",
        why="The price holds for spot alone.",
        source=SCHEMA,
    ),
    warning(
        "pcluster-static-spot",
        _static_spot,
        title="No spot node is static",
        why="Creation waits for static nodes and fails after its time when spot has none.",
        source="https://github.com/aws/aws-parallelcluster/issues/3373, read 2026-11",
    ),
    error(
        "pcluster-reservation-target",
        _one_target,
        title="A reservation is named by its id or by its group",
        why="The schema takes one of both.",
        source=SCHEMA,
    ),
    error(
        "pcluster-allocation-strategy",
        _strategy,
        title="The allocation strategy is one of the capacity type",
        why="ParallelCluster refuses the strategy for this capacity.",
    ),
    warning(
        "pcluster-idle-strategy",
        _idle_strategy,
        title="An allocation strategy has several types to choose from",
        why="ParallelCluster takes it and makes nothing of it: nobody tells that it has no effect.",
        source=VALIDATORS,
    ),
    error(
        "pcluster-one-type-per-efa-queue",
        _one_type,
        title="Nodes of one queue with EFA are of one instance type",
        why="Slurm places a job on whatever nodes of the queue are free; ParallelCluster compares types within one "
        "compute resource alone.",
        source="tried with aws-parallelcluster 3.16.1: accepted, 2026-11",
    ),
    error(
        "pcluster-instance-types",
        _types,
        title="A compute resource names its types once, in one of two ways",
        why="The schema takes one of both.",
        source=SCHEMA,
    ),
)
