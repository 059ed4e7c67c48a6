"""Rules over several values of an environment, each a function that yields the mistakes it finds.

A rule gets sections that are valid in themselves, so that one broken section does not hide what is wrong in another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trainfabric_plan.catalog import INSTANCE_TYPES, InstanceType, efa_interfaces
from trainfabric_plan.catalog.instances import HOW_TO_ADD, nearest_instance_types
from trainfabric_plan.catalog.lustre import lustre_mistakes
from trainfabric_plan.environment.tags import tag_problems
from trainfabric_plan.environment.types import ROOT_DEVICE, Fleet, Network, ParallelCluster, Storage, Training
from trainfabric_plan.errors import Mistake, NotFound
from trainfabric_plan.layout import layout_problems
from trainfabric_plan.mount_points import mount_point_problem
from trainfabric_plan.policy import FaultTolerance
from trainfabric_plan.recipes import Recipe, recipe


@dataclass(frozen=True, kw_only=True)
class Sections:
    """The valid sections of an environment; `None` where a section is broken in itself."""

    region: str | None
    availability_zone: str | None
    network: Network | None
    storage: Storage | None
    fleet: Fleet | None
    training: Training | None
    orchestrator: str | None
    parallelcluster: ParallelCluster | None
    fault_tolerance: FaultTolerance | None
    tags: Mapping[str, str] | None
    instance_type: str | None
    """As it stands in the file, whatever else is wrong with the fleet."""

    @property
    def instance(self) -> InstanceType | None:
        """The catalog's row of the instance type, if the catalog knows it."""
        return INSTANCE_TYPES.get(self.instance_type) if self.instance_type else None

    @property
    def recipe(self) -> Recipe | None:
        """The recipe, if there is one of that name."""
        try:
            return recipe(self.training.recipe) if self.training else None
        except NotFound:
            return None


def mistakes_across(where: str, given: Sections) -> list[Mistake]:
    """Every mistake that shows only when several values are looked at together."""
    found: list[Mistake] = []
    for rule in (
        _zone,
        _instance_type,
        _efa,
        _image,
        _root_device,
        _spot_price,
        _spares,
        _head_node,
        _public_ips,
        _existing_network,
        _bucket_keys,
        _lustre,
        _mount_point,
        _tags,
        _recipe,
        _ranks,
        _layout,
        _fewest_nodes,
        _only_for_a_fleet,
    ):
        found.extend(Mistake(where=where, **broken) for broken in rule(given))
    return found


def _zone(given: Sections) -> Iterator[dict[str, Any]]:
    if given.region and given.availability_zone and not _is_zone_of(given.availability_zone, given.region):
        yield {
            "name": "availability_zone",
            "rule": f"a zone of {given.region}",
            "got": given.availability_zone,
            "remedy": f"use {given.region}a or another zone that offers the instance type",
        }


def _is_zone_of(zone: str, region: str) -> bool:
    suffix = zone.removeprefix(region)
    return suffix != zone and len(suffix) == 1 and suffix.isalpha()


def _instance_type(given: Sections) -> Iterator[dict[str, Any]]:
    if given.instance_type and not given.instance:
        yield _not_in_catalog("fleet.instance_type", given.instance_type)


def _not_in_catalog(name: str, instance_type: str) -> dict[str, Any]:
    near = nearest_instance_types(instance_type)
    remedy = f"did you mean {' or '.join(near)}? " if near else ""
    return {
        "name": name,
        "rule": "a type of the catalog",
        "got": instance_type,
        "remedy": f"{remedy}{HOW_TO_ADD} says how to add one",
    }


def _head_node(given: Sections) -> Iterator[dict[str, Any]]:
    if not given.parallelcluster:
        return
    name, wanted = "parallelcluster.head_node_instance_type", given.parallelcluster.head_node_instance_type
    head = INSTANCE_TYPES.get(wanted)
    if head is None:
        yield _not_in_catalog(name, wanted)
    elif head.architecture != "x86_64":
        remedy = "choose an x86_64 type, such as m7i.2xlarge"
        yield {"name": name, "rule": "an x86_64 type, as the nodes' image is", "got": wanted, "remedy": remedy}


def _efa(given: Sections) -> Iterator[dict[str, Any]]:
    if given.fleet and given.fleet.efa and given.instance and not given.instance.efa_interface_count:
        yield {
            "name": "fleet.instance_type",
            "rule": "a type with EFA while fleet.efa is on",
            "got": given.instance.name,
            "remedy": "choose a type with EFA (trainfabric catalog lists them) or set fleet.efa: false",
        }


def _image(given: Sections) -> Iterator[dict[str, Any]]:
    if given.fleet and given.instance and given.instance.accelerator == "Trainium" and given.fleet.ami_id is None:
        yield {
            "name": "fleet.ami_id",
            "rule": f"given for {given.instance.name}: the default image has no Neuron driver",
            "got": "nothing",
            "remedy": "add the id of a Neuron image",
        }


def _root_device(given: Sections) -> Iterator[dict[str, Any]]:
    if not given.fleet or given.fleet.root_device == ROOT_DEVICE:
        return
    if given.orchestrator == "parallelcluster":
        rule, remedy = "left out with parallelcluster, which reads it off the image", "remove fleet.root_device"
    elif given.fleet.ami_id is None:
        rule, remedy = f"{ROOT_DEVICE}, the root device of the default image", "remove it, or add fleet.ami_id"
    else:
        return
    yield {"name": "fleet.root_device", "rule": rule, "got": given.fleet.root_device, "remedy": remedy}


def _spot_price(given: Sections) -> Iterator[dict[str, Any]]:
    if given.fleet and given.fleet.workers == "on_demand" and given.fleet.max_spot_price is not None:
        yield {
            "name": "fleet.max_spot_price",
            "rule": "given only for spot workers",
            "got": f"{given.fleet.max_spot_price} with workers on_demand",
            "remedy": "remove it, or set fleet.workers: spot",
        }


def _spares(given: Sections) -> Iterator[dict[str, Any]]:
    if not given.fleet or not given.fleet.spares:
        return
    if given.orchestrator == "parallelcluster":
        rule, remedy = "0 with parallelcluster, which replaces nodes by itself", "remove fleet.spares"
    elif given.fleet.nodes == 1:
        rule, remedy = "0 for one node: spares take the place of workers", "remove fleet.spares, or add nodes"
    else:
        return
    yield {"name": "fleet.spares", "rule": rule, "got": str(given.fleet.spares), "remedy": remedy}


def _fewest_nodes(given: Sections) -> Iterator[dict[str, Any]]:
    fewest = given.fault_tolerance.minimum_nodes if given.fault_tolerance else None
    if given.fleet and fewest and fewest > given.fleet.nodes:
        yield {
            "name": "fault_tolerance.minimum_nodes",
            "rule": f"at most the {given.fleet.nodes} of fleet.nodes",
            "got": str(fewest),
            "remedy": f"use {given.fleet.nodes} to wait for every node, or fewer to go on with what is left",
        }


def _only_for_a_fleet(given: Sections) -> Iterator[dict[str, Any]]:
    if given.orchestrator != "parallelcluster" or not given.fault_tolerance:
        return
    for key in sorted(given.fault_tolerance.model_fields_set):
        yield {
            "name": f"fault_tolerance.{key}",
            "rule": "left out with parallelcluster: Slurm starts its jobs again",
            "got": str(getattr(given.fault_tolerance, key)),
            "remedy": f"remove fault_tolerance.{key}, or use orchestrator: fleet",
        }


def _public_ips(given: Sections) -> Iterator[dict[str, Any]]:
    if not (given.network and given.network.assign_public_ips and given.fleet and given.fleet.efa and given.instance):
        return
    interfaces = len(efa_interfaces(given.instance))
    if interfaces > 1:
        yield {
            "name": "network.assign_public_ips",
            "got": "true",
            "rule": f"false for {given.instance.name}: EC2 gives nodes with {interfaces} interfaces no public address",
            "remedy": "use a private subnet with a NAT gateway, which is the default",
        }


def _existing_network(given: Sections) -> Iterator[dict[str, Any]]:
    if not given.network:
        return
    network = given.network
    if bool(network.vpc_id) != bool(network.subnet_id):
        missing = "subnet_id" if network.vpc_id else "vpc_id"
        yield {
            "name": f"network.{missing}",
            "rule": "given together with its counterpart",
            "got": "nothing",
            "remedy": f"add network.{missing}, or leave both out and trainfabric makes the network",
        }
    if network.vpc_id and network.cidr:
        yield {
            "name": "network.cidr",
            "rule": "absent when the VPC exists already",
            "got": network.cidr,
            "remedy": "remove network.cidr; the existing VPC keeps its range",
        }
    if network.route_table_id and not network.subnet_id:
        yield {
            "name": "network.route_table_id",
            "rule": "given only with an existing subnet",
            "got": network.route_table_id,
            "remedy": "remove it, or add network.vpc_id and network.subnet_id",
        }


def _lustre(given: Sections) -> Iterator[dict[str, Any]]:
    if given.storage:
        lustre = given.storage.lustre
        for found in lustre_mistakes("", lustre.capacity_gib, lustre.throughput_mbps_per_tib, prefix="storage.lustre."):
            yield {"name": found.name, "rule": found.rule, "got": found.got, "remedy": found.remedy}


def _bucket_keys(given: Sections) -> Iterator[dict[str, Any]]:
    if not given.storage or given.orchestrator != "parallelcluster":
        return
    for name in ("data_bucket", "checkpoint_bucket"):
        bucket = getattr(given.storage, name)
        if bucket and bucket.kms_key_arn:
            yield {
                "name": f"storage.{name}.kms_key_arn",
                "rule": "left out with parallelcluster: its nodes' role gets buckets, no keys",
                "got": bucket.kms_key_arn,
                "remedy": "use a bucket that S3's own keys encrypt, or orchestrator: fleet",
            }


def _mount_point(given: Sections) -> Iterator[dict[str, Any]]:
    problem = mount_point_problem(given.storage.lustre.mount_point) if given.storage else None
    if given.storage and problem:
        yield {
            "name": "storage.lustre.mount_point",
            "rule": problem.rule,
            "got": given.storage.lustre.mount_point,
            "remedy": problem.remedy,
        }


def _tags(given: Sections) -> Iterator[dict[str, Any]]:
    return tag_problems(given.tags or {})


def _recipe(given: Sections) -> Iterator[dict[str, Any]]:
    if given.training and not given.recipe:
        try:
            recipe(given.training.recipe)
        except NotFound as error:
            rule, _, got = str(error).partition("must be ")[2].partition(", got ")
            name, _, hint = got.partition("; ")
            yield {"name": "training.recipe", "rule": rule, "got": name, "remedy": hint or "choose one of these"}


def _ranks(given: Sections) -> Iterator[dict[str, Any]]:
    if not (given.training and given.instance):
        return
    per_node, accelerators = given.training.ranks_per_node, given.instance.accelerators
    if per_node is None and not accelerators:
        yield {
            "name": "training.ranks_per_node",
            "rule": f"given for {given.instance.name}, which has no accelerators",
            "got": "nothing",
            "remedy": "say how many ranks run on a node",
        }
    if per_node is not None and accelerators and per_node > accelerators:
        yield {
            "name": "training.ranks_per_node",
            "got": str(per_node),
            "rule": f"at most the {accelerators} accelerators of {given.instance.name}",
            "remedy": f"use {accelerators}",
        }


def _layout(given: Sections) -> Iterator[dict[str, Any]]:
    if not (given.training and given.training.layout and given.fleet and given.recipe):
        return
    per_node = given.training.ranks_per_node or (given.instance.accelerators if given.instance else 0)
    if not per_node:
        return
    for problem in layout_problems(given.training.layout, given.recipe, given.fleet.nodes * per_node):
        yield {"name": "training.layout", "rule": problem.rule, "got": problem.got, "remedy": problem.remedy}
