"""Groups of workers by placement group, and a coordinator that only controls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import aws_cdk as cdk
import pytest

from trainfabric_cdk import Capacity, Coordinator, EfaClusterPlacementGroup, PropertyError, SpotTrainingFleet

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
