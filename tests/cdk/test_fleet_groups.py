"""Groups of workers by placement group, and a coordinator that only controls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3

from trainfabric_cdk import (
    Capacity,
    Coordinator,
    EfaClusterPlacementGroup,
    PropertyError,
    SpotTrainingFleet,
    TrainingKey,
)

MakeFleet = Callable[..., SpotTrainingFleet]
Properties = Callable[[str], list[dict[str, Any]]]


def test_workers_have_a_group_for_every_placement_group(stack: cdk.Stack, make_fleet: MakeFleet) -> None:
    placement = EfaClusterPlacementGroup(stack, "Groups", nodes=6, max_nodes_per_group=3)

    fleet = make_fleet(nodes=5, spares=1, placement_group=placement)

    assert [(one.role.value, one.number, one.nodes, one.spares, one.placement) for one in fleet.node_groups] == [
        ("coordinator", 1, 1, 0, 0),
        ("worker", 1, 2, 0, 0),
        ("worker", 2, 2, 1, 1),
    ]


def test_a_coordinator_that_only_controls_leaves_all_nodes_to_the_workers(
    make_fleet: MakeFleet, properties: Properties
) -> None:
    fleet = make_fleet(nodes=4, coordinator=Coordinator.control())

    assert [(one.role.value, one.nodes) for one in fleet.node_groups] == [("coordinator", 0), ("worker", 4)]
    types = [one["LaunchTemplateData"]["InstanceType"] for one in properties("AWS::EC2::LaunchTemplate")]
    assert types == ["m7i.large", "p5.48xlarge"]
    ports = [one["FromPort"] for one in properties("AWS::EC2::SecurityGroupIngress") if "FromPort" in one]
    assert ports == [29400, 29401]


def test_all_nodes_of_a_block_are_of_it_and_in_no_placement_group(
    make_fleet: MakeFleet, properties: Properties
) -> None:
    make_fleet(workers=Capacity.block("cr-0123456789abcdef0"), placement_group=None)

    for one in properties("AWS::EC2::LaunchTemplate"):
        data = one["LaunchTemplateData"]
        assert data["InstanceMarketOptions"] == {"MarketType": "capacity-block"}
        assert data["CapacityReservationSpecification"] == {
            "CapacityReservationTarget": {"CapacityReservationId": "cr-0123456789abcdef0"}
        }
        assert "Placement" not in data


def test_a_block_in_a_placement_group_is_refused(make_fleet: MakeFleet) -> None:
    with pytest.raises(PropertyError) as refused:
        make_fleet(workers=Capacity.block("cr-0123456789abcdef0"))

    assert str(refused.value) == (
        "Demo/Fleet: placement_group must be absent for a Capacity Block: it has its place, and a launch into a group "
        "fails for want of capacity, got one made in this app; leave it out, or give EfaClusterPlacementGroup the "
        "capacity"
    )


def test_what_replaces_a_node_is_written_out(make_fleet: MakeFleet, properties: Properties) -> None:
    make_fleet()

    for group in properties("AWS::AutoScaling::AutoScalingGroup"):
        assert group["CapacityRebalance"] is False
        assert (group["HealthCheckType"], group["HealthCheckGracePeriod"]) == ("EC2", 600)
        assert group["InstanceMaintenancePolicy"] == {"MinHealthyPercentage": 0, "MaxHealthyPercentage": 100}
        assert "MixedInstancesPolicy" not in group


def test_what_is_granted_to_the_fleet_is_granted_to_the_role_of_its_nodes(
    stack: cdk.Stack, make_fleet: MakeFleet, properties: Properties
) -> None:
    fleet = make_fleet()

    s3.Bucket(stack, "More").grant_read(fleet)

    statements = [part for policy in properties("AWS::IAM::Policy") for part in policy["PolicyDocument"]["Statement"]]
    assert any("s3:GetBucket*" in part["Action"] for part in statements)


def test_a_customer_key_encrypts_the_volumes_and_lets_the_services_launch(
    stack: cdk.Stack, make_fleet: MakeFleet, properties: Properties
) -> None:
    key = kms.Key(stack, "Volumes")

    make_fleet(volume_key=key)

    reference = stack.resolve(key.key_arn)
    for one in properties("AWS::EC2::LaunchTemplate"):
        (volume,) = one["LaunchTemplateData"]["BlockDeviceMappings"]
        assert volume["Ebs"]["KmsKeyId"] == reference
    sids = [part.get("Sid") for key in properties("AWS::KMS::Key") for part in key["KeyPolicy"]["Statement"]]
    assert {"UseForNodes", "GrantForNodes"} <= set(sids)


def test_a_training_key_is_not_told_twice_who_launches(
    stack: cdk.Stack, make_fleet: MakeFleet, properties: Properties, warnings: Callable[[], list[str]]
) -> None:
    make_fleet(volume_key=TrainingKey(stack, "Volumes"))

    sids = [part.get("Sid") for key in properties("AWS::KMS::Key") for part in key["KeyPolicy"]["Statement"]]
    assert (sids.count("UseForNodes"), sids.count("GrantForNodes")) == (1, 1)
    assert [one for one in warnings() if "trainfabric:volumeKeyPolicy" in one] == []


def test_a_key_whose_policy_is_another_s_is_warned_about(
    stack: cdk.Stack, make_fleet: MakeFleet, warnings: Callable[[], list[str]]
) -> None:
    arn = "arn:aws:kms:us-east-1:123456789012:key/0f8e7d6c-0000-4000-8000-000000000000"

    make_fleet(volume_key=kms.Key.from_key_arn(stack, "Volumes", arn))

    assert [one for one in warnings() if "trainfabric:" in one] == [
        "the policy of the volumes' key is its owner's: if it does not let AWSServiceRoleForAutoScaling and "
        "AWSServiceRoleForEC2Spot use the key and create grants, nodes end at once with Client.InternalError; "
        "docs/how-to/use-existing-resources.md has the statements [ack: trainfabric:volumeKeyPolicy]"
    ]


def test_a_permissions_boundary_of_the_app_is_on_the_role_of_the_nodes(
    stack: cdk.Stack, make_fleet: MakeFleet, properties: Properties
) -> None:
    make_fleet()
    boundary = iam.ManagedPolicy.from_managed_policy_name(stack, "Boundary", "ours")
    iam.PermissionsBoundary.of(stack.node.root).apply(boundary)

    assert all("PermissionsBoundary" in role for role in properties("AWS::IAM::Role"))
