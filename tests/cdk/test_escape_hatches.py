"""Constructs that hold one resource give it to escape hatches, and those with a security group to `connections`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_efs as efs
from aws_cdk import aws_fsx as fsx
from aws_cdk import aws_s3 as s3

from trainfabric_cdk import LustreLinkedToS3, SharedHome, TrainingVpc

Properties = Callable[[str], list[dict[str, Any]]]


@pytest.fixture
def network(stack: cdk.Stack) -> TrainingVpc:
    return TrainingVpc(stack, "Network", availability_zone="us-east-1a")


@pytest.fixture
def place(stack: cdk.Stack, network: TrainingVpc) -> dict[str, Any]:
    nodes = ec2.SecurityGroup.from_security_group_id(stack, "Nodes", "sg-12345678")
    return {"vpc": network.vpc, "subnet": network.private_subnet, "client_security_group": nodes}


@pytest.fixture
def others(stack: cdk.Stack) -> ec2.ISecurityGroup:
    return ec2.SecurityGroup.from_security_group_id(stack, "Others", "sg-87654321")


def test_the_default_child_of_a_network_is_its_vpc(network: TrainingVpc, properties: Properties) -> None:
    child = network.node.default_child

    assert isinstance(child, ec2.CfnVPC)
    child.add_property_override("InstanceTenancy", "dedicated")
    assert properties("AWS::EC2::VPC")[0]["InstanceTenancy"] == "dedicated"


def test_the_default_child_of_a_lustre_is_its_file_system(
    stack: cdk.Stack, place: dict[str, Any], properties: Properties
) -> None:
    lustre = LustreLinkedToS3(stack, "Lustre", bucket=s3.Bucket(stack, "Data"), **place)
    child = lustre.node.default_child

    assert isinstance(child, fsx.CfnFileSystem)
    child.add_property_override("LustreConfiguration.DriveCacheType", "NONE")
    assert properties("AWS::FSx::FileSystem")[0]["LustreConfiguration"]["DriveCacheType"] == "NONE"


@pytest.mark.parametrize(("kind", "made"), [("efs", efs.CfnFileSystem), ("openzfs", fsx.CfnFileSystem)])
def test_the_default_child_of_a_shared_home_is_its_file_system(
    stack: cdk.Stack, place: dict[str, Any], kind: Any, made: type
) -> None:
    assert isinstance(SharedHome(stack, "Home", kind=kind, **place).node.default_child, made)


def test_others_are_let_in_to_a_lustre_by_its_connections(
    stack: cdk.Stack, place: dict[str, Any], others: ec2.ISecurityGroup, properties: Properties
) -> None:
    lustre = LustreLinkedToS3(stack, "Lustre", bucket=s3.Bucket(stack, "Data"), **place)

    others.connections.allow_to(lustre, ec2.Port.tcp(988), "Lustre for others")

    (rule,) = _rules_of(properties, "sg-87654321")
    group = stack.resolve(lustre.security_group.security_group_id)
    assert (rule["FromPort"], rule["ToPort"], rule["GroupId"]) == (988, 988, group)


def test_others_are_let_in_to_a_shared_home_at_the_port_of_nfs(
    stack: cdk.Stack, place: dict[str, Any], others: ec2.ISecurityGroup, properties: Properties
) -> None:
    home = SharedHome(stack, "Home", kind="efs", **place)

    home.connections.allow_default_port_from(others)

    (rule,) = _rules_of(properties, "sg-87654321")
    group = stack.resolve(home.security_group.security_group_id)
    assert (rule["FromPort"], rule["ToPort"], rule["GroupId"]) == (2049, 2049, group)


def _rules_of(properties: Properties, source: str) -> list[dict[str, Any]]:
    rules = properties("AWS::EC2::SecurityGroupIngress")
    return [rule for rule in rules if rule.get("SourceSecurityGroupId") == source]
