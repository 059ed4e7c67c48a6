"""Rules about zone and network that look at several values of an environment."""

from __future__ import annotations

from collections.abc import Iterator

from trainfabric_plan.addresses import RangeProblem, range_problem
from trainfabric_plan.catalog import efa_interfaces
from trainfabric_plan.environment.rules.sections import Broken, Rule, Sections
from trainfabric_plan.own_command import IMAGE_OF_ENDPOINTS, is_pinned_image, is_reached_by_endpoints


def _zone(given: Sections) -> Iterator[Broken]:
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


def _public_ips(given: Sections) -> Iterator[Broken]:
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


def _existing_network(given: Sections) -> Iterator[Broken]:
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


def _range(given: Sections) -> Iterator[Broken]:
    cidr = given.network.cidr if given.network else None
    if cidr is None:
        return
    try:
        problem = range_problem(cidr)
    except ValueError:
        problem = RangeProblem(rule="a range whose first address is that of the network", remedy="use 10.20.0.0/16")
    if problem:
        yield {"name": "network.cidr", "rule": problem.rule, "got": cidr, "remedy": problem.remedy}


def _egress(given: Sections) -> Iterator[Broken]:
    if not given.network or given.network.egress == "nat":
        return
    if given.network.vpc_id:
        rule, remedy = "left out with an existing VPC, which has its own way out", "remove network.egress"
        yield {"name": "network.egress", "rule": rule, "got": "endpoints", "remedy": remedy}
    if given.network.assign_public_ips:
        rule, remedy = (
            "false with egress endpoints: there is no way to the internet",
            "remove network.assign_public_ips",
        )
        yield {"name": "network.assign_public_ips", "rule": rule, "got": "true", "remedy": remedy}
    if given.orchestrator == "parallelcluster":
        rule = "nat with parallelcluster, whose nodes call more services than ours"
        yield {"name": "network.egress", "rule": rule, "got": "endpoints", "remedy": "remove network.egress"}
    elif given.fleet and not given.fleet.prepared_image:
        yield {
            "name": "fleet.prepared_image",
            "rule": "true with egress endpoints: boot installs Python packages and the Lustre client from outside",
            "got": "false",
            "remedy": "prepare an image (docs/how-to/run-without-internet.md), or use network.egress: nat",
        }


def _image_without_internet(given: Sections) -> Iterator[Broken]:
    image = given.training.image if given.training else None
    if not (image and given.region and given.network and given.network.egress == "endpoints"):
        return
    if is_pinned_image(image) and not is_reached_by_endpoints(image, given.region):
        remedy = "push it there, or set up a pull-through cache, or use network.egress: nat"
        yield {"name": "training.image", "rule": IMAGE_OF_ENDPOINTS, "got": image, "remedy": remedy}


def _s3_endpoint(given: Sections) -> Iterator[Broken]:
    if not (given.network and given.network.has_s3_endpoint):
        return
    if given.network.route_table_id:
        rule, remedy = "left out beside route_table_id, to which an endpoint is added", "remove one of them"
    elif not given.network.vpc_id:
        rule, remedy = "given only of an existing VPC: one that is made here has an S3 endpoint", "remove it"
    else:
        return
    yield {"name": "network.has_s3_endpoint", "rule": rule, "got": "true", "remedy": remedy}


RULES: tuple[Rule, ...] = (
    _zone,
    _public_ips,
    _existing_network,
    _range,
    _egress,
    _image_without_internet,
    _s3_endpoint,
)
