"""A local node from power on to power off."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sandbox.fleet import Instance
from sandbox.metadata import InstanceMetadata
from sandbox.network import Connection
from sandbox.node.control import ask
from sandbox.node.machine import METADATA_VARIABLE, QUICK, install
from sandbox.processes import Child, Children
from trainfabric_plan.contract import NodeVariable

GRACE_S = 15.0
"""Time that a node has between being told to shut down and the end of its power."""
ROOT = "root"
CONSOLE = "console.log"


@dataclass(kw_only=True)
class LocalNode:
    """An instance, its files, and what runs for it.

    Attributes:
        instance: What EC2 says about it.
        directory: Holds `root`, which is the node's `/`, its console's log, and files that cause faults.
        metadata: Its metadata service; the service's address is the node's.
        connection: Its place on the network.
        child: Its init, under the guard.
    """

    instance: Instance
    directory: Path
    metadata: InstanceMetadata
    connection: Connection
    child: Child

    @property
    def root(self) -> Path:
        """What the node takes for `/`."""
        return self.directory / ROOT

    @property
    def is_on(self) -> bool:
        """Whether its init runs."""
        return self.child.running

    def systemctl(self, verb: str, *units: str) -> tuple[int, str]:
        """Exit status and text of `systemctl VERB UNIT…` on the node; 4 if it does not answer."""
        try:
            return ask(self.root, verb, *units)
        except OSError as error:
            return 4, str(error)

    def pid(self, unit: str) -> int:
        """Number of the main process of a unit, 0 if it has none."""
        status, text = self.systemctl("show", unit)
        return int(text) if status == 0 else 0

    def journal(self, unit: str) -> str:
        """What a unit has written, in all its starts."""
        file = self.root / "var/log/journal" / f"{unit}.log"
        return file.read_text(errors="replace") if file.exists() else ""

    def freeze(self) -> None:
        """Stop every process where it is: the machine hangs, its connections stay open."""
        while running := [pid for pid in self.child.below() if _state(pid) not in "TZX"]:
            for pid in running:
                _signal(pid, signal.SIGSTOP)
            time.sleep(0.001)

    def thaw(self) -> None:
        """Let every process go on."""
        for pid in self.child.below():
            _signal(pid, signal.SIGCONT)

    def power_off(self) -> None:
        """Cut the power: SIGKILL to every process at once."""
        self.child.kill()

    def clear_away(self, children: Children) -> None:
        """End what is left of it, and give up its place on the network."""
        children.stop(self.child)
        self.metadata.stop()
        self.connection.close()


def power_on(
    children: Children,
    instance: Instance,
    connection: Connection,
    *,
    directory: Path,
    lustre: Path,
    environment: Mapping[str, str],
) -> LocalNode:
    """A machine for an instance, with its image's files only, started.

    Args:
        children: Ends it with the rest.
        instance: What EC2 says about it.
        connection: Its place on the network.
        directory: Its files; what is there is removed.
        lustre: Directory of the file systems that nodes share.
        environment: Variables that every process of the node gets besides where it and its metadata are.
    """
    shutil.rmtree(directory, ignore_errors=True)
    root = directory / ROOT
    root.mkdir(parents=True)
    lustre.mkdir(exist_ok=True)
    metadata = InstanceMetadata(connection.address, _metadata_values(instance), instance.user_data, connection.listener)
    metadata.start()
    install(
        root,
        hostname=_hostname(instance),
        efa_devices=instance.efa_devices,
        accelerators=list(instance.accelerators),
        environment={**environment, **_own_variables(root, metadata)},
        lustre=lustre,
    )
    namespace = [] if connection.namespace is None else [str(connection.namespace.path)]
    child = children.start(
        instance.instance_id,
        [*QUICK, "sandbox.node.init", str(root), *namespace],
        log=directory / CONSOLE,
        environment={},
        directory=root,
        grace_s=GRACE_S,
    )
    return LocalNode(instance=instance, directory=directory, metadata=metadata, connection=connection, child=child)


def _own_variables(root: Path, metadata: InstanceMetadata) -> dict[str, str]:
    return {
        NodeVariable.ROOT: str(root),
        METADATA_VARIABLE: metadata.endpoint,
        "PATH": f"{root}/usr/bin:{root}/usr/sbin",
        "HOME": f"{root}/root",
        "TMPDIR": f"{root}/tmp",
        "LANG": "C.UTF-8",
    }


def _hostname(instance: Instance) -> str:
    return f"{instance.instance_id}.ec2.internal"


def _metadata_values(instance: Instance) -> dict[str, str]:
    shown = {key: value for key, value in instance.tags.items() if "/" not in key and " " not in key}
    return {
        "ami-id": instance.image_id,
        "hostname": _hostname(instance),
        "instance-id": instance.instance_id,
        "instance-life-cycle": "spot" if instance.spot else "on-demand",
        "instance-type": instance.instance_type,
        "placement/availability-zone": instance.availability_zone,
        "placement/region": instance.availability_zone[:-1],
        **({f"tags/instance/{key}": value for key, value in shown.items()} if instance.shows_tags else {}),
    }


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:  # gone meanwhile
        return "X"


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
