"""What the two sides of the house must agree on, and what must stay out of the processes that watch over the ranks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from trainfabric_plan import contract

ROOT = Path(__file__).parents[2]
BOOT = ROOT / "training/trainfabric_node/boot"
UNITS = {
    contract.SYSTEMD_UNIT,
    contract.LAUNCHER_UNIT,
    contract.COMMAND_UNIT,
    contract.CONTROLLER_UNIT,
    contract.RENDEZVOUS_UNIT,
}


def test_the_units_that_boot_installs_are_those_of_the_contract() -> None:
    assert {file.name for file in BOOT.glob("*.service")} == UNITS


@pytest.mark.parametrize("unit", sorted(UNITS))
def test_systemd_starts_every_unit_again_whatever_ended_it(unit: str) -> None:
    assert "Restart=always" in (BOOT / unit).read_text().splitlines()


def test_no_module_of_the_node_brings_torch_or_deepspeed_in() -> None:
    code = (
        "import importlib, pkgutil, sys, trainfabric_node\n"
        "for module in pkgutil.walk_packages(trainfabric_node.__path__, 'trainfabric_node.'):\n"
        "    importlib.import_module(module.name)\n"
        "print(sorted({'torch', 'deepspeed', 'trainfabric_training'} & set(sys.modules)))"
    )

    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=False)

    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "[]", "")


def test_no_file_that_reaches_the_nodes_or_stands_in_for_aws_is_too_long_to_be_read() -> None:
    lengths = {
        str(file.relative_to(ROOT)): len(file.read_text().splitlines())
        for root in ("training", "sandbox")
        for file in (ROOT / root).rglob("*.py")
    }

    assert {name: lines for name, lines in lengths.items() if lines > 400} == {}
