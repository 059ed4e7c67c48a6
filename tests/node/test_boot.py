from __future__ import annotations

import re
import subprocess
import sys
from importlib import resources
from importlib.metadata import version
from pathlib import Path

import pytest

from trainfabric_plan.contract import SYSTEMD_UNIT, NodeVariable, Paths

BOOT = Path(str(resources.files("trainfabric_node"))) / "boot"
SCRIPT = BOOT / "boot.sh"
UNIT = BOOT / SYSTEMD_UNIT
NODE = {
    NodeVariable.REGION: "eu-west-1",
    NodeVariable.LUSTRE_DNS_NAME: "fs-1.fsx.eu-west-1.amazonaws.com",
    NodeVariable.LUSTRE_MOUNT_NAME: "abcdef",
    NodeVariable.LUSTRE_MOUNT_POINT: "/fsx",
    NodeVariable.STATE_DIRECTORY: Paths.STATE,
}


def _boot(command: str, variables: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Runs functions of the script, which does nothing when it is sourced."""
    return subprocess.run(
        ["bash", "-c", f'source "{SCRIPT}"; {command}'],
        env={"PATH": "/usr/bin:/bin", **(NODE if variables is None else variables)},
        capture_output=True,
        text=True,
        check=False,
    )


def _setting(name: str) -> list[str]:
    return re.findall(rf"(?m)^{name}=(.*)$", UNIT.read_text())


def _verify(unit: Path) -> str:
    checked = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    return checked.stdout + checked.stderr + f"status {checked.returncode}"


def test_the_script_has_no_findings() -> None:
    shellcheck = Path(sys.executable).with_name("shellcheck")

    checked = subprocess.run([shellcheck, str(SCRIPT)], capture_output=True, text=True, check=False)

    assert (checked.stdout, checked.returncode) == ("", 0)


def test_the_script_reads_only_variables_of_the_contract() -> None:
    known = {value for name, value in vars(NodeVariable).items() if name.isupper()}

    read = set(re.findall(r"TRAINFABRIC_[A-Z_]+", SCRIPT.read_text()))

    assert read <= known


def test_paths_and_names_are_those_of_the_contract() -> None:
    script = SCRIPT.read_text()

    assert f"node_environment={Paths.NODE_ENVIRONMENT}\n" in script
    assert f"install={Paths.INSTALL}\n" in script
    assert f"unit={SYSTEMD_UNIT}\n" in script
    assert _setting("EnvironmentFile") == [Paths.NODE_ENVIRONMENT, "-/etc/trainfabric/agent.env"]
    assert _setting("Environment") == [f"PYTHONPATH={Paths.INSTALL}/code"]
    assert _setting("ExecStart") == [f"{Paths.INSTALL}/venv/bin/python -m trainfabric_node agent"]


def test_systemd_accepts_the_agents_unit(tmp_path: Path) -> None:
    copy = tmp_path / SYSTEMD_UNIT
    copy.write_text(re.sub(r"(?m)^ExecStart=\S+", "ExecStart=/bin/true", UNIT.read_text()))

    assert _verify(copy) == "status 0"


def test_nothing_of_a_job_outlives_its_agent_and_it_may_register_memory() -> None:
    assert _setting("KillMode") == ["mixed"]
    assert _setting("LimitMEMLOCK") == ["infinity"]
    assert _setting("Restart") == ["on-failure"]


def test_systemd_accepts_the_mount_with_the_options_that_lustre_needs(tmp_path: Path) -> None:
    (tmp_path / "fsx.mount").write_text(_boot("lustre_mount_unit").stdout)

    assert _verify(tmp_path / "fsx.mount") == "status 0"
    mount = (tmp_path / "fsx.mount").read_text()
    assert "What=fs-1.fsx.eu-west-1.amazonaws.com@tcp:/abcdef\n" in mount
    assert "Options=noatime,flock,lazystatfs,_netdev\n" in mount


def test_the_agent_finds_its_region_where_the_aws_sdk_looks() -> None:
    assert _boot("agent_variables").stdout == "AWS_DEFAULT_REGION=eu-west-1\n"


def test_a_command_is_tried_until_it_succeeds(tmp_path: Path) -> None:
    tried = _boot(
        f'second() {{ test -e {tmp_path}/x || {{ touch {tmp_path}/x; false; }}; }}; retry 3 0 second; echo "$?"'
    )

    assert tried.stdout == "trainfabric boot: attempt 1 of 3 failed: second\n0\n"


def test_a_command_that_never_succeeds_fails_after_its_tries() -> None:
    tried = _boot("retry 2 0 false")

    assert tried.returncode == 1
    assert tried.stdout.count("failed: false") == 2


@pytest.fixture
def devices(tmp_path: Path) -> Path:
    """Three RDMA devices, two of them EFA."""
    for name, driver in (("rdmap0", "efa"), ("rdmap1", "efa"), ("mlx5_0", "mlx5_core")):
        (tmp_path / "drivers" / driver).mkdir(parents=True, exist_ok=True)
        (tmp_path / "infiniband" / name / "device").mkdir(parents=True)
        (tmp_path / "infiniband" / name / "device" / "driver").symlink_to(tmp_path / "drivers" / driver)
    return tmp_path / "infiniband"


def test_devices_of_other_drivers_are_not_counted_as_efa(devices: Path, tmp_path: Path) -> None:
    assert _boot(f"efa_devices {devices}").stdout == "2\n"
    assert _boot(f"efa_devices {tmp_path}/none").stdout == "0\n"


def test_a_node_without_its_efa_devices_is_refused() -> None:
    checked = _boot("efa_devices() { echo 31; }; sleep() { :; }; check_efa", {NodeVariable.EFA_DEVICES: "32"})

    assert checked.returncode == 1
    assert checked.stderr == (
        "trainfabric boot: EFA devices must be 32, got 31; replace the node, or check its interfaces and EFA driver\n"
    )


def test_efa_is_not_looked_for_where_no_number_is_given() -> None:
    assert _boot("efa_devices() { exit 9; }; check_efa").returncode == 0


def test_needrestart_keeps_its_hands_off_our_services(tmp_path: Path) -> None:
    _boot(f"keep_needrestart_away {tmp_path}/conf.d")

    assert (tmp_path / "conf.d" / "90-trainfabric.conf").read_text() == "$nrconf{override_rc}{qr(^trainfabric-)} = 0;\n"


def test_a_missing_variable_is_named_before_anything_is_done(tmp_path: Path) -> None:
    (tmp_path / "node.env").write_text("TRAINFABRIC_REGION=eu-west-1\n")

    read = _boot(f"read_variables {tmp_path}/node.env; echo done", {})

    assert read.returncode != 0
    assert "TRAINFABRIC_LUSTRE_DNS_NAME: parameter null or not set" in read.stderr
    assert read.stdout == ""


def test_every_line_of_the_lock_pins_one_version() -> None:
    lines = [line for line in (BOOT / "requirements.lock").read_text().splitlines() if not line.startswith("#")]

    assert all(re.fullmatch(r"[a-z0-9-]+==[0-9][0-9a-z.]*", line) for line in lines)
    assert lines == sorted(lines)
    assert {"torch", "deepspeed", "boto3", "pydantic", "numpy", "tokenizers", "google-crc32c", "pyyaml"} <= {
        line.partition("==")[0] for line in lines
    }


def test_the_lock_has_the_versions_that_are_tested_here() -> None:
    pinned = dict(
        line.split("==")
        for line in (BOOT / "requirements.lock").read_text().splitlines()
        if line and not line.startswith("#")
    )
    tested = {name: version(name) for name in ("boto3", "pydantic", "deepspeed", "numpy", "tokenizers")}

    assert {name: pinned[name] for name in tested} == tested
