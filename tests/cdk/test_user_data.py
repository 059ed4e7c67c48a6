from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest

from trainfabric_cdk import PropertyError, SpotTrainingFleet
from trainfabric_cdk.fleet.user_data import (
    LIMIT_BYTES,
    PARAMETER_BYTES,
    TOKEN_BYTES,
    refuse_too_large,
    user_data,
    worst_case_bytes,
)
from trainfabric_plan.contract import NodeVariable, Paths

MakeFleet = Callable[..., SpotTrainingFleet]


def rendered(value: Any) -> str:
    """User data as EC2 gets it, with a name in place of every reference."""
    value = value.get("Fn::Base64", value) if isinstance(value, dict) else value
    if isinstance(value, str):
        return value
    return "".join(part if isinstance(part, str) else "some-name" for part in value["Fn::Join"][1])


@pytest.fixture
def script(make_fleet: MakeFleet, properties: Callable[[str], list[dict[str, Any]]]) -> str:
    """User data of the worker of a fleet."""
    make_fleet(boot_commands=["echo 'ready to boot'"])
    worker = properties("AWS::EC2::LaunchTemplate")[1]
    return rendered(worker["LaunchTemplateData"]["UserData"])


def test_the_script_is_valid_bash(script: str, tmp_path: Path) -> None:
    file = tmp_path / "user-data.sh"
    file.write_text(script)

    subprocess.run(["bash", "-n", file], check=True)


def test_shellcheck_finds_nothing(script: str, tmp_path: Path) -> None:
    file = tmp_path / "user-data.sh"
    file.write_text(script)
    shellcheck = Path(sys.executable).parent / "shellcheck"

    done = subprocess.run([shellcheck, "--external-sources", file], text=True, capture_output=True, check=False)

    assert (done.returncode, done.stdout) == (0, "")


def test_the_script_writes_who_the_node_is_fetches_the_code_and_boots_it(script: str, tmp_path: Path) -> None:
    boot = 'echo "booting as $TRAINFABRIC_ROLE from $(dirname "${BASH_SOURCE[0]}")"\n'
    with zipfile.ZipFile(tmp_path / "asset.zip", "w") as asset:
        asset.writestr("trainfabric_node/boot/boot.sh", boot)
    aws = tmp_path / "bin" / "aws"
    aws.parent.mkdir()
    aws.write_text(f'#!/bin/bash\necho "aws $*"\ncp {tmp_path}/asset.zip "${{@: -1}}"\n')
    aws.chmod(0o755)
    for path in (str(Path(Paths.NODE_ENVIRONMENT).parent), Paths.INSTALL, Paths.STATE):
        script = script.replace(path, f"{tmp_path}{path}")

    path = f"{aws.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(["bash", "-c", script], env={"PATH": path}, text=True, capture_output=True, check=True)

    variables = dict(
        line.split("=", 1) for line in (tmp_path / Paths.NODE_ENVIRONMENT.lstrip("/")).read_text().splitlines()
    )
    names = {value for name, value in vars(NodeVariable).items() if not name.startswith("_")}
    assert set(variables) == names - {NodeVariable.TRAINER_MARK}
    assert variables[NodeVariable.EFA_DEVICES] == "32"
    assert variables[NodeVariable.ROLE] == "worker"
    assert variables[NodeVariable.LUSTRE_DNS_NAME] == "fs-1.fsx.us-east-1.amazonaws.com"
    key = variables[NodeVariable.ASSET_KEY]
    assert done.stdout.splitlines() == [
        "aws s3 cp --no-progress --region us-east-1 "
        f"s3://cdk-hnb659fds-assets-123456789012-us-east-1/{key} {tmp_path}/opt/trainfabric/code.zip",
        "ready to boot",
        f"booting as worker from {tmp_path}/opt/trainfabric/code/trainfabric_node/boot",
    ]


def test_the_script_stops_at_the_first_thing_that_fails(script: str) -> None:
    assert script.splitlines()[1] == "set -euo pipefail"


def test_a_token_is_counted_at_its_longest_whatever_its_placeholder_is() -> None:
    token = cdk.Fn.import_value("some-export")

    assert worst_case_bytes(f"echo é {token}{token}\n") == len("echo é \n".encode()) + 2 * TOKEN_BYTES


def test_a_token_in_the_users_own_commands_is_counted_as_the_longest_parameter(stack: cdk.Stack) -> None:
    ours, given = cdk.Fn.import_value("some-export"), cdk.CfnParameter(stack, "Greeting").value_as_string

    script = user_data({"A": ours}, [f"echo {given}"])

    without = worst_case_bytes(user_data({"A": ours}))
    assert worst_case_bytes(script, [f"echo {given}"]) == without + len("echo \n") + PARAMETER_BYTES


def test_commands_whose_parameters_could_exceed_the_limit_are_refused(stack: cdk.Stack, make_fleet: MakeFleet) -> None:
    given = [cdk.CfnParameter(stack, f"Part{index}").value_as_string for index in range(4)]

    with pytest.raises(
        PropertyError, match=r"^Demo/Fleet: boot_commands must be short enough for user data under 16384"
    ):
        make_fleet(boot_commands=given)


@pytest.mark.parametrize(("size", "refused"), [(LIMIT_BYTES - 1, False), (LIMIT_BYTES, True)])
def test_the_limit_is_that_of_ec2(stack: cdk.Stack, size: int, refused: bool) -> None:
    script = "x" * size

    if not refused:
        refuse_too_large(stack, script)
        return
    with pytest.raises(ValueError, match="boot_commands must be short enough") as error:
        refuse_too_large(stack, script)
    assert str(error.value) == (
        "Demo: boot_commands must be short enough for user data under 16384 bytes, "
        "got 16384 bytes with every token at its longest; put long scripts into the image or into a bucket"
    )


def test_a_fleet_in_a_stack_of_unknown_region_and_account_stays_far_below_the_limit() -> None:
    token = cdk.Fn.import_value("anything")

    script = user_data(dict.fromkeys(("A", "B", "C", "D", "E", "F", "G", "H"), token))

    assert worst_case_bytes(script) < LIMIT_BYTES / 4
