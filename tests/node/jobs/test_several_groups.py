"""A fleet whose workers stand in two placement groups, beside a coordinator that only controls."""

from __future__ import annotations

import boto3
import pytest

from tests.node.embedded import deploy_groups
from tests.node.jobs.lab import ASSET, DATA, Embedded, coordinator, launched, node, wanted, write_parameter
from tests.node.samples import RECIPE, deployed, plan
from trainfabric_node.jobs import Fleet, JobControl, JobLedger, NodeState, connect
from trainfabric_plan.contract import Role
from trainfabric_plan.deployed import DeployedEnvironment, NodeGroup
from trainfabric_plan.errors import InvalidInput

NAMES = ("control", "near", "far")


@pytest.fixture(scope="module")
def described(embedded: Embedded) -> DeployedEnvironment:
    control, near, far = NAMES
    made = deploy_groups(*NAMES)
    return deployed(
        groups=(
            NodeGroup(name=control, role=Role.COORDINATOR, launch_template=made[control], nodes=0),
            NodeGroup(name=near, role=Role.WORKER, launch_template=made[near], nodes=2, spares=1),
            NodeGroup(name=far, role=Role.WORKER, launch_template=made[far], nodes=2, spares=1, placement=1),
        ),
        asset_bucket="assets",
        asset_key=ASSET,
    )


@pytest.fixture
def several(aws: str, described: DeployedEnvironment) -> JobControl:
    """Its control; no node is wanted."""
    Fleet.of(described).release()
    write_parameter(described.model_dump_json())
    return connect("lab", "us-east-1")


def sizes() -> dict[str, int]:
    return {name: size for name, size in wanted().items() if name in NAMES}


def test_a_job_asks_for_its_nodes_and_spares_in_all_groups_and_for_the_coordinator_on_top(several: JobControl) -> None:
    started = several.start("first", RECIPE, plan(4), DATA, spares=2)

    assert sizes() == {"control": 1, "near": 3, "far": 3}
    assert (started.instances, started.coordinator_trains, started.shares) == (7, False, {0: 2, 1: 2})


def test_a_smaller_job_leaves_the_farther_group_empty(several: JobControl) -> None:
    several.start("first", RECIPE, plan(2), DATA)

    assert sizes() == {"control": 1, "near": 2, "far": 0}


def test_more_nodes_than_all_groups_have_are_refused(several: JobControl) -> None:
    with pytest.raises(InvalidInput) as caught:
        several.start("first", RECIPE, plan(5), DATA)

    assert str(caught.value) == (
        "environment lab: nodes of the plan must be at most the 4 that are deployed, got 5; "
        "deploy the environment again"
    )


def test_every_group_has_pins_of_its_own_and_launches_them(several: JobControl, described: DeployedEnvironment) -> None:
    started = several.start("first", RECIPE, plan(4), DATA)

    pins = started.pins
    assert pins is not None
    assert {name: pinned.launch_template_id for name, pinned in pins.groups.items()} == {
        group.name: group.launch_template for group in described.groups
    }
    assert {name: launched()[name] for name in NAMES} == {
        name: (pinned.launch_template_version, pinned.image_id) for name, pinned in pins.groups.items()
    }


def test_the_reservation_that_a_group_launches_into_stands_in_its_pins(
    several: JobControl, described: DeployedEnvironment
) -> None:
    target = {"CapacityReservationTarget": {"CapacityReservationId": "cr-0123"}}
    boto3.client("ec2").create_launch_template_version(
        LaunchTemplateId=described.group("far").launch_template or "",
        SourceVersion="1",
        LaunchTemplateData={"CapacityReservationSpecification": target},
    )

    started = several.start("first", RECIPE, plan(4), DATA)

    assert started.pins is not None
    assert {name: pinned.capacity_reservation for name, pinned in started.pins.groups.items()} == {
        "control": None,
        "near": None,
        "far": "cr-0123",
    }


def test_a_node_is_protected_replaced_and_given_back_in_its_own_group(
    several: JobControl, described: DeployedEnvironment
) -> None:
    fleet = Fleet.of(described)
    fleet.scale_up(4)
    far = [one.instance_id for one in fleet.members() if one.group == "far"]
    fleet.protect(one.instance_id for one in fleet.members())
    protected = [one.protected for one in fleet.members()]

    fleet.replace(far[0])
    replaced = [one.instance_id for one in fleet.members() if one.group == "far"]
    fleet.give_back(far[1])
    smaller = sizes()
    fleet.restore(4)

    assert protected == 5 * [True]
    assert len(replaced) == 2
    assert far[0] not in replaced
    assert smaller == {"control": 1, "near": 2, "far": 1}
    assert sizes() == {"control": 1, "near": 2, "far": 2}


def test_all_groups_are_released_whatever_is_protected(several: JobControl, described: DeployedEnvironment) -> None:
    fleet = Fleet.of(described)
    fleet.scale_up(4, 2)
    fleet.protect(one.instance_id for one in fleet.members())
    there = fleet.is_empty()

    fleet.release()

    assert (there, fleet.is_empty(), fleet.members()) == (False, True, [])


def test_the_status_counts_the_nodes_that_train_and_shows_the_one_that_controls(
    several: JobControl, ledger: JobLedger, described: DeployedEnvironment
) -> None:
    several.start("first", RECIPE, plan(4), DATA)
    fleet, records = Fleet.of(described), ledger.run("first", 1)
    near = [one.instance_id for one in fleet.members() if one.group == "near"]
    records.report(node(coordinator(fleet), NodeState.CONTROLLING))
    for name in near:
        records.report(node(name, NodeState.SPARE, Role.WORKER))

    status = several.status()

    assert status.summary == "starting: 2 of 4 nodes have come up"
    assert [(one.role, one.state) for one in status.nodes] == [
        (Role.COORDINATOR, NodeState.CONTROLLING),
        (Role.WORKER, NodeState.SPARE),
        (Role.WORKER, NodeState.SPARE),
    ]
