"""Names, and how many of each thing a cluster may have."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from trainfabric_plan.parallelcluster.broken import Broken
from trainfabric_plan.parallelcluster.rule import error
from trainfabric_plan.parallelcluster.view import Cluster, Part

MOST_QUEUES, MOST_RESOURCES, MOST_POOLS, MOST_TAGS = 50, 50, 10, 40
MOST_LETTERS, MOST_LETTERS_OF_STORAGE = 25, 30
_NAME = re.compile(rf"[a-z][a-z0-9-]{{0,{MOST_LETTERS - 1}}}")
_RULE = f"1 to {MOST_LETTERS} lower-case letters, digits and hyphens, a letter first, and not default"


def _names(cluster: Cluster) -> Iterator[Broken]:
    for part in (*cluster.queues, *cluster.resources, *cluster.pools):
        name = part.text("Name")
        if name is not None and (not _NAME.fullmatch(name) or name == "default"):
            yield Broken(at=part.path("Name"), rule=_RULE, got=name)


def _storage_names(cluster: Cluster) -> Iterator[Broken]:
    for part in cluster.storage:
        name = part.text("Name")
        if name is not None and (len(name) > MOST_LETTERS_OF_STORAGE or name.lower() == "default"):
            rule = f"at most {MOST_LETTERS_OF_STORAGE} letters, and not default"
            yield Broken(at=part.path("Name"), rule=rule, got=name)


def _duplicates(cluster: Cluster) -> Iterator[Broken]:
    groups: list[tuple[str, Iterable[Part]]] = [
        ("Scheduling.SlurmQueues", cluster.queues),
        ("LoginNodes.Pools", cluster.pools),
        ("SharedStorage", cluster.storage),
        *((queue.path("ComputeResources"), queue.resources) for queue in cluster.queues),
    ]
    for at, parts in groups:
        counted = Counter(name for part in parts if (name := part.text("Name")))
        for name, times in counted.items():
            if times > 1:
                yield Broken(at=at, rule="of different names", got=f"{name} {times} times")


def _counts(cluster: Cluster) -> Iterator[Broken]:
    resources = sum(queue.count("ComputeResources") for queue in cluster.queues)
    counted = (
        ("Scheduling.SlurmQueues", cluster.count("Scheduling", "SlurmQueues"), MOST_QUEUES, "queues"),
        ("Scheduling.SlurmQueues", resources, MOST_RESOURCES, "compute resources in all queues"),
        ("LoginNodes.Pools", cluster.count("LoginNodes", "Pools"), MOST_POOLS, "pools of login nodes"),
        ("Tags", cluster.count("Tags"), MOST_TAGS, "tags"),
    )
    for at, found, most, what in counted:
        if found > most:
            yield Broken(at=at, rule=f"at most {most} {what}", got=str(found))


RULES = (
    error(
        "pcluster-name",
        _names,
        title="Queues, compute resources and pools have names that ParallelCluster takes",
        why="ParallelCluster refuses the name.",
    ),
    error(
        "pcluster-storage-name",
        _storage_names,
        title="Shared storage has a name that ParallelCluster takes",
        why="ParallelCluster refuses the name.",
    ),
    error(
        "pcluster-names-unique",
        _duplicates,
        title="Names of queues, compute resources, pools and storage differ",
        why="ParallelCluster tells entries of a list by their names.",
    ),
    error(
        "pcluster-counts",
        _counts,
        title="There are no more queues, compute resources, pools and tags than ParallelCluster takes",
        why="ParallelCluster refuses more; the 50 compute resources count together.",
    ),
)
