"""Every example synthesises, as a user would run it: without credentials, from another directory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.nag.ports import open_ports

EXAMPLES = Path(__file__).parents[2] / "examples"


def synthesise(example: str, directory: Path) -> dict[str, set[str]]:
    """Types of the resources in each stack of an example."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    done = subprocess.run(
        [sys.executable, EXAMPLES / example / "app.py"],
        cwd=directory,
        env={**variables, "CDK_OUTDIR": str(directory / "out")},
        text=True,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    templates = {
        file.name.removesuffix(".template.json"): json.loads(file.read_text())
        for file in (directory / "out").glob("*.template.json")
    }
    assert [rule for template in templates.values() for rule in open_ports(template)] == []
    return {
        name: {resource["Type"] for resource in template["Resources"].values()} for name, template in templates.items()
    }


def test_a_fleet_of_constructs_stands_in_one_stack(tmp_path: Path) -> None:
    stacks = synthesise("spot_fleet", tmp_path)

    assert stacks.keys() == {"SpotFleet"}
    assert {"AWS::EC2::VPC", "AWS::FSx::FileSystem", "AWS::EC2::PlacementGroup", "AWS::EC2::LaunchTemplate"} <= stacks[
        "SpotFleet"
    ]


def test_an_environment_in_an_existing_vpc_makes_none(tmp_path: Path) -> None:
    stacks = synthesise("bring_your_own_vpc", tmp_path)

    assert stacks.keys() == {f"own-vpc-{part}" for part in ("Network", "Storage", "Fleet", "Observability")}
    assert stacks["own-vpc-Network"] == {
        "AWS::EC2::VPCEndpoint",
        "AWS::EC2::SecurityGroup",
        "AWS::EC2::SecurityGroupIngress",
        "AWS::EC2::SecurityGroupEgress",
    }


def test_trainium_nodes_run_a_command_and_may_pull_its_image(tmp_path: Path) -> None:
    stacks = synthesise("trainium_own_command", tmp_path)

    assert stacks.keys() == {f"trainium-{part}" for part in ("Network", "Storage", "Fleet", "Observability")}
    fleet = (tmp_path / "out" / "trainium-Fleet.template.json").read_text()
    assert "TRAINFABRIC_TRAINING=command" in fleet
    assert ":ecr:us-east-2:123456789012:repository/neuronx" in fleet


@pytest.mark.parametrize("example", sorted(path.parent.name for path in EXAMPLES.glob("*/app.py")))
def test_an_example_can_be_read_at_a_glance(example: str) -> None:
    lines = (EXAMPLES / example / "app.py").read_text().splitlines()

    assert len(lines) <= 60


def test_every_example_is_synthesised_above() -> None:
    assert sorted(path.parent.name for path in EXAMPLES.glob("*/app.py")) == [
        "bring_your_own_vpc",
        "spot_fleet",
        "trainium_own_command",
    ]
