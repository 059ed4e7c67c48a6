"""The scripts of a node's boot, and how tests run their functions."""

from __future__ import annotations

import subprocess
from importlib import resources
from pathlib import Path

from trainfabric_plan.contract import NodeVariable, Paths

BOOT = Path(str(resources.files("trainfabric_node"))) / "boot"
BOOT_SCRIPT, FIRST_SCRIPT, COMMON = BOOT / "boot.sh", BOOT / "first-boot.sh", BOOT / "common.sh"
NODE = {
    NodeVariable.REGION: "eu-west-1",
    NodeVariable.ENVIRONMENT: "lab",
    NodeVariable.ROLE: "worker",
    NodeVariable.CHECKPOINT_BUCKET: "checkpoints",
    NodeVariable.ASSET_BUCKET: "assets",
    NodeVariable.ASSET_KEY: "code.zip",
    NodeVariable.LUSTRE_DNS_NAME: "fs-1.fsx.eu-west-1.amazonaws.com",
    NodeVariable.LUSTRE_MOUNT_NAME: "abcdef",
    NodeVariable.LUSTRE_MOUNT_POINT: "/fsx",
    NodeVariable.STATE_DIRECTORY: Paths.STATE,
}


def boot(
    command: str, variables: dict[str, str] | None = None, script: Path = BOOT_SCRIPT
) -> subprocess.CompletedProcess[str]:
    """Runs functions of a script, which does nothing when it is sourced."""
    return subprocess.run(
        ["bash", "-c", f'source "{script}"; {command}'],
        env={"PATH": "/usr/bin:/bin", **(NODE if variables is None else variables)},
        capture_output=True,
        text=True,
        check=False,
    )


def program(file: Path, text: str) -> None:
    """A program in a test's folder."""
    file.write_text(f"#!/bin/bash\n{text}\n")
    file.chmod(0o755)
