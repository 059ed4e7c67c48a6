"""Ids and names that AWS would not know are refused by their form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from trainfabric_cdk import (
    EfaSecurityGroup,
    ExistingLustre,
    LustreLink,
    LustreLinkedToS3,
    PropertyError,
    SharedHome,
    SpotTrainingFleet,
    TrainingVpc,
)


def refusal(make: Callable[[], object]) -> str:
    with pytest.raises(PropertyError) as refused:
        make()
    return str(refused.value)


@pytest.mark.parametrize("image", ["foo", "ami-xyz", "ami-0123456789", "resolve:ssm:", "", "AMI-12345678"])
def test_what_is_no_image_is_refused(make_fleet: Callable[..., SpotTrainingFleet], image: str) -> None:
    assert refusal(lambda: make_fleet(image_id=image)) == (
        "Demo/Fleet: image_id must be ami- and 8 or 17 hexadecimal digits, or resolve:ssm: and the name of a "
        f"parameter, got {image!r}"
    )


@pytest.mark.parametrize(
    "image",
    [
        "ami-12345678",
        "resolve:ssm:/ours/image",
        "resolve:ssm:ours:3",
        "resolve:ssm:arn:aws:ssm:us-east-1:210987654321:parameter/golden/gpu:7",
    ],
)
def test_images_are_named_by_id_or_by_a_parameter(
    make_fleet: Callable[..., SpotTrainingFleet], properties: Callable[[str], Any], image: str
) -> None:
    make_fleet(image_id=image)

    assert {one["LaunchTemplateData"]["ImageId"] for one in properties("AWS::EC2::LaunchTemplate")} == {image}


@pytest.mark.parametrize(
    ("zone", "rule"),
    [
        ("us-west-2a", "a zone of the stack's region, us-east-1, got 'us-west-2a'"),
        ("us-east-1", "the name of a zone, such as us-east-1a, got 'us-east-1'"),
        ("", "the name of a zone, such as us-east-1a, got ''"),
        (
            "use1-az1",
            "the name of a zone, not its id, got 'use1-az1'; aws ec2 describe-availability-zones shows the name that "
            "your account has for this id",
        ),
    ],
)
def test_what_is_no_zone_of_the_region_is_refused(stack: cdk.Stack, zone: str, rule: str) -> None:
    message = refusal(lambda: TrainingVpc(stack, "Network", availability_zone=zone))

    assert message == f"Demo/Network: availability_zone must be {rule}"


@pytest.mark.parametrize("zone", ["us-east-1f", "us-east-1-atl-2a"])
def test_zones_and_local_zones_of_the_region_are_taken(stack: cdk.Stack, zone: str) -> None:
    TrainingVpc(stack, "Network", availability_zone=zone)


def test_zones_of_the_european_sovereign_cloud_are_zones() -> None:
    stack = cdk.Stack(cdk.App(), "Sovereign", env=cdk.Environment(account="123456789012", region="eusc-de-east-1"))

    TrainingVpc(stack, "Network", availability_zone="eusc-de-east-1a")


def test_what_a_lookup_has_not_found_yet_is_not_judged(
    stack: cdk.Stack, make_fleet: Callable[..., SpotTrainingFleet]
) -> None:
    """The command line looks only after an app that did not fail, and then tries again."""
    value = ssm.StringParameter.value_from_lookup(stack, "/ours/value")
    image = ec2.MachineImage.lookup(name="ours").get_image(stack).image_id

    TrainingVpc(stack, "First", availability_zone=stack.availability_zones[0])
    TrainingVpc(stack, "Looked", availability_zone=value)
    ExistingLustre(stack, "Lustre", file_system_id=value, mount_name=value)
    make_fleet(image_id=image, security_group=lambda network: EfaSecurityGroup(stack, "Found", vpc=network.vpc))


def test_a_vpc_that_is_looked_up_is_not_told_apart_from_one_that_is_named(stack: cdk.Stack) -> None:
    found = ec2.Vpc.from_lookup(stack, "Found", vpc_id="vpc-0123456789abcdef0")
    named = ec2.Vpc.from_vpc_attributes(
        stack, "Named", vpc_id="vpc-0123456789abcdef0", availability_zones=["us-east-1a"]
    )
    subnet = ec2.Subnet.from_subnet_id(stack, "Subnet", "subnet-0123456789abcdef0")
    group = EfaSecurityGroup(stack, "Nodes", vpc=named)

    SharedHome(stack, "Home", kind="efs", vpc=found, subnet=subnet, client_security_group=group)


def test_attributes_of_somebody_elses_constructs_are_theirs(
    stack: cdk.Stack, make_fleet: Callable[..., SpotTrainingFleet]
) -> None:
    theirs: Any = Construct(stack, "Theirs")
    theirs.checkpoint_bucket, theirs.linked_buckets = "my-checkpoints", None

    make_fleet()
    other = cdk.Stack(cdk.App.of(stack), "Other")
    lustre(other, bucket=s3.Bucket.from_bucket_name(other, "Data", "demo-data"))


def test_a_stack_for_any_region_takes_any_zone() -> None:
    TrainingVpc(cdk.Stack(cdk.App(), "Anywhere"), "Network", availability_zone="ap-southeast-2b")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"file_system_id": "x"},
            "Demo/Lustre: file_system_id must be fs- and 17 hexadecimal digits, got 'x'",
        ),
        (
            {"mount_name": "a b"},
            "Demo/Lustre: mount_name must be 1 to 8 letters, digits, _ and -, got 'a b'; "
            "aws fsx describe-file-systems shows it as MountName",
        ),
    ],
)
def test_what_names_no_file_system_is_refused(stack: cdk.Stack, given: dict[str, Any], message: str) -> None:
    usual = {"file_system_id": "fs-0123456789abcdef0", "mount_name": "abcdefgh"}

    assert refusal(lambda: ExistingLustre(stack, "Lustre", **{**usual, **given})) == message


def test_a_file_system_that_is_settled_at_deploy_time_is_not_judged(stack: cdk.Stack) -> None:
    ExistingLustre(stack, "Lustre", file_system_id=cdk.Fn.import_value("id"), mount_name=cdk.Fn.import_value("name"))


def lustre(stack: cdk.Stack, **given: Any) -> LustreLinkedToS3:
    network = TrainingVpc(stack, "Network", availability_zone="us-east-1a")
    nodes = EfaSecurityGroup(stack, "Nodes", vpc=network.vpc)
    return LustreLinkedToS3(
        stack, "Lustre", vpc=network.vpc, subnet=network.private_subnet, client_security_group=nodes, **given
    )


def bucket_elsewhere(stack: cdk.Stack) -> s3.IBucket:
    return s3.Bucket.from_bucket_attributes(stack, "Far", bucket_name="far", region="eu-west-1")


def test_nothing_is_imported_from_a_bucket_of_another_region(stack: cdk.Stack) -> None:
    assert refusal(lambda: lustre(stack, bucket=bucket_elsewhere(stack))) == (
        "Demo/Lustre: links[0].bucket must be in the file system's region to be imported from: FSx imports nothing "
        "across regions, got Demo/Far in eu-west-1; copy the data, or give imports=[] to export alone"
    )


def test_what_is_only_exported_may_go_to_another_region(stack: cdk.Stack) -> None:
    link = LustreLink(path="/out", prefix="out/", bucket=bucket_elsewhere(stack), imports=[])

    lustre(stack, links=[link])
