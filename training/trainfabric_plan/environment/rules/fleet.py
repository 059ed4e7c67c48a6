"""Rules about the nodes that look at several values of an environment."""

from __future__ import annotations

from collections.abc import Iterator

from trainfabric_plan.catalog import find_instance_type, no_bandwidth, offers_bandwidth
from trainfabric_plan.environment.rules.sections import Broken, Rule, Sections, not_in_catalog
from trainfabric_plan.environment.types import ROOT_DEVICE


def _instance_type(given: Sections) -> Iterator[Broken]:
    if given.instance_type and not given.instance:
        yield not_in_catalog("fleet.instance_type", given.instance_type)


def _efa(given: Sections) -> Iterator[Broken]:
    if given.fleet and given.fleet.efa and given.instance and not given.instance.efa_interface_count:
        yield {
            "name": "fleet.instance_type",
            "rule": "a type with EFA while fleet.efa is on",
            "got": given.instance.name,
            "remedy": "choose a type with EFA (trainfabric catalog lists them) or set fleet.efa: false",
        }


def _image(given: Sections) -> Iterator[Broken]:
    if given.fleet and given.instance and given.instance.maker == "aws" and given.fleet.ami_id is None:
        yield {
            "name": "fleet.ami_id",
            "rule": f"given for {given.instance.name}: the default image has no Neuron driver",
            "got": "nothing",
            "remedy": "add the id of a Neuron image",
        }


def _root_device(given: Sections) -> Iterator[Broken]:
    if not given.fleet or given.fleet.root_device == ROOT_DEVICE:
        return
    if given.orchestrator == "parallelcluster":
        rule, remedy = "left out with parallelcluster, which reads it off the image", "remove fleet.root_device"
    elif given.fleet.ami_id is None:
        rule, remedy = f"{ROOT_DEVICE}, the root device of the default image", "remove it, or add fleet.ami_id"
    else:
        return
    yield {"name": "fleet.root_device", "rule": rule, "got": given.fleet.root_device, "remedy": remedy}


def _spares(given: Sections) -> Iterator[Broken]:
    if not given.fleet or not given.fleet.spares:
        return
    if given.orchestrator == "parallelcluster":
        rule, remedy = "0 with parallelcluster, which replaces nodes by itself", "remove fleet.spares"
    elif given.fleet.nodes == 1 and given.fleet.coordinator == "training":
        rule, remedy = "0 for one node: spares take the place of workers", "remove fleet.spares, or add nodes"
    else:
        return
    yield {"name": "fleet.spares", "rule": rule, "got": str(given.fleet.spares), "remedy": remedy}


def _control_node(given: Sections) -> Iterator[Broken]:
    """A coordinator that only controls is a small node beside those that train, of the same image."""
    if not given.fleet:
        return
    name, wanted = "fleet.control_instance_type", given.fleet.control_instance_type
    if given.fleet.coordinator == "training":
        if "control_instance_type" in given.fleet.model_fields_set:
            remedy = "remove it, or set fleet.coordinator: control"
            yield {"name": name, "rule": "given only for coordinator control", "got": wanted, "remedy": remedy}
        return
    if given.orchestrator == "parallelcluster":
        rule, remedy = "training with parallelcluster, whose head node controls", "remove fleet.coordinator"
        yield {"name": "fleet.coordinator", "rule": rule, "got": "control", "remedy": remedy}
        return
    row = find_instance_type(wanted)
    if row is None:
        yield not_in_catalog(name, wanted)
    elif given.instance and row.architecture != given.instance.architecture:
        rule = f"of architecture {given.instance.architecture}, as {given.instance.name} is: they share the image"
        yield {"name": name, "rule": rule, "got": f"{wanted}, which is {row.architecture}"}


def _interfaces(given: Sections) -> Iterator[Broken]:
    if not given.fleet or given.fleet.interfaces == "addresses":
        return
    if given.orchestrator == "parallelcluster":
        rule, remedy = "addresses with parallelcluster, which lays interfaces out itself", "remove fleet.interfaces"
    elif not given.fleet.efa:
        rule, remedy = "addresses without EFA: a node has one interface", "remove fleet.interfaces"
    elif given.instance and not offers_bandwidth(given.instance):
        rule = f"addresses for {given.instance.name}{no_bandwidth(given.instance)}"
        remedy = "remove fleet.interfaces"
    else:
        return
    yield {"name": "fleet.interfaces", "rule": rule, "got": "bandwidth", "remedy": remedy}


def _prepared_image(given: Sections) -> Iterator[Broken]:
    if not given.fleet or not given.fleet.prepared_image:
        return
    if given.orchestrator == "parallelcluster":
        rule, remedy = "left out with parallelcluster, whose images are built for it", "remove fleet.prepared_image"
    elif given.fleet.ami_id is None:
        rule = "false for the default image, which has neither the Python environment nor the Lustre client"
        remedy = "add fleet.ami_id, or remove fleet.prepared_image"
    else:
        return
    yield {"name": "fleet.prepared_image", "rule": rule, "got": "true", "remedy": remedy}


RULES: tuple[Rule, ...] = (
    _instance_type,
    _efa,
    _image,
    _root_device,
    _spares,
    _control_node,
    _interfaces,
    _prepared_image,
)
