"""Local nodes: every running instance of a deployed environment becomes a process group on this machine.

A node has a directory, a loopback address and a metadata service of its own. Its code is the training asset that was
deployed, its variables are those that its launch template's user data writes, with what a systemd drop-in would
override, and its command is the agent. Running the user data and boot.sh themselves is left to a later issue: they
install packages and mount Lustre.

A spot interruption notice is given to a node by a file `spot-notice` in its directory (its text, if any, is the time).
"""

from __future__ import annotations

import os
import shutil
import sys
import time
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import boto3
from botocore.exceptions import ClientError

from sandbox.fleet import Fleet, Instance
from sandbox.metadata import InstanceMetadata
from sandbox.processes import Child, Children, free_port, node_environment
from trainfabric_plan.contract import NodeVariable
from trainfabric_plan.errors import NotFound

AGENT = (sys.executable, "-m", "trainfabric_node", "agent")
POLL_S = 0.5
GRACE_S = 15.0
"""Time that an agent has between SIGTERM and SIGKILL."""
RESTART_S = 5.0
"""As the unit's Restart=on-failure and RestartSec: an agent that fails is started again."""
NOTICE_FILE = "spot-notice"
NOTICE_S = 120


@dataclass(kw_only=True)
class Node:
    """A local node: its instance, its files, and what runs for it."""

    instance: Instance
    directory: Path
    metadata: InstanceMetadata
    child: Child
    started: float
    noticed: bool = False


class NodeRunner:
    """Keeps as many local nodes as the embedded AWS says should run; use it in a `with` block and call `tick` often."""

    def __init__(self, fleet: Fleet, state: Path, children: Children, command: Sequence[str] = AGENT) -> None:
        self._fleet = fleet
        self._state = state.resolve()
        self._children = children
        self._command = command
        self._inherited = node_environment()
        self._rendezvous_port = free_port()
        self._numbers = iter(range(1, 64_000))
        self.nodes: dict[str, Node] = {}
        self._leaving: list[Node] = []

    def tick(self) -> None:
        """Start nodes for new instances, stop those of instances that are gone, pass on notices."""
        wanted = {instance.instance_id: instance for instance in self._fleet.running()}
        for instance_id in self.nodes.keys() - wanted.keys():
            self._dismiss(self.nodes.pop(instance_id))
        for instance_id in sorted(wanted.keys() - self.nodes.keys()):
            self.nodes[instance_id] = self._begin(wanted[instance_id])
        for node in self.nodes.values():
            self._look_after(node)
        self._leaving = [node for node in self._leaving if not self._gone(node)]

    def stop(self) -> None:
        """Stop every node and wait for all of them."""
        for node in self.nodes.values():
            self._dismiss(node)
        self.nodes = {}
        for node in self._leaving:
            self._children.stop(node.child)
            node.metadata.stop()
        self._leaving = []

    def _begin(self, instance: Instance) -> Node:
        directory = self._state / instance.instance_id
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        _unpack_asset(instance.variables, directory)
        metadata = InstanceMetadata(_address(next(self._numbers)), _metadata_values(instance))
        metadata.start()
        child = self._start_agent(instance, directory, metadata)
        _say(f"{instance.instance_id} {instance.variables[NodeVariable.ROLE]} started at {metadata.endpoint}")
        return Node(instance=instance, directory=directory, metadata=metadata, child=child, started=time.monotonic())

    def _start_agent(self, instance: Instance, directory: Path, metadata: InstanceMetadata) -> Child:
        return self._children.start(
            instance.instance_id,
            self._command,
            log=directory / "agent.log",
            environment=self._variables(instance, directory, metadata),
            directory=directory,
            grace_s=GRACE_S,
        )

    def _variables(self, instance: Instance, directory: Path, metadata: InstanceMetadata) -> dict[str, str]:
        return {
            **self._inherited,
            **instance.variables,
            NodeVariable.STATE_DIRECTORY: str(directory / "state"),
            NodeVariable.RENDEZVOUS_PORT: str(self._rendezvous_port),
            "AWS_EC2_METADATA_SERVICE_ENDPOINT": metadata.endpoint,
            "PYTHONPATH": str(directory / "code"),
            "PYTHONUNBUFFERED": "1",
            "HOME": str(directory),
            "GLOO_SOCKET_IFNAME": "lo",
            "OMP_NUM_THREADS": "1",
        }

    def _look_after(self, node: Node) -> None:
        notice = node.directory / NOTICE_FILE
        if not node.noticed and notice.exists():
            node.metadata.interrupt(notice.read_text().strip() or _in_two_minutes())
            node.noticed = True
            _say(f"{node.instance.instance_id} got a spot interruption notice")
        if node.child.exit_status and time.monotonic() - node.started > RESTART_S:
            _say(f"{node.instance.instance_id} ended with exit status {node.child.exit_status}; started again")
            self._children.stop(node.child)
            node.child = self._start_agent(node.instance, node.directory, node.metadata)
            node.started = time.monotonic()

    def _dismiss(self, node: Node) -> None:
        node.child.ask_to_end()
        self._leaving.append(node)
        _say(f"{node.instance.instance_id} is gone: its node is told to leave")

    def _gone(self, node: Node) -> bool:
        if node.child.running:
            return False
        self._children.stop(node.child)
        node.metadata.stop()
        return True


def run_nodes(environment: str, state: Path, command: Sequence[str] = AGENT) -> None:
    """Run local nodes for a deployed environment until told to end.

    Raises:
        NotFound: If the environment or the training asset is not there.
        Unreachable: If the embedded AWS does not answer (any more).
    """
    node_environment()
    with Children() as children:
        runner = NodeRunner(Fleet(environment), state, children, command)
        try:
            while True:
                runner.tick()
                time.sleep(POLL_S)
        finally:
            runner.stop()


def _unpack_asset(variables: dict[str, str], directory: Path) -> None:
    bucket, key = variables[NodeVariable.ASSET_BUCKET], variables[NodeVariable.ASSET_KEY]
    archive = directory / "code.zip"
    try:
        boto3.client("s3").download_file(bucket, key, str(archive))
    except ClientError as error:
        raise NotFound(
            f"sandbox: the training asset s3://{bucket}/{key} must be in the nodes' S3, got {error}; "
            "deploy and mirror the buckets"
        ) from error
    with zipfile.ZipFile(archive) as code:
        code.extractall(directory / "code")


def _metadata_values(instance: Instance) -> dict[str, str]:
    shown = {key: value for key, value in instance.tags.items() if "/" not in key and " " not in key}
    return {
        "instance-id": instance.instance_id,
        "instance-type": instance.instance_type,
        "instance-life-cycle": "spot" if instance.spot else "on-demand",
        "placement/availability-zone": instance.availability_zone,
        "placement/region": instance.availability_zone[:-1],
        **{f"tags/instance/{key}": value for key, value in shown.items()},
    }


def _address(number: int) -> str:
    """A loopback address that no node of this runner has, and hardly one of another runner on this machine."""
    block = os.getpid() % 250 + 2
    return f"127.{block}.{number // 250}.{number % 250 + 2}"


def _in_two_minutes() -> str:
    return (datetime.now(UTC) + timedelta(seconds=NOTICE_S)).strftime("%Y-%m-%dT%H:%M:%SZ")


def _say(text: str) -> None:
    print(f"{datetime.now(UTC):%H:%M:%S} {text}", flush=True)
