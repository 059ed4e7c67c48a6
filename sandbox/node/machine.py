"""The image and the hardware of a local node: what lies in its directory before anything has run on it.

Stands for the Deep Learning base image (Ubuntu 24.04): its programs are ours or, where they are the same everywhere,
this machine's. Nothing else is on the node's PATH.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from sandbox.node.init import TARGET
from sandbox.node.units import CONFIGURED, OF_THE_IMAGE, SETTINGS_FILE
from trainfabric_plan.errors import NotFound

HERE = Path(__file__).parent
PYTHON = str(getattr(sys, "_base_executable", sys.executable))
"""Without this machine's packages: a node has its own environment."""
QUICK = (PYTHON, "-I", "-S", str(HERE / "start.py"))
"""Begins the command of a module of ours that needs the standard library alone."""
FULL = (sys.executable, "-I", str(HERE / "start.py"))
METADATA_VARIABLE = "AWS_EC2_METADATA_SERVICE_ENDPOINT"
SHELL = HERE / "programs" / "shell"
SANDBOX = "usr/lib/sandbox"
"""Where the stand-ins find what is theirs."""
KERNEL = "6.17.0-1019-aws"
"""Of the Deep Learning base image of 2026-07."""
FROM_THIS_MACHINE = """
bash basename cat chmod cmp cp cut date dirname env find grep head id install ln ls mkdir mktemp mv readlink rm rmdir
sed setsid sh sleep sort stat tail tee touch tr wc xargs
"""
IF_THIS_MACHINE_HAS_THEM = "ar as c++ cc g++ gcc getconf ip ld ldconfig lscpu nproc objdump ps which"
"""What torch and DeepSpeed call when they look at the machine, or build something."""

CLOUD_INIT = """\
[Unit]
Description=Cloud-init: the user data

[Service]
Type=oneshot
ExecStart=/usr/bin/cloud-init
RemainAfterExit=yes
KillMode=process

[Install]
WantedBy=multi-user.target
"""


def install(
    root: Path,
    *,
    hostname: str,
    efa_devices: int,
    accelerators: list[str],
    environment: Mapping[str, str],
    lustre: Path,
) -> None:
    """Make an empty directory the `/` of a machine that has never been started.

    Args:
        root: The directory; it must exist.
        hostname: What `uname -n` says.
        efa_devices: RDMA devices with the driver efa.
        accelerators: What nvidia-smi lists, one a line.
        environment: Variables that every process of the node gets.
        lustre: Directory of the file systems that all nodes share.

    Raises:
        NotFound: If this machine lacks a program that every system has.
    """
    for folder in ("etc", "proc/sys/kernel", "root", "run", "tmp", "usr/bin", "usr/sbin", "var/log", SANDBOX):
        (root / folder).mkdir(parents=True, exist_ok=True)
    _write(root / "etc/hostname", f"{hostname}\n")
    _write(root / "etc/os-release", 'NAME="Ubuntu"\nVERSION_ID="24.04"\nVERSION_CODENAME=noble\n')
    _write(root / "proc/sys/kernel/osrelease", f"{KERNEL}\n")
    _write(root / "proc/driver/nvidia/gpus", "".join(f"{n}, {name}\n" for n, name in enumerate(accelerators)))
    _add_efa_devices(root, efa_devices)
    _add_programs(root, lustre)
    _add_services(root, environment)


def _add_services(root: Path, environment: Mapping[str, str]) -> None:
    variables = " ".join(f'"{name}={value}"' for name, value in environment.items())
    _write(root / SETTINGS_FILE, f"[Manager]\nDefaultEnvironment={variables}\n")
    _write(root / OF_THE_IMAGE / "cloud-init.service", CLOUD_INIT)
    wanted = root / CONFIGURED / f"{TARGET}.wants"
    wanted.mkdir(parents=True)
    (wanted / "cloud-init.service").symlink_to(Path("/") / OF_THE_IMAGE / "cloud-init.service")


def _add_efa_devices(root: Path, count: int) -> None:
    driver = root / "sys/bus/pci/drivers/efa"
    driver.mkdir(parents=True)
    for number in range(count):
        device = root / f"sys/class/infiniband/rdmap{number}s0/device"
        device.mkdir(parents=True)
        (device / "driver").symlink_to(driver)


def _add_programs(root: Path, lustre: Path) -> None:
    programs, ours = root / "usr/bin", root / SANDBOX
    # scripts, not links: whoever writes a program on a node must not write this machine's
    for name in FROM_THIS_MACHINE.split():
        _program(programs / name, [_found(name)])
    for name in IF_THIS_MACHINE_HAS_THEM.split():
        if place := shutil.which(name):
            _program(programs / name, [place])
    shutil.copytree(SHELL, ours / "shell")
    (ours / "lustre").symlink_to(lustre)
    (ours / "python").symlink_to(PYTHON)
    for program in SHELL.iterdir():
        if program.name != "mount.lustre":  # it comes with the Lustre client
            shutil.copy(program, programs / program.name)
    _program(programs / "systemctl", [*QUICK, "sandbox.node.programs.systemctl", str(root)])
    _program(programs / "cloud-init", [*FULL, "sandbox.node.programs.cloud_init", str(root), f"${METADATA_VARIABLE}"])
    _program(programs / "aws", [*FULL, "sandbox.node.programs.aws"])
    _program(ours / "environment", [*FULL, "sandbox.node.programs.environment"])


def _program(file: Path, command: list[str]) -> None:
    words = " ".join(f'"{word}"' for word in command)
    _write(file, f'#!/bin/sh\nexec {words} "$@"\n')
    file.chmod(0o755)


def _found(name: str) -> str:
    place = shutil.which(name, path=os.defpath) or shutil.which(name)
    if place is None:
        raise NotFound(f"sandbox: the program {name} must be there, got none; install it, nodes need it to boot")
    return place


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
