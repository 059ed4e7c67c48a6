"""Rules about the orchestrator, fault tolerance and tags that look at several values of an environment."""

from __future__ import annotations

from collections.abc import Iterator

from trainfabric_plan.addresses import SOURCE_RULE, is_source
from trainfabric_plan.catalog import find_instance_type
from trainfabric_plan.catalog.instances import HEAD_NODES
from trainfabric_plan.environment.rules.sections import Broken, Rule, Sections, not_in_catalog
from trainfabric_plan.environment.tags import tag_problems
from trainfabric_plan.parallelcluster.queue_rules import gpu_health_rule, static_nodes_rule


def _head_node(given: Sections) -> Iterator[Broken]:
    if not given.parallelcluster or given.orchestrator != "parallelcluster":
        return
    name, wanted = "parallelcluster.head_node_instance_type", given.parallelcluster.head_node_instance_type
    head = find_instance_type(wanted)
    if head is None:
        yield not_in_catalog(name, wanted)
    elif (
        given.orchestrator == "parallelcluster" and given.instance and head.architecture != given.instance.architecture
    ):
        nodes = given.instance
        yield {
            "name": name,
            "rule": f"of architecture {nodes.architecture}, as {nodes.name} is: a cluster has one",
            "got": f"{wanted}, which is {head.architecture}",
            "remedy": f"use {HEAD_NODES[nodes.architecture]}",
        }


def _release_of_the_image(given: Sections) -> Iterator[Broken]:
    """An image is of one release (aws-parallelcluster 3.16.1, `CustomAmiTagValidator`, only warns of another one)."""
    if not (given.parallelcluster and given.fleet and given.orchestrator == "parallelcluster"):
        return
    if given.fleet.ami_id and "version" not in given.parallelcluster.model_fields_set:
        yield {
            "name": "parallelcluster.version",
            "rule": "given beside fleet.ami_id: the release that the image was built for",
            "got": "nothing",
            "remedy": f'such as parallelcluster.version: "{given.parallelcluster.version}"',
        }


def _static_nodes(given: Sections) -> Iterator[Broken]:
    if not (given.parallelcluster and given.fleet and given.orchestrator == "parallelcluster"):
        return
    static, block = given.parallelcluster.static_nodes, given.fleet.workers == "capacity_block"
    rule = static_nodes_rule(static, given.fleet.nodes, block=block)
    if rule:
        yield {"name": "parallelcluster.static_nodes", "rule": rule, "got": str(static)}


def _gpu_health(given: Sections) -> Iterator[Broken]:
    asked = (
        given.orchestrator == "parallelcluster" and given.parallelcluster and given.parallelcluster.gpu_health_checks
    )
    if asked and given.instance and (rule := gpu_health_rule(given.instance)):
        yield {"name": "parallelcluster.gpu_health_checks", "rule": rule, "got": "true"}


def _ssh_from(given: Sections) -> Iterator[Broken]:
    source = given.parallelcluster.ssh_from if given.parallelcluster else None
    if source is not None and not is_source(source):
        yield {"name": "parallelcluster.ssh_from", "rule": SOURCE_RULE, "got": repr(source)}


def _fewest_nodes(given: Sections) -> Iterator[Broken]:
    fewest = given.fault_tolerance.minimum_nodes if given.fault_tolerance else None
    if given.fleet and fewest and fewest > given.fleet.nodes:
        yield {
            "name": "fault_tolerance.minimum_nodes",
            "rule": f"at most the {given.fleet.nodes} of fleet.nodes",
            "got": str(fewest),
            "remedy": f"use {given.fleet.nodes} to wait for every node, or fewer to go on with what is left",
        }


def _only_for_a_fleet(given: Sections) -> Iterator[Broken]:
    if given.orchestrator != "parallelcluster" or not given.fault_tolerance:
        return
    for key in sorted(given.fault_tolerance.model_fields_set):
        yield {
            "name": f"fault_tolerance.{key}",
            "rule": "left out with parallelcluster: Slurm starts its jobs again",
            "got": str(getattr(given.fault_tolerance, key)),
            "remedy": f"remove fault_tolerance.{key}, or use orchestrator: fleet",
        }


def _tags(given: Sections) -> Iterator[Broken]:
    return tag_problems(given.tags or {})


RULES: tuple[Rule, ...] = (
    _head_node,
    _release_of_the_image,
    _static_nodes,
    _gpu_health,
    _ssh_from,
    _fewest_nodes,
    _only_for_a_fleet,
    _tags,
)
