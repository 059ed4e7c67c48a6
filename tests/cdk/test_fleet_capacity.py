"""Ways of buying nodes that EC2 does not accept for the type or the place, refused with the whole message."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk.assertions import Template

from tests.plan.account_facts import SPOT_ALONE
from trainfabric_cdk import Capacity, Coordinator, EfaClusterPlacementGroup, PropertyError, SpotTrainingFleet

MakeFleet = Callable[..., SpotTrainingFleet]

RESERVATION = "cr-0123456789abcdef0"


@pytest.fixture
def facts_of_the_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    told = {"format": 1, "instance_types": {"x9.large": SPOT_ALONE}}
    Path("trainfabric.catalog.json").write_text(json.dumps(told))


def refusal(make_fleet: MakeFleet, **given: Any) -> str:
    with pytest.raises(PropertyError) as refused:
        make_fleet(**given)
    return str(refused.value)


@pytest.mark.parametrize(
    ("instance_type", "workers", "sold", "got"),
    [
        ("hpc7a.96xlarge", Capacity.spot(), "on-demand", "spot"),
        ("hpc7a.96xlarge", Capacity.block(RESERVATION), "on-demand", "capacity_block"),
        ("g6e.48xlarge", Capacity.block(RESERVATION), "on-demand, spot", "capacity_block"),
    ],
)
def test_a_type_is_bought_only_in_ways_in_which_ec2_sells_it(
    make_fleet: MakeFleet, instance_type: str, workers: Capacity, sold: str, got: str
) -> None:
    assert refusal(make_fleet, instance_type=instance_type, workers=workers, placement_group=None) == (
        f"Demo/Fleet: workers must be bought in a way in which EC2 sells {instance_type}: {sold}, got {got}; "
        "choose one of these, or another instance type"
    )


@pytest.mark.usefixtures("facts_of_the_account")
def test_a_coordinator_that_trains_beside_spot_workers_is_on_demand_so_its_type_has_to_be_sold_so(
    make_fleet: MakeFleet,
) -> None:
    assert refusal(make_fleet, instance_type="x9.large", workers=Capacity.spot()) == (
        "Demo/Fleet: coordinator must be bought in a way in which EC2 sells x9.large: spot, got on_demand; "
        "use Coordinator.control(), or buy all nodes in one of these ways"
    )


@pytest.mark.usefixtures("facts_of_the_account")
def test_a_coordinator_that_only_controls_is_on_demand_so_its_type_has_to_be_sold_so(make_fleet: MakeFleet) -> None:
    assert refusal(make_fleet, coordinator=Coordinator.control(instance_type="x9.large")) == (
        "Demo/Fleet: coordinator must be bought in a way in which EC2 sells x9.large: spot, got on_demand; "
        "choose another type for Coordinator.control, such as m7i.large"
    )


@pytest.mark.usefixtures("facts_of_the_account")
def test_beside_a_coordinator_that_only_controls_workers_may_be_sold_as_spot_alone(make_fleet: MakeFleet) -> None:
    fleet = make_fleet(instance_type="x9.large", coordinator=Coordinator.control(), workers=Capacity.spot())

    assert [one.nodes for one in fleet.node_groups] == [0, 4]


@pytest.mark.parametrize(
    ("own", "group", "rule"),
    [
        (None, "another", "none"),
        ("ours", "another", "ours"),
        (None, None, "none"),
    ],
)
@pytest.mark.parametrize("kind", [Capacity.reservation, Capacity.interruptible_reservation])
def test_a_reservation_is_not_combined_with_a_group_that_it_was_not_made_in(
    stack: cdk.Stack, make_fleet: MakeFleet, kind: Any, own: str | None, group: str | None, rule: str
) -> None:
    foreign = (
        ec2.PlacementGroup.from_placement_group_name(stack, "Foreign", group)
        if group
        else EfaClusterPlacementGroup(stack, "Made")
    )

    assert refusal(make_fleet, workers=kind(RESERVATION, placement_group_name=own), placement_group=foreign) == (
        f"Demo/Fleet: placement_group must be the group that the reservation was made in, {rule}, "
        f"got {group or 'one made in this app'}; leave it out, and name the group in the Capacity if there is one"
    )


def test_a_reservation_may_be_given_its_own_group_again(stack: cdk.Stack, make_fleet: MakeFleet) -> None:
    own = ec2.PlacementGroup.from_placement_group_name(stack, "Own", "ours")

    fleet = make_fleet(workers=Capacity.reservation(RESERVATION, placement_group_name="ours"), placement_group=own)

    assert [one.placement for one in fleet.node_groups] == [0, 0]


def test_what_a_group_of_reservations_has_no_room_for_is_not_bought_on_demand(
    stack: cdk.Stack, make_fleet: MakeFleet
) -> None:
    group = "arn:aws:resource-groups:us-east-1:123456789012:group/ours"

    make_fleet(nodes=2, workers=Capacity.reservation(group), placement_group=None)

    templates = Template.from_stack(stack).find_resources("AWS::EC2::LaunchTemplate").values()
    launched = [one["Properties"]["LaunchTemplateData"].get("CapacityReservationSpecification") for one in templates]
    assert {
        "CapacityReservationPreference": "capacity-reservations-only",
        "CapacityReservationTarget": {"CapacityReservationResourceGroupArn": group},
    } in launched


ARM = {
    "instance_type": "p6e-gb200.36xlarge",
    "coordinator": Coordinator.control(instance_type="m7g.large"),
    "image_id": "ami-0123456789abcdef0",
}


def test_a_type_of_which_nobody_knows_whether_a_cluster_group_takes_it_is_refused_in_one(
    make_fleet: MakeFleet,
) -> None:
    assert refusal(make_fleet, workers=Capacity.on_demand(), **ARM) == (
        "Demo/Fleet: placement_group must be absent for p6e-gb200.36xlarge: whether it starts in a cluster placement "
        "group is not known (no source says whether it starts in a cluster placement group; the nodes of an "
        "UltraServer stand together anyway), got one made in this app; buy it with Capacity.block, or run "
        "`trainfabric catalog refresh --region R` where the type is offered"
    )


def test_a_block_whose_ultraservers_the_nodes_do_not_fill_is_warned_of(
    make_fleet: MakeFleet, warnings: Callable[[], list[str]]
) -> None:
    make_fleet(workers=Capacity.block(RESERVATION), placement_group=None, nodes=17, **ARM)

    (warning,) = [one for one in warnings() if "UltraServer" in one]
    assert warning == (
        "p6e-gb200.36xlarge comes in UltraServers of 9 or 18 nodes, and 17 nodes leave 1 of them idle, which are paid "
        "for: use 18 nodes or spares, if the block has them [ack: trainfabric:partialUltraServer]"
    )


@pytest.mark.parametrize(
    ("instance_type", "why"),
    [
        (
            "p4d.24xlarge",
            ": nobody confirmed what more interfaces with an address add (no public page says what IP traffic reaches "
            "over several cards of this type)",
        ),
        ("p5.4xlarge", ", which has nothing to gain from more interfaces with an address"),
    ],
)
def test_the_layout_for_bandwidth_is_refused_for_what_is_known_of_the_type(
    make_fleet: MakeFleet, instance_type: str, why: str
) -> None:
    assert refusal(make_fleet, instance_type=instance_type, interfaces="bandwidth") == (
        f"Demo/Fleet: interfaces must be addresses for {instance_type}{why}, got bandwidth; leave it out"
    )
