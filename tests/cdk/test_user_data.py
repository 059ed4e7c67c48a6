from __future__ import annotations

import base64
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
import yaml

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
Properties = Callable[[str], list[dict[str, Any]]]
FIRST_BOOT = f"{Paths.INSTALL}/first-boot.sh"
COMMANDS = f"{Paths.INSTALL}/boot-commands.sh"

HOME = (NodeVariable.HOME_SERVER, NodeVariable.HOME_PATH)


def rendered(value: Any, name: str = "some-name") -> str:
    """User data as EC2 gets it, with a name in place of every reference."""
    if isinstance(value, str):
        return value
    ((function, argument),) = value.items()
    if function == "Fn::Base64":
        return base64.b64encode(rendered(argument, name).encode()).decode()
    return "".join(rendered(part, name) for part in argument[1]) if function == "Fn::Join" else name


def of_worker(properties: Properties, name: str = "some-name") -> str:
    worker = properties("AWS::EC2::LaunchTemplate")[1]
    return base64.b64decode(rendered(worker["LaunchTemplateData"]["UserData"], name)).decode()


def files(text: str) -> dict[str, dict[str, str]]:
    """What cloud-init would write, by path."""
    return {item["path"]: item for item in yaml.safe_load(text)["write_files"]}


def content(item: dict[str, str]) -> str:
    return base64.b64decode(item["content"]).decode() if item.get("encoding") == "b64" else item["content"]


@pytest.fixture
def text(make_fleet: MakeFleet, properties: Properties) -> str:
    """User data of the worker of a fleet."""
    make_fleet(boot_commands=["echo 'ready to boot'"])
    return of_worker(properties)


def test_it_is_a_cloud_config_that_writes_files_and_runs_the_first_boot_script(text: str) -> None:
    config = yaml.safe_load(text)

    assert text.startswith("#cloud-config\n")
    assert set(config) == {"write_files", "runcmd"}
    assert config["runcmd"] == [f'bash "${{TRAINFABRIC_ROOT:-}}{FIRST_BOOT}"']
    assert {path: item["permissions"] for path, item in files(text).items()} == {
        Paths.NODE_ENVIRONMENT: "0600",
        f"{Paths.INSTALL}/common.sh": "0644",
        FIRST_BOOT: "0755",
        COMMANDS: "0644",
    }


def test_the_node_learns_who_it_is(text: str) -> None:
    variables = dict(line.split("=", 1) for line in content(files(text)[Paths.NODE_ENVIRONMENT]).splitlines())

    names = {value for name, value in vars(NodeVariable).items() if not name.startswith("_")}
    optional = {NodeVariable.EVENTS_QUEUE, NodeVariable.TRAINS, NodeVariable.TRAINING, *HOME}
    assert set(variables) == names - optional - {NodeVariable.ROOT}
    assert variables[NodeVariable.EFA_DEVICES] == "32"
    assert variables[NodeVariable.ROLE] == "worker"
    assert variables[NodeVariable.LUSTRE_DNS_NAME] == "fs-1.fsx.us-east-1.amazonaws.com"
    assert variables[NodeVariable.ASSET_BUCKET] == "cdk-hnb659fds-assets-123456789012-us-east-1"


def test_what_a_file_says_stands_in_lines_of_the_user_data(text: str) -> None:
    for item in files(text).values():
        for line in item["content"].splitlines():
            assert f"    {line}\n" in text


@pytest.mark.parametrize("name", ["first-boot.sh", "common.sh"])
def test_the_scripts_are_those_of_the_node_package_without_their_comments(text: str, name: str) -> None:
    source = Path(__file__).parents[2] / "training/trainfabric_node/boot" / name

    lines = content(files(text)[f"{Paths.INSTALL}/{name}"]).splitlines()

    kept = [line for line in source.read_text().splitlines()[1:] if line.strip() and line.strip()[0] != "#"]
    assert lines[1:] == kept


def test_scripts_and_commands_are_valid_bash(text: str, tmp_path: Path) -> None:
    for path, item in files(text).items():
        file = tmp_path / Path(path).name
        file.write_text(content(item))
        subprocess.run(["bash", "-n", file], check=True)


def test_shellcheck_finds_nothing_in_the_users_commands(text: str, tmp_path: Path) -> None:
    file = tmp_path / "boot-commands.sh"
    file.write_text(content(files(text)[COMMANDS]))
    shellcheck = Path(sys.executable).parent / "shellcheck"

    done = subprocess.run([shellcheck, file], text=True, capture_output=True, check=False)

    assert (done.returncode, done.stdout) == (0, "")


def test_without_commands_there_is_no_file_of_them(make_fleet: MakeFleet, properties: Properties) -> None:
    make_fleet()

    assert COMMANDS not in files(of_worker(properties))


@pytest.mark.parametrize("value", ['quoted "twice"', "two\nlines", "a: b # c", "tab\tand \x07 bell", " indented"])
def test_a_command_reaches_the_node_as_it_is_whatever_a_parameter_becomes(
    stack: cdk.Stack, make_fleet: MakeFleet, properties: Properties, value: str
) -> None:
    greeting = cdk.CfnParameter(stack, "Greeting").value_as_string
    make_fleet(boot_commands=["echo before", f"echo {greeting}"])

    commands = content(files(of_worker(properties, value))[COMMANDS])

    assert commands == f"# shellcheck shell=bash\necho before\necho {value}\n"


@pytest.mark.parametrize("command", ["printf '\a\x07'", "cat <<E\n  two\n\nlines\nE", "echo 'ü ☃'", "echo \u2028"])
def test_a_command_reaches_the_node_as_it_is(make_fleet: MakeFleet, properties: Properties, command: str) -> None:
    make_fleet(boot_commands=[command])

    assert content(files(of_worker(properties))[COMMANDS]) == f"# shellcheck shell=bash\n{command}\n"


def test_a_token_is_counted_at_its_longest_whatever_its_placeholder_is() -> None:
    token = cdk.Fn.import_value("some-export")

    assert worst_case_bytes(f"echo é {token}{token}\n") == len("echo é \n".encode()) + 2 * TOKEN_BYTES


def test_a_token_in_the_users_own_commands_is_counted_as_the_longest_parameter(stack: cdk.Stack) -> None:
    ours, given = cdk.Fn.import_value("some-export"), cdk.CfnParameter(stack, "Greeting").value_as_string

    script = user_data({"A": ours}, [f"echo {given}"])

    longest = user_data({"A": "a" * TOKEN_BYTES}, ["echo " + "\a" * PARAMETER_BYTES])
    assert worst_case_bytes(script, [f"echo {given}"]) == len(longest.encode())


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

    assert worst_case_bytes(script) < LIMIT_BYTES * 0.6
