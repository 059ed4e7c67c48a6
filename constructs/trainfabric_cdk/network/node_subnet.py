"""What a subnet is known to be, and what of it rules out nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from aws_cdk import Stack
from aws_cdk import aws_ec2 as ec2
from constructs import IConstruct

from trainfabric_cdk.errors import is_known, refuse
from trainfabric_cdk.network.training_vpc import TrainingVpc
from trainfabric_plan.addresses import free_addresses
from trainfabric_plan.catalog import Interface, addresses_per_node
from trainfabric_plan.errors import Mistake
from trainfabric_plan.own_command import IMAGE_OF_ENDPOINTS, is_reached_by_endpoints


def check_node_subnet(
    scope: IConstruct,
    *,
    subnet: ec2.ISubnet,
    nodes: int,
    interfaces: Iterable[Interface],
    prepared_image: bool,
    training_image: str | None = None,
) -> None:
    """Refuse a subnet in which the nodes have no room, or cannot install what they lack.

    Args:
        scope: Construct that makes the nodes.
        subnet: Where they are; nothing is said of one that shows neither its range nor its way out.
        nodes: Most nodes that can be up at once.
        interfaces: Interfaces of one node.
        prepared_image: Whether the image holds all that boot would install.
        training_image: Container image that the nodes pull, if they do.

    Raises:
        PropertyError: With every mistake.
    """
    each = addresses_per_node(interfaces)
    where = scope.node.path
    found = [*_too_small(where, subnet, nodes, each), *_without_internet(where, subnet, prepared_image)]
    refuse([*found, *_image_out_of_reach(where, subnet, training_image)])


def subnet_resource(subnet: ec2.ISubnet) -> ec2.CfnSubnet | None:
    """The resource of a subnet that this app makes, also where it was given by its reference; `None` for any other."""
    child = subnet.node.default_child or subnet.node.try_find_child("Subnet")
    if isinstance(child, ec2.CfnSubnet):
        return child
    if is_known(subnet.subnet_id):
        return None
    made = (one for one in subnet.node.root.node.find_all() if isinstance(one, ec2.CfnSubnet))
    return next((one for one in made if one.ref == subnet.subnet_id), None)


def zone_of(subnet: ec2.ISubnet) -> str | None:
    """The zone of a subnet; `None` for one that does not say it before it is deployed or looked up.

    An imported subnet without a zone throws when it is asked. `ec2.Vpc.from_lookup` gives its subnets zones named
    `dummy…` until the account has been asked (aws-cdk-lib 2.275.0, aws-ec2: Vpc).
    """
    try:
        zone = subnet.availability_zone
    except RuntimeError:
        return None
    return zone if is_known(zone) and not zone.startswith("dummy") else None


def is_endpoint_only(subnet: ec2.ISubnet) -> bool:
    """Whether the subnet is known to reach AWS services through endpoints, and nothing else."""
    return _closed_network(subnet) is not None


def _closed_network(subnet: ec2.ISubnet) -> TrainingVpc | None:
    network = subnet.node.scope
    return network if isinstance(network, TrainingVpc) and network.egress == "endpoints" else None


def _too_small(where: str, subnet: ec2.ISubnet, nodes: int, each: int) -> Iterator[Mistake]:
    resource = subnet_resource(subnet)
    cidr = resource.cidr_block if resource else None
    if cidr is None or not is_known(cidr):
        return
    wanted, free = nodes * each, free_addresses(cidr)
    if wanted > free:
        addresses = "address" if each == 1 else "addresses"
        yield Mistake(
            where=where,
            name="subnet",
            rule=f"large enough for {nodes} nodes of {each} {addresses}, {wanted} in all",
            got=f"{free} free in {cidr}",
            remedy="use a larger subnet; the file system needs addresses as well",
        )


def _without_internet(where: str, subnet: ec2.ISubnet, prepared_image: bool) -> Iterator[Mistake]:
    if is_endpoint_only(subnet) and not prepared_image:
        yield Mistake(
            where=where,
            name="prepared_image",
            rule="True with endpoints alone: boot installs Python packages and the Lustre client from outside",
            got="False",
            remedy="prepare an image (docs/how-to/run-without-internet.md), or use egress nat",
        )


def _image_out_of_reach(where: str, subnet: ec2.ISubnet, image: str | None) -> Iterator[Mistake]:
    network = _closed_network(subnet)
    if network is None or image is None:
        return
    region = Stack.of(network).region
    if not network.containers:
        rule = "absent in a network whose endpoints are not those of containers"
        remedy = "give TrainingVpc containers=True"
        yield Mistake(where=where, name="training_image", rule=rule, got=image, remedy=remedy)
    if is_known(image, region) and not is_reached_by_endpoints(image, region):
        remedy = "push it there, or set up a pull-through cache, or use egress nat"
        yield Mistake(where=where, name="training_image", rule=IMAGE_OF_ENDPOINTS, got=image, remedy=remedy)
