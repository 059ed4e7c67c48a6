from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk.assertions import Template

from trainfabric_cdk import PropertyError, TrainingVpc
from trainfabric_cdk.network import warn_of_no_s3_endpoint
from trainfabric_plan.node_calls import NODE_CALLS

Properties = Callable[[str], list[dict[str, Any]]]

ENDPOINT = "AWS::EC2::VPCEndpoint"
SERVICES = ["autoscaling", "monitoring", "sqs", "ssm", "ssmmessages"]


def closed(stack: cdk.Stack, **given: Any) -> TrainingVpc:
    return TrainingVpc(stack, "Network", availability_zone="us-east-1a", egress="endpoints", **given)


def endpoint_names(properties: Properties, kind: str) -> list[str]:
    return sorted(e["ServiceName"] for e in properties(ENDPOINT) if e["VpcEndpointType"] == kind)


def test_a_network_of_endpoints_has_no_way_to_the_internet(stack: cdk.Stack, properties: Properties) -> None:
    closed(stack)

    for kind in ("InternetGateway", "NatGateway", "Route", "EIP"):
        assert properties(f"AWS::EC2::{kind}") == []
    assert [subnet["CidrBlock"] for subnet in properties("AWS::EC2::Subnet")] == ["10.20.0.0/17"]


def test_there_is_an_endpoint_for_each_service_that_nodes_call(stack: cdk.Stack, properties: Properties) -> None:
    network = closed(stack)

    assert endpoint_names(properties, "Gateway") == ["com.amazonaws.us-east-1.s3"]
    assert endpoint_names(properties, "Interface") == [f"com.amazonaws.us-east-1.{name}" for name in SERVICES]
    assert len(network.endpoints) == len(SERVICES)


def test_a_container_image_needs_the_endpoints_of_its_registry(stack: cdk.Stack, properties: Properties) -> None:
    closed(stack, containers=True)

    names = endpoint_names(properties, "Interface")
    assert names == sorted(f"com.amazonaws.us-east-1.{name}" for name in (*SERVICES, "ecr.api", "ecr.dkr"))


def test_endpoints_answer_by_the_usual_names_over_https_from_this_vpc_alone(
    stack: cdk.Stack, properties: Properties
) -> None:
    closed(stack)

    interfaces = [e for e in properties(ENDPOINT) if e["VpcEndpointType"] == "Interface"]
    assert {e["PrivateDnsEnabled"] for e in interfaces} == {True}
    assert len({json.dumps(e["SecurityGroupIds"]) for e in interfaces}) == 1
    (group,) = properties("AWS::EC2::SecurityGroup")
    (rule,) = group["SecurityGroupIngress"]
    assert (rule["CidrIp"], rule["FromPort"], rule["ToPort"], rule["IpProtocol"]) == ("10.20.0.0/16", 443, 443, "tcp")
    assert properties("AWS::EC2::SecurityGroupIngress") == []


def test_an_endpoint_passes_what_nodes_call_and_principals_of_the_account(
    stack: cdk.Stack, properties: Properties
) -> None:
    closed(stack)

    passed = {
        endpoint["ServiceName"].rpartition(".")[2]: endpoint["PolicyDocument"]["Statement"]
        for endpoint in properties(ENDPOINT)
        if endpoint["VpcEndpointType"] == "Interface"
    }
    (monitoring,) = passed["monitoring"]
    assert monitoring["Action"] == "cloudwatch:PutMetricData"
    assert [one["Action"] for one in passed["ssm"]] == ["ssm:*"]
    for (statement,) in passed.values():
        assert statement["Condition"] == {"StringEquals": {"aws:PrincipalAccount": "123456789012"}}


def test_a_network_of_endpoints_has_no_public_subnet_to_give(stack: cdk.Stack) -> None:
    network = closed(stack)

    with pytest.raises(PropertyError) as refused:
        _ = network.public_subnet

    assert str(refused.value) == (
        "Demo/Network: public_subnet must be read only of a network with a NAT gateway, got egress endpoints; "
        "use private_subnet"
    )


def test_another_way_out_is_refused(stack: cdk.Stack) -> None:
    with pytest.raises(PropertyError) as refused:
        TrainingVpc(stack, "Network", availability_zone="us-east-1a", egress="proxy")  # type: ignore[arg-type]

    assert str(refused.value) == "Demo/Network: egress must be nat or endpoints, got 'proxy'"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"addresses": 124, "cidr": "10.0.0.0/24"},
            "Demo/Network: cidr must be large enough for 124 addresses in its private half, "
            "got 123 free in 10.0.0.0/25; choose a larger range, up to /16, or fewer nodes; "
            "file systems take addresses as well",
        ),
        (
            {"addresses": 119, "cidr": "10.0.0.0/24", "egress": "endpoints"},
            "Demo/Network: cidr must be large enough for 119 addresses in its private half beside 5 endpoints, "
            "got 118 free in 10.0.0.0/25; choose a larger range, up to /16, or fewer nodes; "
            "file systems take addresses as well",
        ),
    ],
)
def test_a_range_without_room_for_the_nodes_is_refused(stack: cdk.Stack, given: dict[str, Any], message: str) -> None:
    with pytest.raises(PropertyError) as refused:
        TrainingVpc(stack, "Network", availability_zone="us-east-1a", **given)

    assert str(refused.value) == message


def test_a_range_with_just_enough_room_is_taken_and_a_number_settled_at_deploy_time_is_not_judged(
    stack: cdk.Stack, properties: Properties
) -> None:
    number = cdk.Token.as_number(cdk.Fn.ref("Number"))
    TrainingVpc(stack, "Full", availability_zone="us-east-1a", cidr="10.0.0.0/24", addresses=123)
    TrainingVpc(stack, "Later", availability_zone="us-east-1a", cidr="10.1.0.0/24", addresses=number)

    assert len(properties("AWS::EC2::VPC")) == 2


@pytest.mark.parametrize("region", ["us-gov-west-1", "cn-north-1", "cn-northwest-1"])
def test_endpoints_have_the_names_of_their_partition(region: str) -> None:
    app = cdk.App(analytics_reporting=False)
    stack = cdk.Stack(app, "Demo", env=cdk.Environment(account="123456789012", region=region))
    TrainingVpc(stack, "Network", availability_zone=f"{region}a", egress="endpoints", containers=True)

    template = Template.from_stack(stack)

    # In China some services are named from their own domain: the CDK knows which (InterfaceVpcEndpointAwsService).
    china = "cn." if region.startswith("cn-") else ""
    assert {one["Properties"]["ServiceName"] for one in template.find_resources(ENDPOINT).values()} == {
        f"com.amazonaws.{region}.s3",
        f"com.amazonaws.{region}.ssm",
        f"com.amazonaws.{region}.ssmmessages",
        f"{china}com.amazonaws.{region}.autoscaling",
        f"{china}com.amazonaws.{region}.ecr.api",
        f"{china}com.amazonaws.{region}.ecr.dkr",
        f"{china}com.amazonaws.{region}.monitoring",
        f"{china}com.amazonaws.{region}.sqs",
    }
    assert "arn:aws:" not in json.dumps(template.to_json())


def test_whatever_a_node_may_do_has_an_endpoint(make_fleet: Any, stack: cdk.Stack) -> None:
    make_fleet()

    policies = Template.from_stack(stack).find_resources("AWS::IAM::Policy")
    (policy,) = (one for id, one in policies.items() if id.startswith("FleetRole"))
    statements = policy["Properties"]["PolicyDocument"]["Statement"]
    actions = {
        action
        for one in statements
        for action in ([one["Action"]] if isinstance(one["Action"], str) else one["Action"])
    }
    listed = {call.service: call.actions for call in NODE_CALLS if not call.containers}
    assert {action.split(":")[0] for action in actions} - {"kms"} <= listed.keys()
    for action in actions:
        service, _, name = action.partition(":")
        assert not listed.get(service) or name in listed[service], action


def test_an_imported_vpc_without_an_s3_endpoint_in_sight_is_warned_of(
    stack: cdk.Stack, warnings: Callable[[], list[str]]
) -> None:
    vpc = ec2.Vpc.from_vpc_attributes(stack, "Vpc", vpc_id="vpc-12345678", availability_zones=["us-east-1a"])

    warn_of_no_s3_endpoint(stack, vpc=vpc)

    assert warnings() == [
        "no S3 gateway endpoint of the VPC is to be seen here, and NAT bills every gigabyte of data and checkpoints: "
        "give the route table of the subnet, so that one is added, or say that there is one with has_s3_endpoint "
        "[ack: trainfabric:noS3Endpoint]"
    ]


def test_endpoints_of_ours_and_of_the_cdk_are_seen(stack: cdk.Stack, warnings: Callable[[], list[str]]) -> None:
    ours = TrainingVpc(stack, "Network", availability_zone="us-east-1a")
    theirs = ec2.Vpc(stack, "Vpc", nat_gateways=0)
    theirs.add_gateway_endpoint("S3", service=ec2.GatewayVpcEndpointAwsService.S3)

    warn_of_no_s3_endpoint(stack, vpc=ours.vpc)
    warn_of_no_s3_endpoint(stack, vpc=theirs)

    assert [text for text in warnings() if "noS3Endpoint" in text] == []


def test_the_endpoint_of_another_service_or_vpc_does_not_count(
    stack: cdk.Stack, warnings: Callable[[], list[str]]
) -> None:
    TrainingVpc(stack, "Network", availability_zone="us-east-1a")
    theirs = ec2.Vpc(stack, "Vpc", nat_gateways=0)
    theirs.add_gateway_endpoint("Table", service=ec2.GatewayVpcEndpointAwsService.DYNAMODB)

    warn_of_no_s3_endpoint(stack, vpc=theirs)

    assert len([text for text in warnings() if "noS3Endpoint" in text]) == 1
