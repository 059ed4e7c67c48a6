"""A network that `ec2.Vpc.from_lookup` finds: stand-ins on the first synthesis, the account's own on the next.

And zones: what nodes read of a file system in another zone crosses zones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_ssm as ssm
from aws_cdk.assertions import Annotations, Match, Template

from trainfabric_cdk import (
    EfaClusterPlacementGroup,
    EfaSecurityGroup,
    ExistingLustre,
    LustreLinkedToS3,
    LustreMount,
    ParallelClusterStack,
    PropertyError,
    SharedHome,
    SpotTrainingFleet,
)

ENV = cdk.Environment(account="123456789012", region="us-east-1")
KEY = "vpc-provider:account=123456789012:filter.vpc-id=vpc-0a1b2c3d:region=us-east-1:returnAsymmetricSubnets=true"
CROSSES = (
    "the nodes are in us-east-1a and their Lustre file system is in us-east-1b: all that they read and write "
    "crosses zones, which is slower and billed by the gigabyte; use a subnet of the same zone "
    "[ack: trainfabric:lustreInAnotherZone]"
)


def subnets(kind: str) -> dict[str, Any]:
    """Two subnets of a kind, as the CLI writes them into cdk.context.json."""
    made = [
        {
            "subnetId": f"subnet-{kind.lower()}{zone}",
            "cidr": f"10.0.{number}.0/20",
            "availabilityZone": f"us-east-1{zone}",
            "routeTableId": f"rtb-{kind.lower()}{zone}",
        }
        for number, zone in ((0, "a"), (16, "b"))
    ]
    return {"name": kind, "type": kind, "subnets": made}


FOUND = {
    KEY: {
        "vpcId": "vpc-0a1b2c3d",
        "vpcCidrBlock": "10.0.0.0/16",
        "ownerAccountId": "123456789012",
        "availabilityZones": [],
        "subnetGroups": [subnets("Public"), subnets("Private")],
    }
}


def looked_up(context: dict[str, Any]) -> tuple[cdk.Stack, ec2.IVpc]:
    stack = cdk.Stack(cdk.App(analytics_reporting=False, context=context), "Demo", env=ENV)
    return stack, ec2.Vpc.from_lookup(stack, "Vpc", vpc_id="vpc-0a1b2c3d")


def add_fleet(stack: cdk.Stack, vpc: ec2.IVpc, subnet: ec2.ISubnet, **given: Any) -> SpotTrainingFleet:
    usual: dict[str, Any] = {
        "environment": "demo",
        "vpc": vpc,
        "subnet": subnet,
        "security_group": EfaSecurityGroup(stack, "Nodes", vpc=vpc),
        "placement_group": EfaClusterPlacementGroup(stack, "Placement"),
        "instance_type": "p5.48xlarge",
        "nodes": 4,
        "data_bucket": s3.Bucket.from_bucket_name(stack, "Data", "demo-data"),
        "checkpoint_bucket": s3.Bucket.from_bucket_name(stack, "Checkpoints", "demo-checkpoints"),
        "lustre": LustreMount(dns_name="fs-1.fsx.us-east-1.amazonaws.com", mount_name="a"),
        "has_s3_endpoint": True,
    }
    return SpotTrainingFleet(stack, "Fleet", **{**usual, **given})


def add_everything(stack: cdk.Stack, vpc: ec2.IVpc) -> None:
    """Nodes, file system and home in the first private subnet."""
    subnet = vpc.private_subnets[0]
    clients = EfaSecurityGroup(stack, "Clients", vpc=vpc)
    place: dict[str, Any] = {"vpc": vpc, "subnet": subnet, "client_security_group": clients}
    lustre = LustreLinkedToS3(
        stack, "Lustre", **place, bucket=s3.Bucket.from_bucket_name(stack, "Linked", "demo-linked")
    )
    home = SharedHome(stack, "Home", kind="openzfs", **place)
    add_fleet(stack, vpc, subnet, security_group=clients, lustre=lustre.mount, shared_home=home.mount)


def subnets_of_groups(stack: cdk.Stack) -> set[str]:
    groups = Template.from_stack(stack).find_resources("AWS::AutoScaling::AutoScalingGroup").values()
    return {one for group in groups for one in group["Properties"]["VPCZoneIdentifier"]}


def warnings(stack: cdk.Stack) -> list[str]:
    found = Annotations.from_stack(stack).find_warning("/Demo/Fleet", Match.any_value())
    return [str(one.entry.data) for one in found]


def test_the_stand_ins_of_the_first_synthesis_are_taken_for_nothing() -> None:
    stack, vpc = looked_up({})
    assert (vpc.vpc_id, vpc.private_subnets[0].availability_zone) == ("vpc-12345", "dummy1a")

    add_everything(stack, vpc)

    assert subnets_of_groups(stack) == {"p-12345"}
    assert warnings(stack) == []


def test_a_known_zone_of_a_file_system_is_not_compared_with_that_of_a_stand_in() -> None:
    stack, vpc = looked_up({})
    lustre = ExistingLustre(
        stack, "Lustre", file_system_id="fs-0123456789abcdef0", mount_name="a", availability_zone="us-east-1b"
    )

    add_fleet(stack, vpc, vpc.private_subnets[0], lustre=lustre.mount)

    assert warnings(stack) == []


def test_on_the_next_synthesis_everything_is_in_the_network_of_the_account() -> None:
    stack, vpc = looked_up(FOUND)

    add_everything(stack, vpc)

    assert subnets_of_groups(stack) == {"subnet-privatea"}
    assert warnings(stack) == []


@pytest.mark.parametrize("context", [{}, FOUND], ids=["first synthesis", "next synthesis"])
def test_a_public_subnet_of_a_network_that_is_looked_up_is_refused_on_every_synthesis(context: dict[str, Any]) -> None:
    stack, vpc = looked_up(context)

    with pytest.raises(PropertyError) as refused:
        add_fleet(stack, vpc, vpc.public_subnets[0])

    assert str(refused.value) == (
        "Demo/Fleet: subnet must be a private subnet for a node with 33 interfaces: EC2 gives it no public address and "
        "the launch fails, got public subnet Demo/Vpc/PublicSubnet1; use a private subnet with a NAT gateway, as "
        "TrainingVpc has, and no public address"
    )


def made(stack: cdk.Stack, vpc: ec2.IVpc) -> LustreMount:
    """Of a file system that is made in the second zone."""
    bucket = s3.Bucket.from_bucket_name(stack, "Linked", "demo-linked")
    clients = EfaSecurityGroup(stack, "Clients", vpc=vpc)
    place: dict[str, Any] = {"vpc": vpc, "subnet": vpc.private_subnets[1], "client_security_group": clients}
    return LustreLinkedToS3(stack, "Lustre", **place, bucket=bucket).mount


def existing(zone: str | None) -> Callable[[cdk.Stack, ec2.IVpc], LustreMount]:
    """Of one that exists, in a zone that is given or not."""

    def mount(stack: cdk.Stack, _: ec2.IVpc) -> LustreMount:
        return ExistingLustre(
            stack, "Lustre", file_system_id="fs-0123456789abcdef0", mount_name="a", availability_zone=zone
        ).mount

    return mount


@pytest.mark.parametrize(
    ("lustre", "expected"),
    [
        (made, [CROSSES]),
        (existing("us-east-1b"), [CROSSES]),
        (existing("us-east-1a"), []),
        (existing(None), []),
    ],
    ids=["made elsewhere", "existing elsewhere", "existing here", "existing somewhere"],
)
def test_nodes_in_another_zone_than_their_file_system_are_warned_about_if_both_zones_are_known(
    lustre: Callable[[cdk.Stack, ec2.IVpc], LustreMount], expected: list[str]
) -> None:
    stack, vpc = looked_up(FOUND)

    add_fleet(stack, vpc, vpc.private_subnets[0], lustre=lustre(stack, vpc))

    assert [text for text in warnings(stack) if "AnotherZone" in text] == expected


def test_nothing_is_said_of_a_subnet_that_does_not_tell_its_zone() -> None:
    stack, vpc = looked_up(FOUND)
    subnet = ec2.Subnet.from_subnet_id(stack, "Given", "subnet-12345678")
    clients = EfaSecurityGroup(stack, "Clients", vpc=vpc)
    bucket = s3.Bucket.from_bucket_name(stack, "Linked", "demo-linked")
    lustre = LustreLinkedToS3(stack, "Lustre", vpc=vpc, subnet=subnet, client_security_group=clients, bucket=bucket)

    add_fleet(stack, vpc, subnet, lustre=lustre.mount)

    assert lustre.mount.availability_zone is None
    assert [text for text in warnings(stack) if "AnotherZone" in text] == []


def test_a_cluster_in_a_network_that_is_looked_up_is_synthesised_before_anything_is_found() -> None:
    app = cdk.App()
    env = cdk.Environment(account="123456789012", region="us-east-1")
    stack = cdk.Stack(app, "Network", env=env)
    vpc = ec2.Vpc.from_lookup(stack, "Vpc", vpc_name="ours")
    value = ssm.StringParameter.value_from_lookup(stack, "/ours/file-system")

    cluster = ParallelClusterStack(
        app,
        "Slurm",
        env=env,
        environment="demo",
        vpc=vpc,
        subnet=vpc.private_subnets[0],
        security_group=EfaSecurityGroup(stack, "Nodes", vpc=vpc),
        instance_type="p5.48xlarge",
        nodes=2,
        data_bucket=s3.Bucket.from_bucket_name(stack, "Data", "demo-data"),
        checkpoint_bucket=s3.Bucket.from_bucket_name(stack, "Saves", "demo-saves"),
        file_system_id=value,
        version="3.16.1",
        custom_ami=ec2.MachineImage.lookup(name="ours").get_image(stack).image_id,
    )

    assert cluster.configuration.file_system_id == "dummy-value-for-/ours/file-system"
