from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.node.booting import BOOT, boot
from trainfabric_plan.contract import COMMAND_UNIT, CONTROLLER_UNIT, LAUNCHER_UNIT, RENDEZVOUS_UNIT, SYSTEMD_UNIT, Paths

UNITS = (LAUNCHER_UNIT, COMMAND_UNIT, RENDEZVOUS_UNIT, CONTROLLER_UNIT, SYSTEMD_UNIT)


def _setting(unit: str, name: str) -> list[str]:
    return re.findall(rf"(?m)^{name}=(.*)$", (BOOT / unit).read_text())


def _verify(unit: Path) -> str:
    checked = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    return checked.stdout + checked.stderr + f"status {checked.returncode}"


@pytest.mark.parametrize("name", UNITS)
def test_systemd_accepts_the_units(tmp_path: Path, name: str) -> None:
    for unit in UNITS:
        text = re.sub(r"(?m)^ExecStart=\S+", "ExecStart=/bin/true", (BOOT / unit).read_text())
        (tmp_path / unit).write_text(text)

    assert _verify(tmp_path / name) == "status 0"


@pytest.mark.parametrize(
    ("unit", "module"),
    [
        (LAUNCHER_UNIT, "trainfabric_training.launch launcher"),
        (COMMAND_UNIT, "trainfabric_node command"),
        (RENDEZVOUS_UNIT, "trainfabric_training.launch rendezvous"),
        (CONTROLLER_UNIT, "trainfabric_node controller"),
        (SYSTEMD_UNIT, "trainfabric_node agent"),
    ],
)
def test_every_service_runs_from_the_nodes_environment_and_always_comes_back(unit: str, module: str) -> None:
    assert _setting(unit, "ExecStart") == [f"{Paths.INSTALL}/venv/bin/python -m {module}"]
    assert _setting(unit, "EnvironmentFile") == [Paths.NODE_ENVIRONMENT, "-/etc/trainfabric/agent.env"]
    assert (_setting(unit, "Restart"), _setting(unit, "RestartSec")) == (["always"], ["1"])
    assert _setting(unit, "StartLimitIntervalSec") == ["0"]


@pytest.mark.parametrize("unit", [LAUNCHER_UNIT, COMMAND_UNIT])
def test_ranks_may_register_memory_and_one_killed_for_memory_leaves_the_launcher_alone(unit: str) -> None:
    assert _setting(unit, "LimitMEMLOCK") == ["infinity"]
    assert _setting(unit, "OOMPolicy") == ["continue"]
    assert _setting(unit, "KillMode") == ["control-group"]


def test_the_agent_has_time_to_drain_and_is_stopped_before_what_it_needs_for_that() -> None:
    assert _setting(SYSTEMD_UNIT, "KillMode") == ["mixed"]
    assert int(_setting(SYSTEMD_UNIT, "TimeoutStopSec")[0]) > 600
    assert {LAUNCHER_UNIT, COMMAND_UNIT, RENDEZVOUS_UNIT, CONTROLLER_UNIT} <= set(
        _setting(SYSTEMD_UNIT, "After")[0].split()
    )


def test_systemd_accepts_the_mount_with_the_options_that_lustre_needs(tmp_path: Path) -> None:
    (tmp_path / "fsx.mount").write_text(boot("lustre_mount_unit").stdout)

    assert _verify(tmp_path / "fsx.mount") == "status 0"
    mount = (tmp_path / "fsx.mount").read_text()
    assert "What=fs-1.fsx.eu-west-1.amazonaws.com@tcp:/abcdef\n" in mount
    assert "Options=noatime,flock,lazystatfs,_netdev\n" in mount
