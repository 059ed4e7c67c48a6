"""ParallelCluster's configuration, in a template or in a file of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeGuard

from trainfabric_plan.lint.assembly import Assembly
from trainfabric_plan.lint.model import Broken, Rule, Severity
from trainfabric_plan.lint.values import Locate, Step, Template, Value
from trainfabric_plan.parallelcluster.broken import Broken as Wrong
from trainfabric_plan.parallelcluster.rule import SCHEMA
from trainfabric_plan.parallelcluster.rules import RULES as OF_CLUSTERS
from trainfabric_plan.parallelcluster.shape import shape_mistakes
from trainfabric_plan.parallelcluster.view import Cluster, cluster_of

CLUSTER = "Custom::PclusterCluster"
CONFIGURATION = ("Properties", "ClusterConfiguration")
_STEP = re.compile(r"([^.\[\]]+)|\[([^\]]*)\]")


def _shape(configuration: Mapping[str, Any]) -> Iterator[Wrong]:
    return shape_mistakes(configuration)


def _of_cluster(check: Callable[[Cluster], Iterator[Wrong]]) -> Callable[[Mapping[str, Any]], Iterator[Wrong]]:
    return lambda configuration: check(cluster_of(configuration))


def _over_clusters(
    check: Callable[[Mapping[str, Any]], Iterator[Wrong]],
) -> Callable[[Assembly], Iterator[Broken]]:
    """A check of one configuration as a check of every cluster of an assembly."""

    def over(assembly: Assembly) -> Iterator[Broken]:
        for resource in assembly.of_type(CLUSTER):
            whole = resource.at(*CONFIGURATION)
            if isinstance(whole.known, Mapping):
                for wrong in check(whole.known):
                    yield Broken(at=_at(whole, wrong.at), must=wrong.rule, got=wrong.got, remedy=wrong.remedy or "")

    return over


def _at(whole: Value, path: str) -> Value:
    return whole.at(*steps_to(whole.raw, path))


def steps_to(configuration: Any, path: str) -> list[Step]:
    """The steps of a path whose entries of lists are named, such as `SlurmQueues[train].Name`."""
    steps: list[Step] = []
    here = configuration
    for key, entry in _STEP.findall(path):
        step: Step = key
        if not key:
            names = [one.get("Name") if isinstance(one, Mapping) else None for one in here or ()]
            step = names.index(entry) if entry in names else int(entry)
        steps.append(step)
        here = _inside(here, step)
    return steps


def _inside(value: Any, step: Step) -> Any:
    if isinstance(value, Mapping):
        return value.get(step)
    return value[step] if isinstance(value, list) and isinstance(step, int) and step < len(value) else None


def template_of_cluster(configuration: Mapping[str, Any], name: str, locate: Locate) -> Template:
    """A configuration file of ParallelCluster as a template whose only resource is its cluster."""
    cluster = {"Type": CLUSTER, "Properties": {"ClusterConfiguration": configuration}}
    return Template(name=name, body={"Resources": {"Cluster": cluster}}, locate=locate, root=CONFIGURATION)


def is_cluster(body: object) -> TypeGuard[Mapping[str, Any]]:
    """Whether a file holds a configuration of ParallelCluster, and no template."""
    return isinstance(body, Mapping) and "Resources" not in body and {"HeadNode", "Scheduling"} <= body.keys()


RULES = (
    Rule(
        id="pcluster-shape",
        severity=Severity.ERROR,
        title="A ParallelCluster configuration has the keys and values of release 3.16",
        why="ParallelCluster refuses the file, inside CloudFormation only after minutes and with a code for a reason.",
        source=SCHEMA,
        check=_over_clusters(_shape),
    ),
    *(
        Rule(
            id=rule.id,
            severity=Severity(rule.severity.value),
            title=rule.title,
            why=rule.why,
            source=rule.source,
            check=_over_clusters(_of_cluster(rule.check)),
        )
        for rule in OF_CLUSTERS.values()
    ),
)
