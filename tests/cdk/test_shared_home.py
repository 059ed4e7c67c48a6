from __future__ import annotations

from collections.abc import Callable
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk.assertions import Template

from trainfabric_cdk import EfaSecurityGroup, PropertyError, SharedHome, SpotTrainingFleet, TrainingVpc

MakeHome = Callable[..., SharedHome]
Of = Callable[[str], Any]


@pytest.fixture
def make_home(stack: cdk.Stack) -> MakeHome:
    """A shared home at `Demo/Home`."""

    def make(**given: Any) -> SharedHome:
        network = TrainingVpc(stack, "Network", availability_zone="us-east-1a")
        nodes = EfaSecurityGroup(stack, "Nodes", vpc=given.get("vpc", network.vpc))
        usual = {"vpc": network.vpc, "subnet": network.private_subnet, "client_security_group": nodes}
        return SharedHome(stack, "Home", **{**usual, **given})

    return make


def test_efs_is_encrypted_backed_up_and_reached_through_one_target(make_home: MakeHome, properties: Of) -> None:
    make_home(kind="efs")

    (file_system,) = properties("AWS::EFS::FileSystem")
    (target,) = properties("AWS::EFS::MountTarget")
    assert file_system["Encrypted"] is True
    assert file_system["BackupPolicy"] == {"Status": "ENABLED"}
    assert "KmsKeyId" not in file_system
    assert len(target["SecurityGroups"]) == 1


def test_openzfs_is_the_smallest_unless_a_size_is_asked(make_home: MakeHome, properties: Of) -> None:
    make_home(kind="openzfs")

    (file_system,) = properties("AWS::FSx::FileSystem")
    assert (file_system["FileSystemType"], file_system["StorageCapacity"]) == ("OPENZFS", 64)
    assert file_system["OpenZFSConfiguration"]["DeploymentType"] == "SINGLE_AZ_1"
    assert file_system["OpenZFSConfiguration"]["AutomaticBackupRetentionDays"] == 7


@pytest.mark.parametrize(("kind", "of"), [("efs", "AWS::EFS::FileSystem"), ("openzfs", "AWS::FSx::FileSystem")])
def test_a_customer_key_encrypts_it(make_home: MakeHome, properties: Of, stack: cdk.Stack, kind: str, of: str) -> None:
    arn = "arn:aws:kms:us-east-1:123456789012:key/0f8e7d6c"

    make_home(kind=kind, encryption_key=kms.Key.from_key_arn(stack, "Key", arn))

    assert [one["KmsKeyId"] for one in properties(of)] == [arn]


@pytest.mark.parametrize("kind", ["efs", "openzfs"])
def test_only_nodes_get_in_and_only_by_nfs(make_home: MakeHome, properties: Of, kind: str) -> None:
    home = make_home(kind=kind)

    group = cdk.Stack.of(home).resolve(home.security_group.security_group_id)
    rules = [one for one in properties("AWS::EC2::SecurityGroupIngress") if one["GroupId"] == group]
    assert [(one["IpProtocol"], one["FromPort"], one["ToPort"]) for one in rules] == [("tcp", 2049, 2049)]
    assert "SourceSecurityGroupId" in rules[0]


@pytest.mark.parametrize(
    ("keys", "policy", "warned"),
    [
        ({}, "Retain", False),
        ({"retain": False}, "Retain", True),
        ({"retain": False, "delete_contents": True}, "Delete", False),
    ],
)
def test_it_is_deleted_by_two_keys_alone(
    make_home: MakeHome, resources: Of, warnings: Any, keys: dict[str, bool], policy: str, warned: bool
) -> None:
    make_home(kind="efs", **keys)

    (file_system,) = resources("AWS::EFS::FileSystem").values()
    assert (file_system["DeletionPolicy"], file_system["UpdateReplacePolicy"]) == (policy, policy)
    assert any("trainfabric:sharedHomeKept" in one for one in warnings()) is warned


def test_a_kept_openzfs_keeps_its_group_and_waits_for_its_rule(make_home: MakeHome, resources: Of) -> None:
    make_home(kind="openzfs")

    (file_system,) = resources("AWS::FSx::FileSystem").values()
    rules = {name: one for name, one in resources("AWS::EC2::SecurityGroupIngress").items() if "Home" in name}
    assert set(rules) <= set(file_system["DependsOn"])
    assert {one["DeletionPolicy"] for one in rules.values()} == {"Retain"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kind": "nfs"}, "Demo/Home: kind must be efs or openzfs, got 'nfs'"),
        (
            {"kind": "efs", "capacity_gib": 100},
            "Demo/Home: capacity_gib must be left out for efs, which grows by itself, got 100",
        ),
        (
            {"kind": "openzfs", "capacity_gib": 32},
            "Demo/Home: capacity_gib must be a whole number of GiB from 64 to 524288, got 32",
        ),
    ],
)
def test_what_aws_does_not_have_is_refused(make_home: MakeHome, given: dict[str, Any], message: str) -> None:
    with pytest.raises(PropertyError) as refused:
        make_home(**given)

    assert str(refused.value) == message


def test_a_size_that_is_a_token_is_taken_as_it_is(make_home: MakeHome, properties: Of, stack: cdk.Stack) -> None:
    make_home(kind="openzfs", capacity_gib=cdk.CfnParameter(stack, "Size", type="Number").value_as_number)

    assert [one["StorageCapacity"] for one in properties("AWS::FSx::FileSystem")] == [{"Ref": "Size"}]


Network = Callable[[cdk.Stack], tuple[ec2.IVpc, ec2.ISubnet]]


def _their_vpc(cidr: str | None, subnet_cidr: str | None) -> Network:
    def make(stack: cdk.Stack) -> tuple[ec2.IVpc, ec2.ISubnet]:
        vpc = ec2.Vpc.from_vpc_attributes(
            stack, "Theirs", vpc_id="vpc-1", availability_zones=["us-east-1a"], vpc_cidr_block=cidr
        )
        subnet = ec2.Subnet.from_subnet_attributes(
            stack, "Subnet", subnet_id="subnet-1", route_table_id="rtb-1", ipv4_cidr_block=subnet_cidr
        )
        return vpc, subnet

    return make


def _vpc_of_the_app(stack: cdk.Stack) -> tuple[ec2.IVpc, ec2.ISubnet]:
    vpc = ec2.Vpc(stack, "Ours", max_azs=1)
    return vpc, vpc.private_subnets[0]


@pytest.mark.parametrize(
    ("network", "clients"),
    [
        (_their_vpc("10.0.0.0/16", "10.0.1.0/24"), ["10.0.0.0/16"]),
        (_their_vpc("10.0.0.0/16", "100.64.0.0/24"), ["10.0.0.0/16", "100.64.0.0/24"]),
        (_their_vpc("10.0.0.0/16", None), ["*"]),
        (_their_vpc(None, "10.0.1.0/24"), ["*"]),
        (_vpc_of_the_app, [{"Fn::GetAtt": ["OursE5FAB774", "CidrBlock"]}, "10.0.128.0/17"]),
    ],
)
def test_openzfs_exports_to_the_ranges_of_the_network_where_they_are_known(
    make_home: MakeHome, properties: Of, stack: cdk.Stack, network: Network, clients: list[Any]
) -> None:
    vpc, subnet = network(stack)

    make_home(kind="openzfs", vpc=vpc, subnet=subnet, client_security_group=EfaSecurityGroup(stack, "Clients", vpc=vpc))

    (file_system,) = properties("AWS::FSx::FileSystem")
    (exports,) = file_system["OpenZFSConfiguration"]["RootVolumeConfiguration"]["NfsExports"]
    assert [one["Clients"] for one in exports["ClientConfigurations"]] == clients
    assert {tuple(one["Options"]) for one in exports["ClientConfigurations"]} == {
        ("rw", "crossmnt", "sync", "no_root_squash")
    }


def test_openzfs_exports_to_whomever_the_group_lets_in_if_clients_may_be_elsewhere(
    make_home: MakeHome, properties: Of, stack: cdk.Stack
) -> None:
    group = ec2.SecurityGroup.from_security_group_id(stack, "Somebody", "sg-0123456789abcdef0")

    make_home(kind="openzfs", client_security_group=group)

    (file_system,) = properties("AWS::FSx::FileSystem")
    (exports,) = file_system["OpenZFSConfiguration"]["RootVolumeConfiguration"]["NfsExports"]
    assert [one["Clients"] for one in exports["ClientConfigurations"]] == ["*"]


def test_openzfs_in_a_network_of_ours_exports_to_its_range_alone(make_home: MakeHome, properties: Of) -> None:
    make_home(kind="openzfs")

    (file_system,) = properties("AWS::FSx::FileSystem")
    (exports,) = file_system["OpenZFSConfiguration"]["RootVolumeConfiguration"]["NfsExports"]
    assert [one["Clients"] for one in exports["ClientConfigurations"]] == ["10.20.0.0/16"]


def test_nodes_are_told_what_to_mount(make_fleet: Callable[..., SpotTrainingFleet], stack: cdk.Stack) -> None:
    def home(network: TrainingVpc) -> Any:
        group = EfaSecurityGroup(stack, "Clients", vpc=network.vpc)
        made = SharedHome(
            stack, "Home", kind="efs", vpc=network.vpc, subnet=network.private_subnet, client_security_group=group
        )
        return made.mount

    make_fleet(shared_home=home)

    for one in Template.from_stack(stack).find_resources("AWS::EC2::LaunchTemplate").values():
        user_data = str(one["Properties"]["LaunchTemplateData"]["UserData"])
        assert "TRAINFABRIC_HOME_SERVER=" in user_data
        assert "TRAINFABRIC_HOME_PATH=/" in user_data
