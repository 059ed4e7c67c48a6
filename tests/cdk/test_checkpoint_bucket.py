"""Checkpoints are in a bucket that is nobody else's."""

from __future__ import annotations

from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_s3 as s3

from trainfabric_cdk import EfaSecurityGroup, LustreLinkedToS3, PropertyError, TrainingVpc

LOST = "use two buckets: what Lustre exports late, or deletes, would be lost checkpoints"


def by_name(stack: cdk.Stack, id: str, name: str = "ours") -> s3.IBucket:
    return s3.Bucket.from_bucket_name(stack, id, name)


def linked(stack: cdk.Stack, bucket: s3.IBucket) -> LustreLinkedToS3:
    network = TrainingVpc(stack, "OfLustre", availability_zone="us-east-1a")
    return LustreLinkedToS3(
        stack,
        "Lustre",
        vpc=network.vpc,
        subnet=network.private_subnet,
        client_security_group=EfaSecurityGroup(stack, "Clients", vpc=network.vpc),
        bucket=bucket,
    )


@pytest.mark.parametrize("made", [False, True])
def test_a_fleet_has_no_checkpoints_among_its_data(stack: cdk.Stack, make_fleet: Any, made: bool) -> None:
    data = s3.Bucket(stack, "One") if made else by_name(stack, "One")
    checkpoints = data if made else by_name(stack, "Other")

    with pytest.raises(PropertyError) as refused:
        make_fleet(data_bucket=data, checkpoint_bucket=checkpoints)

    assert str(refused.value) == (
        "Demo/Fleet: checkpoint_bucket must be another bucket than data_bucket, which Lustre links, "
        f"got Demo/{'One' if made else 'Other'}; {LOST}"
    )


def test_a_fleet_has_no_checkpoints_in_a_bucket_that_a_file_system_links(stack: cdk.Stack, make_fleet: Any) -> None:
    bucket = s3.Bucket(stack, "Linked")
    linked(stack, bucket)

    with pytest.raises(PropertyError) as refused:
        make_fleet(checkpoint_bucket=bucket)

    assert str(refused.value) == (
        "Demo/Fleet: checkpoint_bucket must be a bucket that no Lustre file system links, as Demo/Lustre does, "
        f"got Demo/Linked; {LOST}"
    )


def test_a_file_system_links_no_checkpoint_bucket_of_a_fleet(stack: cdk.Stack, make_fleet: Any) -> None:
    bucket = s3.Bucket(stack, "Saves")
    make_fleet(checkpoint_bucket=bucket)

    with pytest.raises(PropertyError) as refused:
        linked(stack, bucket)

    assert str(refused.value).partition(", got ")[2] == "Demo/Saves, where the checkpoints of Demo/Fleet are"
    assert str(refused.value).startswith("Demo/Lustre: links[0].bucket must be ")


def test_other_buckets_are_taken(stack: cdk.Stack, make_fleet: Any) -> None:
    lustre = linked(stack, s3.Bucket(stack, "Linked"))

    fleet = make_fleet(checkpoint_bucket=s3.Bucket(stack, "Saves"))

    assert [one.node.path for one in (*lustre.linked_buckets, fleet.checkpoint_bucket)] == ["Demo/Linked", "Demo/Saves"]
