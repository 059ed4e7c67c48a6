"""What is given by its ARN is of the stack's region, as far as both are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from constructs import Construct

from trainfabric_cdk import (
    Capacity,
    CheckpointBucket,
    DataBucket,
    LustreLinkedToS3,
    PropertyError,
    SharedHome,
    TrainingVpc,
)

KEY = "arn:aws:kms:us-east-1:123456789012:key/0f8e7d6c-0000-4000-8000-000000000000"
ELSEWHERE = [KEY.replace("us-east-1", "eu-west-1"), KEY.replace("arn:aws:", "arn:aws-cn:")]
GROUP = "arn:aws:resource-groups:us-east-1:123456789012:group/ours"

Make = Callable[[Construct, kms.IKey], object]


def _in_a_network(of: Any, **given: Any) -> Make:
    def make(stack: Construct, key: kms.IKey) -> object:
        network = TrainingVpc(stack, "Network", availability_zone="us-east-1a")
        group = ec2.SecurityGroup(stack, "Nodes", vpc=network.vpc)
        place = {"vpc": network.vpc, "subnet": network.private_subnet, "client_security_group": group}
        return of(stack, "Made", encryption_key=key, **place, **given)

    return make


def _lustre(stack: Construct, key: kms.IKey) -> object:
    return _in_a_network(LustreLinkedToS3, bucket=DataBucket(stack, "Data"))(stack, key)


MAKERS = {
    "DataBucket": lambda stack, key: DataBucket(stack, "Made", encryption_key=key),
    "CheckpointBucket": lambda stack, key: CheckpointBucket(stack, "Made", encryption_key=key),
    "SharedHome": _in_a_network(SharedHome, kind="efs"),
    "LustreLinkedToS3": _lustre,
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("arn", ELSEWHERE)
def test_a_key_of_another_region_or_partition_is_refused(stack: cdk.Stack, make: Make, arn: str) -> None:
    with pytest.raises(PropertyError) as refused:
        make(stack, kms.Key.from_key_arn(stack, "Key", arn))

    rule = "a KMS key in us-east-1 of partition aws"
    assert str(refused.value) == f"Demo/Made: encryption_key must be {rule}, got {arn}"


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_key_of_another_account_and_one_made_in_the_app_are_taken(stack: cdk.Stack, make: Make) -> None:
    make(stack, kms.Key.from_key_arn(stack, "Key", KEY.replace("123456789012", "210987654321")))
    other = cdk.Stack(cdk.App.of(stack), "Other", env=cdk.Environment(account="123456789012", region="us-east-1"))
    make(other, kms.Key(other, "Key"))


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_key_is_not_judged_where_the_region_is_settled_when_deployed(make: Make) -> None:
    stack = cdk.Stack(cdk.App(analytics_reporting=False), "Anywhere")

    make(stack, kms.Key.from_key_arn(stack, "Key", ELSEWHERE[0]))


def test_a_key_of_the_volumes_and_a_group_of_reservations_elsewhere_are_refused_together(
    stack: cdk.Stack, make_fleet: Any
) -> None:
    group = GROUP.replace("us-east-1", "eu-west-1")
    with pytest.raises(PropertyError) as refused:
        make_fleet(
            volume_key=kms.Key.from_key_arn(stack, "Key", ELSEWHERE[0]),
            workers=Capacity.reservation(group),
            placement_group=None,
        )

    assert str(refused.value).splitlines() == [
        f"Demo/Fleet: volume_key must be a KMS key in us-east-1 of partition aws, got {ELSEWHERE[0]}",
        f"Demo/Fleet: workers must be a resource group in us-east-1 of partition aws, got {group}",
    ]


def test_a_group_of_reservations_of_the_region_is_taken_and_one_settled_when_deployed_not_judged(
    make_fleet: Any, stack: cdk.Stack
) -> None:
    fleet = make_fleet(workers=Capacity.reservation_group(cdk.Fn.import_value("group")), placement_group=None)

    assert fleet.node_groups
