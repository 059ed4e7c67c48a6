from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2

from trainfabric_cdk import EfaSecurityGroup, PropertyError, TrainingVpc
from trainfabric_cdk.network import node_interfaces
from trainfabric_cdk.network.interfaces import gives_public_addresses
from trainfabric_plan.catalog import instance_type

Properties = Callable[[str], list[dict[str, Any]]]


@pytest.fixture
def network(stack: cdk.Stack) -> TrainingVpc:
    return TrainingVpc(stack, "Network", availability_zone="us-east-1a")


def test_half_of_the_range_is_private_and_an_eighth_public_in_one_zone(
    network: TrainingVpc, properties: Properties
) -> None:
    subnets = properties("AWS::EC2::Subnet")

    assert sorted((s["CidrBlock"], s["AvailabilityZone"]) for s in subnets) == [
        ("10.20.0.0/17", "us-east-1a"),
        ("10.20.128.0/19", "us-east-1a"),
    ]


def test_no_subnet_gives_public_addresses_by_itself(network: TrainingVpc, properties: Properties) -> None:
    assert [s["MapPublicIpOnLaunch"] for s in properties("AWS::EC2::Subnet")] == [False, False]


def test_the_way_out_of_the_private_subnet_is_one_nat_gateway(
    network: TrainingVpc, properties: Properties, resources: Callable[[str], dict[str, Any]]
) -> None:
    (nat,) = resources("AWS::EC2::NatGateway")

    targets = [(r.get("NatGatewayId"), r.get("GatewayId")) for r in properties("AWS::EC2::Route")]

    assert ({"Ref": nat}, None) in targets
    assert len(targets) == 2


def test_s3_is_reached_through_a_gateway_endpoint_from_both_subnets(
    network: TrainingVpc, properties: Properties, resources: Callable[[str], dict[str, Any]]
) -> None:
    (endpoint,) = properties("AWS::EC2::VPCEndpoint")

    assert endpoint["VpcEndpointType"] == "Gateway"
    assert endpoint["ServiceName"] == "com.amazonaws.us-east-1.s3"
    tables = resources("AWS::EC2::RouteTable")
    assert sorted(table["Ref"] for table in endpoint["RouteTableIds"]) == sorted(tables)


def test_flow_logs_of_the_vpc_go_to_cloudwatch_for_a_month(network: TrainingVpc, properties: Properties) -> None:
    (log,), (group,) = properties("AWS::EC2::FlowLog"), properties("AWS::Logs::LogGroup")

    assert (log["ResourceType"], log["TrafficType"], log["LogDestinationType"]) == ("VPC", "ALL", "cloud-watch-logs")
    assert group["RetentionInDays"] == 30


def test_the_network_needs_neither_lambda_nor_a_lookup_of_zones(network: TrainingVpc, properties: Properties) -> None:
    assembly = cdk.App.of(network).synth()

    assert properties("AWS::Lambda::Function") == []
    assert "missing" not in json.loads(Path(assembly.directory, "manifest.json").read_text())


@pytest.mark.parametrize("cidr", ["10.0.0.0/15", "10.0.0.0/25", "10.20.0.1/16", "nonsense"])
def test_a_range_that_cannot_be_cut_is_refused(stack: cdk.Stack, cidr: str) -> None:
    with pytest.raises(PropertyError) as refused:
        TrainingVpc(stack, "Network", availability_zone="us-east-1a", cidr=cidr)

    assert str(refused.value) == (
        f"Demo/Network: cidr must be a range from /16 to /24 such as 10.20.0.0/16, got {cidr}"
    )


def test_a_range_that_is_settled_at_deploy_time_is_refused_because_subnets_are_cut_out_of_it(
    stack: cdk.Stack,
) -> None:
    with pytest.raises(PropertyError) as refused:
        TrainingVpc(stack, "Network", availability_zone="us-east-1a", cidr=cdk.Fn.import_value("range"))

    assert str(refused.value) == (
        "Demo/Network: cidr must be a range from /16 to /24 such as 10.20.0.0/16, got a token; "
        "give it as text: the subnets are cut out of it"
    )


def test_the_security_group_names_itself_in_both_directions_and_lets_everything_out(
    stack: cdk.Stack, network: TrainingVpc, properties: Properties, resources: Callable[[str], dict[str, Any]]
) -> None:
    EfaSecurityGroup(stack, "Nodes", vpc=network.vpc)

    (group,) = resources("AWS::EC2::SecurityGroup")
    (ingress,), (egress,) = properties("AWS::EC2::SecurityGroupIngress"), properties("AWS::EC2::SecurityGroupEgress")
    itself = {"Fn::GetAtt": [group, "GroupId"]}
    assert (ingress["GroupId"], ingress["SourceSecurityGroupId"], ingress["IpProtocol"]) == (itself, itself, "-1")
    assert (egress["GroupId"], egress["DestinationSecurityGroupId"], egress["IpProtocol"]) == (itself, itself, "-1")
    (outbound,) = resources("AWS::EC2::SecurityGroup")[group]["Properties"]["SecurityGroupEgress"]
    assert (outbound["CidrIp"], outbound["IpProtocol"]) == ("0.0.0.0/0", "-1")


@pytest.mark.parametrize(
    ("name", "with_efa", "without"), [("p5.48xlarge", 33, 1), ("p6-b300.48xlarge", 17, 1), ("m7i.large", 1, 1)]
)
def test_without_efa_a_node_has_a_single_interface(name: str, with_efa: int, without: int) -> None:
    row = instance_type(name)

    assert len(node_interfaces(row, efa=True)) == with_efa
    assert [i.type.value for i in node_interfaces(row, efa=False)] == ["interface"]


def test_a_subnet_counts_as_public_if_it_says_so_or_the_vpc_does(stack: cdk.Stack, network: TrainingVpc) -> None:
    stray = ec2.Subnet(
        stack,
        "Stray",
        vpc_id="vpc-1",
        availability_zone="us-east-1a",
        cidr_block="10.0.0.0/24",
        map_public_ip_on_launch=True,
    )
    unknown = ec2.Subnet.from_subnet_id(stack, "Unknown", "subnet-1")

    found = [gives_public_addresses(network.vpc, s) for s in (stray, network.public_subnet, network.private_subnet)]

    assert found == [True, True, False]
    assert not gives_public_addresses(network.vpc, unknown)


RANGES_OF_NO_HOST = ["0.0.0.0", "127.0.0.0", "169.254.0.0", "224.0.0.0", "239.1.0.0", "250.0.0.0"]
NO_HOST = "a range whose addresses hosts can have: no loopback, link-local, multicast or reserved one"
DOCKER = "outside 172.17.0.0/16, which Docker routes to its own containers on every node"


@pytest.mark.parametrize(
    ("cidr", "rule", "remedy"),
    [
        *((f"{one}/16", NO_HOST, "use a private range such as 10.20.0.0/16") for one in RANGES_OF_NO_HOST),
        *(
            (one, DOCKER, "use another private range such as 10.20.0.0/16")
            for one in ("172.17.0.0/16", "172.17.8.0/24")
        ),
    ],
)
def test_a_range_that_nodes_cannot_have_is_refused(stack: cdk.Stack, cidr: str, rule: str, remedy: str) -> None:
    with pytest.raises(PropertyError) as refused:
        TrainingVpc(stack, "Network", availability_zone="us-east-1a", cidr=cidr)

    assert str(refused.value) == f"Demo/Network: cidr must be {rule}, got {cidr}; {remedy}"


@pytest.mark.parametrize("cidr", ["172.16.0.0/16", "172.18.0.0/16", "100.64.0.0/16", "192.168.0.0/16", "9.0.0.0/16"])
def test_ranges_beside_that_of_docker_are_taken(stack: cdk.Stack, cidr: str) -> None:
    assert TrainingVpc(stack, "Network", availability_zone="us-east-1a", cidr=cidr).vpc.vpc_cidr_block == cidr


@pytest.mark.parametrize(
    ("addresses", "rule"),
    [(-1, "at least 0, got -1"), (2.5, "a whole number, got 2.5"), (True, "a whole number, got True")],
)
def test_addresses_are_a_whole_number_of_at_least_none(stack: cdk.Stack, addresses: Any, rule: str) -> None:
    with pytest.raises(PropertyError) as refused:
        TrainingVpc(stack, "Network", availability_zone="us-east-1a", addresses=addresses)

    assert str(refused.value) == f"Demo/Network: addresses must be {rule}"
