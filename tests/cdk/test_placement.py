from __future__ import annotations

from collections.abc import Callable
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2

from trainfabric_cdk import Capacity, EfaClusterPlacementGroup, PropertyError
from trainfabric_plan.errors import InvalidInput

Resources = Callable[[str], dict[str, Any]]

GROUP = "AWS::EC2::PlacementGroup"
RESERVATION = "cr-0123456789abcdef0"


def names(stack: cdk.Stack, placement: EfaClusterPlacementGroup) -> list[tuple[int, int | None, Any]]:
    return [(range.first, range.last, stack.resolve(range.name)) for range in placement.groups]


@pytest.mark.parametrize("capacity", [None, Capacity.on_demand(), Capacity.spot()])
def test_nodes_on_demand_and_spot_stand_in_one_cluster_group_that_ec2_names(
    stack: cdk.Stack, resources: Resources, capacity: Capacity | None
) -> None:
    placement = EfaClusterPlacementGroup(stack, "Placement", capacity=capacity)

    ((id, group),) = resources(GROUP).items()
    assert group["Properties"] == {"Strategy": "cluster"}
    assert stack.resolve(placement.placement_group_name) == {"Fn::GetAtt": [id, "GroupName"]}
    assert names(stack, placement) == [(0, None, {"Fn::GetAtt": [id, "GroupName"]})]


def test_the_single_group_has_the_logical_id_that_the_group_of_the_cdk_would_have(
    stack: cdk.Stack, resources: Resources
) -> None:
    EfaClusterPlacementGroup(stack, "Placement", nodes=4)
    other = cdk.Stack(cdk.App(analytics_reporting=False), "Demo")
    theirs = ec2.PlacementGroup(other, "Placement").node.default_child

    assert isinstance(theirs, ec2.CfnPlacementGroup)
    assert list(resources(GROUP)) == [other.resolve(theirs.logical_id)]


def test_a_large_fleet_is_cut_into_groups_of_equal_size(stack: cdk.Stack, resources: Resources) -> None:
    placement = EfaClusterPlacementGroup(stack, "Placement", nodes=400, max_nodes_per_group=150)

    assert len(resources(GROUP)) == 3
    first, second, third = (name for _, _, name in names(stack, placement))
    assert names(stack, placement) == [(0, 133, first), (134, 266, second), (267, 399, third)]
    assert [range.nodes for range in placement.groups] == [134, 133, 133]
    assert sorted(name["Fn::GetAtt"][0] for name in (first, second, third)) == sorted(resources(GROUP))


def test_more_groups_leave_the_first_as_it_is(stack: cdk.Stack, resources: Resources) -> None:
    one = cdk.Stack(cdk.App(analytics_reporting=False), "Demo")
    single = EfaClusterPlacementGroup(one, "Placement", nodes=4)
    several = EfaClusterPlacementGroup(stack, "Placement", nodes=4, max_nodes_per_group=2)

    assert one.resolve(single.groups[0].name) == stack.resolve(several.groups[0].name)


def test_a_capacity_block_gets_no_group(stack: cdk.Stack, resources: Resources) -> None:
    placement = EfaClusterPlacementGroup(stack, "Placement", capacity=Capacity.block(RESERVATION), nodes=4)

    assert names(stack, placement) == [(0, 3, None)]
    assert placement.groups[0].group is None
    assert resources(GROUP) == {}


@pytest.mark.parametrize("name", [None, "ours"])
@pytest.mark.parametrize("reserve", [Capacity.reservation, Capacity.interruptible_reservation])
def test_a_reservation_keeps_the_group_that_it_was_made_in(
    stack: cdk.Stack, resources: Resources, reserve: Callable[..., Capacity], name: str | None
) -> None:
    capacity = reserve(RESERVATION, placement_group_name=name)

    placement = EfaClusterPlacementGroup(stack, "Placement", capacity=capacity)

    assert names(stack, placement) == [(0, None, name)]
    assert resources(GROUP) == {}


def test_the_name_of_a_reservations_group_may_be_settled_at_deploy_time(stack: cdk.Stack) -> None:
    capacity = Capacity.reservation(RESERVATION, placement_group_name=cdk.Fn.ref("Group"))

    placement = EfaClusterPlacementGroup(stack, "Placement", capacity=capacity)

    assert stack.resolve(placement.placement_group_name) == {"Ref": "Group"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"nodes": 0}, "Demo/Placement: nodes must be at least 1, got 0"),
        ({"nodes": True}, "Demo/Placement: nodes must be a whole number, got True"),
        (
            {"nodes": 4, "max_nodes_per_group": 0},
            "Demo/Placement: max_nodes_per_group must be at least 1, got 0",
        ),
        (
            {"max_nodes_per_group": 2.5},
            "Demo/Placement: max_nodes_per_group must be a whole number, got 2.5\n"
            "Demo/Placement: nodes must be given with max_nodes_per_group, got nothing; "
            "add nodes, or leave max_nodes_per_group out",
        ),
        (
            {"capacity": Capacity.block(RESERVATION), "nodes": 4, "max_nodes_per_group": 2},
            "Demo/Placement: max_nodes_per_group must be absent for capacity_block: its nodes have their place, got 2; "
            "leave it out",
        ),
        (
            {"capacity": Capacity.reservation(RESERVATION), "nodes": 4, "max_nodes_per_group": 2},
            "Demo/Placement: max_nodes_per_group must be absent for reservation: its nodes have their place, got 2; "
            "leave it out",
        ),
    ],
)
def test_groups_that_cannot_be_made_are_refused(stack: cdk.Stack, given: dict[str, Any], message: str) -> None:
    with pytest.raises(PropertyError) as refused:
        EfaClusterPlacementGroup(stack, "Placement", **given)

    assert str(refused.value) == message


def test_numbers_that_are_settled_at_deploy_time_are_refused_because_groups_follow_from_them(stack: cdk.Stack) -> None:
    number = cdk.Token.as_number(cdk.Fn.ref("Number"))

    with pytest.raises(PropertyError) as refused:
        EfaClusterPlacementGroup(stack, "Placement", nodes=number, max_nodes_per_group=number)

    assert str(refused.value) == (
        "Demo/Placement: nodes must be at least 1, got a token; give it as a number: the groups follow from it\n"
        "Demo/Placement: max_nodes_per_group must be at least 1, got a token; "
        "give it as a number: the groups follow from it"
    )


@pytest.mark.parametrize(
    ("given", "got"), [({"capacity": Capacity.block(RESERVATION)}, 0), ({"nodes": 4, "max_nodes_per_group": 2}, 2)]
)
def test_a_single_name_is_not_to_be_had_of_none_or_several(stack: cdk.Stack, given: dict[str, Any], got: int) -> None:
    placement = EfaClusterPlacementGroup(stack, "Placement", **given)

    with pytest.raises(InvalidInput) as refused:
        _ = placement.placement_group_name

    assert str(refused.value) == (
        f"Demo/Placement: placement_group must be read only where there is a single one, got {got}; "
        "read groups, which has the group of each range of nodes"
    )


def test_the_topology_says_which_nodes_are_in_which_group(stack: cdk.Stack) -> None:
    placement = EfaClusterPlacementGroup(stack, "Placement", nodes=4, max_nodes_per_group=2)

    first, second = (stack.resolve(range.name) for range in placement.groups)
    assert stack.resolve(placement.topology.to_json()) == [
        {"first": 0, "last": 1, "group": first},
        {"first": 2, "last": 3, "group": second},
    ]
    assert placement.topology.slurm_topology() == (
        "SwitchName=group1 Nodes=node-[1-2]\n"
        "SwitchName=group2 Nodes=node-[3-4]\n"
        "SwitchName=fabric Switches=group[1-2]\n"
    )


def test_a_group_of_ours_can_be_given_to_constructs_of_the_cdk(stack: cdk.Stack, resources: Resources) -> None:
    placement = EfaClusterPlacementGroup(stack, "Placement")

    ec2.LaunchTemplate(stack, "Template", placement_group=placement.placement_group)

    ((id, _),) = resources(GROUP).items()
    ((_, template),) = resources("AWS::EC2::LaunchTemplate").items()
    assert template["Properties"]["LaunchTemplateData"]["Placement"] == {"GroupName": {"Fn::GetAtt": [id, "GroupName"]}}
