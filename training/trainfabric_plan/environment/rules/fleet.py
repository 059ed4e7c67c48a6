"""Rules about the nodes that look at several values of an environment."""

from __future__ import annotations

from collections.abc import Iterator

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


def _spot_price(given: Sections) -> Iterator[Broken]:
    if given.fleet and given.fleet.workers == "on_demand" and given.fleet.max_spot_price is not None:
        yield {
            "name": "fleet.max_spot_price",
            "rule": "given only for spot workers",
            "got": f"{given.fleet.max_spot_price} with workers on_demand",
            "remedy": "remove it, or set fleet.workers: spot",
        }


def _spares(given: Sections) -> Iterator[Broken]:
    if not given.fleet or not given.fleet.spares:
        return
    if given.orchestrator == "parallelcluster":
        rule, remedy = "0 with parallelcluster, which replaces nodes by itself", "remove fleet.spares"
    elif given.fleet.nodes == 1:
        rule, remedy = "0 for one node: spares take the place of workers", "remove fleet.spares, or add nodes"
    else:
        return
    yield {"name": "fleet.spares", "rule": rule, "got": str(given.fleet.spares), "remedy": remedy}


RULES: tuple[Rule, ...] = (_instance_type, _efa, _image, _root_device, _spot_price, _spares)
