"""Every example synthesises, and neither cdk-nag, cfn-lint nor `trainfabric lint` finds anything in it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.examples.conftest import EXAMPLES, Example
from tests.nag.ports import open_ports
from tests.nag.test_rules import lint as cfn_lint
from trainfabric_plan.lint import lint, read_cloud_assembly

NAMES = [
    "bring_your_own_vpc",
    "capacity_block",
    "gb200",
    "lustre_only",
    "mpi_simulation",
    "own_command",
    "reservation",
    "spot_fleet",
    "trainium_own_command",
    "two_groups",
]
APPS = [name for name in NAMES if (EXAMPLES / name / "app.py").exists()]

Run = Callable[[str], Example]
EVERY = pytest.mark.parametrize("name", APPS)


REGION = re.compile(r'"([a-z]{2}-[a-z]+-\d)"')
TOO_NEW = "E3628 'p6e-gb200.36xlarge' is not one of"
"""cfn-lint's list of the region's instance types lacks it, as EC2's public price list does."""


@EVERY
def test_cdk_nag_finds_nothing_by_either_pack(example: Run, name: str) -> None:
    assert example(name).findings == []


@EVERY
def test_cfn_lint_finds_nothing(example: Run, name: str) -> None:
    (region,) = {*REGION.findall((EXAMPLES / name / "app.py").read_text())}

    found = cfn_lint(region, *example(name).files)

    assert [one for one in found if not (name == "gb200" and one.startswith(TOO_NEW))] == []


@EVERY
def test_our_own_rules_find_nothing(example: Run, name: str) -> None:
    assert lint(read_cloud_assembly(example(name).directory)) == []


@EVERY
def test_nothing_is_let_in_from_everywhere_and_ssh_from_nowhere(example: Run, name: str) -> None:
    assert [rule for template in example(name).templates.values() for rule in open_ports(template)] == []


@EVERY
def test_an_example_can_be_read_at_a_glance(name: str) -> None:
    lines = (EXAMPLES / name / "app.py").read_text().splitlines()

    assert len(lines) <= 62
    assert max(map(len, lines)) <= 120


def test_every_example_is_tested_here() -> None:
    assert sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir()) == NAMES


def test_a_fleet_of_constructs_stands_in_one_stack(example: Run) -> None:
    types = example("spot_fleet").types()

    assert types.keys() == {"SpotFleet"}
    wanted = {"AWS::EC2::VPC", "AWS::FSx::FileSystem", "AWS::EC2::PlacementGroup", "AWS::EC2::LaunchTemplate"}
    assert wanted <= types["SpotFleet"]


def test_an_environment_in_an_existing_vpc_makes_none(example: Run) -> None:
    types = example("bring_your_own_vpc").types()

    assert types.keys() == {f"own-vpc-{part}" for part in ("Network", "Storage", "Fleet", "Observability")}
    assert types["own-vpc-Network"] == {
        "AWS::EC2::VPCEndpoint",
        "AWS::EC2::SecurityGroup",
        "AWS::EC2::SecurityGroupIngress",
        "AWS::EC2::SecurityGroupEgress",
    }


def test_trainium_nodes_run_a_command_and_may_pull_its_image(example: Run) -> None:
    made = example("trainium_own_command")

    assert made.types().keys() == {f"trainium-{part}" for part in ("Network", "Storage", "Fleet", "Observability")}
    fleet = (made.directory / "trainium-Fleet.template.json").read_text()
    assert "TRAINFABRIC_TRAINING=command" in fleet
    assert ":ecr:us-east-2:123456789012:repository/neuronx" in fleet


def test_nodes_of_a_capacity_block_name_it_and_stand_in_no_placement_group(example: Run) -> None:
    made = example("capacity_block")

    templates = [one["LaunchTemplateData"] for one in made.of_type("AWS::EC2::LaunchTemplate")]
    workers = [one for one in templates if one["InstanceType"] == "p5en.48xlarge"]
    assert [one["InstanceMarketOptions"] for one in workers] == [{"MarketType": "capacity-block"}]
    assert [one["CapacityReservationSpecification"]["CapacityReservationTarget"] for one in workers] == [
        {"CapacityReservationId": "cr-0123456789abcdef0"}
    ]
    assert made.of_type("AWS::EC2::PlacementGroup") == []


def test_nodes_of_a_reservation_launch_into_the_group_that_it_was_made_in(example: Run) -> None:
    made = example("reservation")

    templates = [one["LaunchTemplateData"] for one in made.of_type("AWS::EC2::LaunchTemplate")]
    assert len(templates) == 2
    for one in templates:
        assert "InstanceMarketOptions" not in one
        assert one["Placement"]["GroupName"] == {"Fn::GetAtt": [group_id(made), "GroupName"]}


def group_id(made: Example) -> str:
    """Logical id of the only placement group."""
    (found,) = (
        name
        for template in made.templates.values()
        for name, one in template["Resources"].items()
        if one["Type"] == "AWS::EC2::PlacementGroup"
    )
    return found


def test_four_hundred_nodes_stand_in_two_groups_that_slurm_knows(example: Run) -> None:
    made = example("two_groups")

    assert len(made.of_type("AWS::EC2::PlacementGroup")) == 2
    sizes = {one["AutoScalingGroupName"]: one["MaxSize"] for one in made.of_type("AWS::AutoScaling::AutoScalingGroup")}
    assert sizes == {
        "trainfabric-two-groups-coordinator": "1",
        "trainfabric-two-groups-worker": "201",
        "trainfabric-two-groups-worker-2": "202",
    }
    assert "SwitchName" in str(made.templates["TwoGroups"]["Outputs"]["Topology"]["Value"])


def test_the_file_system_alone_is_of_the_one_stack(example: Run) -> None:
    assert {"AWS::FSx::FileSystem", "AWS::FSx::DataRepositoryAssociation"} <= example("lustre_only").types()[
        "FileSystem"
    ]


def test_a_simulation_has_both_efa_interfaces_of_hpc7a_and_no_spot(example: Run) -> None:
    for one in example("mpi_simulation").of_type("AWS::EC2::LaunchTemplate"):
        data = one["LaunchTemplateData"]
        kinds = [interface["InterfaceType"] for interface in data["NetworkInterfaces"]]
        assert kinds == ["interface", "efa-only", "efa-only"]
        assert "InstanceMarketOptions" not in data


def test_gb200_and_its_controller_are_of_one_architecture(example: Run) -> None:
    types = {one["LaunchTemplateData"]["InstanceType"] for one in example("gb200").of_type("AWS::EC2::LaunchTemplate")}

    assert types == {"p6e-gb200.36xlarge", "m7g.large"}


def test_scripts_of_the_examples_are_shellchecked() -> None:
    makefile = (Path(__file__).parents[2] / "Makefile").read_text()

    assert "examples/*/code/*.sh" in makefile
