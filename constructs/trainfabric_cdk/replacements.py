"""Warnings about changes that would replace or drop a resource with data, before anything is deployed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsii
from aws_cdk import Annotations, CfnResource, Stack
from constructs import IConstruct, IValidation

from trainfabric_plan.lint.rules.clusters import CLUSTER
from trainfabric_plan.parallelcluster.changes import Takes, changes
from trainfabric_plan.stateful import CREATE_ONLY, create_only, losses, stateful_resources

DEPLOYED_TEMPLATES = "trainfabric:deployedTemplates"
"""Context key of a directory with templates as they are deployed: `<stack name>.template.json`, or `.json`."""

REPLACES = "trainfabric:replacesStatefulResource"
DROPS = "trainfabric:dropsStatefulResource"
UPDATES = "trainfabric:clusterUpdate"
"""What a change of a live ParallelCluster takes, where it takes something."""


def warn_of_replacements(scope: IConstruct) -> None:
    """Warn, at synthesis, of every stateful resource below `scope` that a deploy would replace or drop, and of every
    change of a `ParallelClusterStack` that drains nodes, needs stopped ones or is not possible in place.

    What a stack was before is read from the directory of the context key `trainfabric:deployedTemplates`, or else from
    the app's output directory before it is written anew. Where neither has a template there is nothing to compare, and
    it costs nothing. Properties that an escape hatch sets (`add_property_override`) are not seen.

    Args:
        scope: An app, a stage or a stack, also one that is not of trainfabric.
    """
    directories = [Path(given)] if isinstance(given := scope.node.try_get_context(DEPLOYED_TEMPLATES), str) else []
    directories.append(Path(_outdir(scope)))
    if any(directory.is_dir() and any(directory.glob("*.json")) for directory in directories):
        scope.node.add_validation(_Comparison(scope, directories))


def _outdir(scope: IConstruct) -> str:
    root: Any = scope.node.root
    return str(getattr(root, "outdir", None) or ".")


@jsii.implements(IValidation)
class _Comparison:
    """Runs once references between stacks are settled and before the first template is written."""

    def __init__(self, scope: IConstruct, directories: list[Path]) -> None:
        self._scope, self._directories = scope, directories

    def validate(self) -> list[str]:
        """Warns; it never fails the synthesis."""
        below = [construct for construct in self._scope.node.find_all() if isinstance(construct, Stack)]
        for stack in below:
            before = self._before(stack)
            if before and stateful_resources(before):
                _warn(stack, before)
            if before:
                _warn_of_updates(stack, before)
        return []

    def _before(self, stack: Stack) -> dict[str, Any] | None:
        names = (stack.template_file, f"{stack.stack_name}.template.json", f"{stack.stack_name}.json")
        for directory in self._directories:
            for name in names:
                try:
                    read = json.loads((directory / name).read_text(encoding="utf-8"))
                except (OSError, ValueError):
                    continue
                return read if isinstance(read, dict) else None
        return None


def _warn(stack: Stack, before: dict[str, Any]) -> None:
    for loss in losses(before, {"Resources": _now(stack)}):
        Annotations.of(stack).add_warning_v2(REPLACES if loss.changed else DROPS, loss.message)


def _warn_of_updates(stack: Stack, before: dict[str, Any]) -> None:
    """Warn of what a changed configuration of a cluster takes; another release is another cluster, with a new name."""
    render = getattr(getattr(stack, "configuration", None), "as_dict", None)
    clusters = [one for one in before.get("Resources", {}).values() if one.get("Type") == CLUSTER]
    if render is None or len(clusters) != 1:
        return
    properties, name = clusters[0].get("Properties", {}), getattr(stack, "cluster_name", None)
    if properties.get("ClusterName") != stack.resolve(name):
        return
    for change in changes(properties.get("ClusterConfiguration", {}), stack.resolve(render())):
        if change.takes is not Takes.NOTHING:
            Annotations.of(stack).add_warning_v2(f"{UPDATES}:{change.at}", str(change))


def _now(stack: Stack) -> dict[str, Any]:
    """The stateful resources of a stack as its template will have them, with what cannot change of them."""
    found = {}
    for construct in stack.node.find_all():
        if not isinstance(construct, CfnResource) or construct.cfn_resource_type not in CREATE_ONLY:
            continue
        if construct.stack.node.path != stack.node.path:
            continue
        kind = construct.cfn_resource_type
        found[str(stack.resolve(construct.logical_id))] = {"Type": kind, "Properties": _fixed(stack, construct, kind)}
    return found


def _fixed(stack: Stack, resource: CfnResource, kind: str) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for path in create_only(kind):
        name, *inner = path.split(".")
        value = stack.resolve(getattr(resource, _snake(name), None))
        if inner and isinstance(value, dict):
            value = {_pascal(key): item for key, item in value.items()}
        if value is not None:
            properties[name] = value
    return properties


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def _pascal(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))
