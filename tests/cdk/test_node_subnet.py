from __future__ import annotations

from collections.abc import Callable
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2

from trainfabric_cdk import PropertyError, SpotTrainingFleet, TrainingVpc
from trainfabric_cdk.network import check_node_subnet, is_endpoint_only
from trainfabric_cdk.network.interfaces import gives_public_addresses
from trainfabric_plan.catalog import Interface, InterfaceType

MakeFleet = Callable[..., SpotTrainingFleet]

ONE = (Interface(card=0, device=0, type=InterfaceType.INTERFACE),)
TWO = (*ONE, Interface(card=1, device=1, type=InterfaceType.INTERFACE))
EFA = (*ONE, Interface(card=0, device=1, type=InterfaceType.EFA_ONLY))


def subnet_of(stack: cdk.Stack, cidr: str, **given: Any) -> ec2.CfnSubnet:
    return ec2.CfnSubnet(stack, "Subnet", vpc_id="vpc-12345678", cidr_block=cidr, **given)


@pytest.mark.parametrize(
    ("interfaces", "most", "counted"),
    [(ONE, 11, "1 address, 12"), (EFA, 11, "1 address, 12"), (TWO, 5, "2 addresses, 12")],
)
def test_a_subnet_without_an_address_for_every_interface_that_takes_one_is_refused(
    stack: cdk.Stack, interfaces: tuple[Interface, ...], most: int, counted: str
) -> None:
    resource = subnet_of(stack, "10.0.0.0/28")
    subnet = ec2.Subnet.from_subnet_id(stack, "Imported", resource.ref)

    check_node_subnet(stack, subnet=subnet, nodes=most, interfaces=interfaces, prepared_image=False)
    with pytest.raises(PropertyError) as refused:
        check_node_subnet(stack, subnet=subnet, nodes=most + 1, interfaces=interfaces, prepared_image=False)

    assert str(refused.value) == (
        f"Demo: subnet must be large enough for {most + 1} nodes of {counted} in all, got 11 free in 10.0.0.0/28; "
        "use a larger subnet; the file system needs addresses as well"
    )


def test_a_subnet_whose_range_is_not_known_is_not_judged(stack: cdk.Stack) -> None:
    later = subnet_of(stack, cdk.Fn.import_value("range"))
    stranger = ec2.Subnet.from_subnet_id(stack, "Stranger", "subnet-12345678")

    for subnet in (ec2.Subnet.from_subnet_id(stack, "Later", later.ref), stranger):
        check_node_subnet(stack, subnet=subnet, nodes=10_000, interfaces=ONE, prepared_image=False)
        assert not is_endpoint_only(subnet)


def test_a_fleet_too_large_for_its_subnet_is_refused_with_its_spares(make_fleet: MakeFleet, stack: cdk.Stack) -> None:
    small = TrainingVpc(stack, "Small", availability_zone="us-east-1a", cidr="10.9.0.0/24")

    with pytest.raises(PropertyError) as refused:
        make_fleet(subnet=small.private_subnet, vpc=small.vpc, nodes=120, spares=4)

    assert str(refused.value) == (
        "Demo/Fleet: subnet must be large enough for 124 nodes of 1 address, 124 in all, got 123 free in 10.9.0.0/25; "
        "use a larger subnet; the file system needs addresses as well"
    )


def test_a_fleet_that_installs_at_boot_is_refused_in_a_network_of_endpoints(
    make_fleet: MakeFleet, stack: cdk.Stack
) -> None:
    closed = TrainingVpc(stack, "Closed", availability_zone="us-east-1a", egress="endpoints")

    with pytest.raises(PropertyError) as refused:
        make_fleet(subnet=closed.private_subnet, vpc=closed.vpc)

    assert str(refused.value) == (
        "Demo/Fleet: prepared_image must be True with endpoints alone: boot installs Python packages and the Lustre "
        "client from outside, got False; prepare an image (docs/how-to/run-without-internet.md), or use egress nat"
    )


def test_a_fleet_with_a_prepared_image_starts_in_a_network_of_endpoints(
    make_fleet: MakeFleet, stack: cdk.Stack
) -> None:
    closed = TrainingVpc(stack, "Closed", availability_zone="us-east-1a", egress="endpoints")

    fleet = make_fleet(
        subnet=closed.private_subnet, vpc=closed.vpc, prepared_image=True, image_id="ami-0123456789abcdef0"
    )

    assert len(fleet.groups) == 2


ECR = "123456789012.dkr.ecr.us-east-1.amazonaws.com/megatron:2026-11"
ELSEWHERE = "nvcr.io/nvidia/pytorch:26.10-py3"
OUT_OF_REACH = (
    "Demo/Fleet: training_image must be one in Amazon ECR of the network's own region with endpoints alone: nodes "
    f"reach no other registry, got {ELSEWHERE}; push it there, or set up a pull-through cache, or use egress nat"
)
NO_ENDPOINTS = (
    "Demo/Fleet: training_image must be absent in a network whose endpoints are not those of containers, got {}; "
    "give TrainingVpc containers=True"
)


@pytest.mark.parametrize(
    ("containers", "image", "messages"),
    [
        (True, ECR, []),
        (True, ELSEWHERE, [OUT_OF_REACH]),
        (False, ECR, [NO_ENDPOINTS.format(ECR)]),
        (False, ELSEWHERE, [NO_ENDPOINTS.format(ELSEWHERE), OUT_OF_REACH]),
    ],
)
def test_an_image_is_one_that_the_endpoints_of_a_network_reach(
    make_fleet: MakeFleet, stack: cdk.Stack, containers: bool, image: str, messages: list[str]
) -> None:
    closed = TrainingVpc(stack, "Closed", availability_zone="us-east-1a", egress="endpoints", containers=containers)
    given: dict[str, Any] = {"subnet": closed.private_subnet, "vpc": closed.vpc, "own_command": True}
    given |= {"prepared_image": True, "image_id": "ami-0123456789abcdef0", "training_image": image}

    found: list[str] = []
    try:
        make_fleet(**given)
    except PropertyError as refused:
        found = str(refused).splitlines()

    assert found == messages


def test_a_public_subnet_is_seen_through_its_reference(stack: cdk.Stack) -> None:
    vpc = ec2.Vpc.from_vpc_attributes(stack, "Vpc", vpc_id="vpc-12345678", availability_zones=["us-east-1a"])
    public = subnet_of(stack, "10.0.0.0/24", map_public_ip_on_launch=True)

    assert gives_public_addresses(vpc, ec2.Subnet.from_subnet_id(stack, "Imported", public.ref))
