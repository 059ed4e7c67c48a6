"""Roles, images and the head node."""

from __future__ import annotations

import math
from collections.abc import Iterator

from trainfabric_plan.catalog import find_instance_type
from trainfabric_plan.parallelcluster.broken import Broken
from trainfabric_plan.parallelcluster.rule import SCHEMA, error
from trainfabric_plan.parallelcluster.view import Cluster

_ROLES = ("InstanceRole", "InstanceProfile", "AdditionalIamPolicies")
_WITHOUT_IMAGE = ("rocky8", "rocky9")


def _one_role(cluster: Cluster) -> Iterator[Broken]:
    for part in (cluster.head, *cluster.queues, *cluster.pools):
        iam = part.section("Iam")
        given = [key for key in _ROLES if iam.has(key)]
        if len(given) > 1:
            yield Broken(at=iam.at, rule=f"one of {', '.join(_ROLES)}", got=" and ".join(given))
        if iam.has("S3Access") and any(key != "AdditionalIamPolicies" for key in given):
            rule = "left out with a role of your own, which says itself what it may read"
            yield Broken(at=iam.path("S3Access"), rule=rule, got="given")


def _image(cluster: Cluster) -> Iterator[Broken]:
    system = cluster.text("Image", "Os")
    if system in _WITHOUT_IMAGE and not cluster.has("Image", "CustomAmi"):
        rule = f"given for {system}: ParallelCluster publishes no image of it"
        yield Broken(at="Image.CustomAmi", rule=rule, got="nothing")


def _head_memory(cluster: Cluster) -> Iterator[Broken]:
    head = find_instance_type(cluster.head.text("InstanceType") or "")
    nodes = sum(one.most or 0 for one in cluster.resources)
    needed = min(nodes / 25 + 0.6, 16)
    if head and head.memory_gib < needed:
        rule = f"a type with {math.ceil(needed)} GiB of memory or more for {nodes} nodes"
        got = f"{head.name} with {head.memory_gib:g} GiB"
        yield Broken(at="HeadNode.InstanceType", rule=rule, got=got)


def _efs_settings(cluster: Cluster) -> Iterator[Broken]:
    kind = cluster.head.text("SharedStorageType") if cluster.head.has("SharedStorageType") else "Ebs"
    if cluster.head.has("SharedStorageEfsSettings") and kind == "Ebs":
        rule = "left out with SharedStorageType Ebs"
        yield Broken(at="HeadNode.SharedStorageEfsSettings", rule=rule, got="given")


RULES = (
    error(
        "pcluster-one-role", _one_role, title="Nodes have one role", why="The schema takes one of them.", source=SCHEMA
    ),
    error(
        "pcluster-own-image",
        _image,
        title="A system without an image of ParallelCluster has one of yours",
        why="ParallelCluster has no image of this system.",
    ),
    error(
        "pcluster-head-memory",
        _head_memory,
        title="The head node has memory for its nodes",
        why="ParallelCluster asks for 1 GB for 25 nodes, up to 16 GB.",
    ),
    error(
        "pcluster-head-storage",
        _efs_settings,
        title="Settings of EFS stand beside SharedStorageType Efs",
        why="ParallelCluster refuses the combination.",
    ),
)
