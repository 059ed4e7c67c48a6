"""From an epoch to what its command gets on one node."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from trainfabric_node.jobs.records import JobSpec
from trainfabric_node.launch import EpochStart
from trainfabric_node.membership.protocol import EpochOrder
from trainfabric_plan.contract import CommandVariable, NodeVariable, own_files_prefix
from trainfabric_plan.own_command import CodePin, OwnCommand

if TYPE_CHECKING:
    from trainfabric_node.agent.host import Host

_CODE = "code"
_KEPT = (NodeVariable.ROOT,)
_OURS = ("PYTHONPATH", "VIRTUAL_ENV")


class CommandStart(EpochStart):
    """A command as one node is to start it.

    Attributes:
        job: Name of the job.
        own: The command.
        code: Its code folder, if it has one.
        bucket: Address of the bucket that the code lies in.
        code_directory: Where code folders are kept on the node.
        environment: All variables of the command.
        given: Names of those that it gets from us, for a container.
        lustre: Where Lustre is mounted.
        beat_s: Seconds between two signs of life.
    """

    job: str
    own: OwnCommand
    code: CodePin | None
    bucket: str
    code_directory: Path
    environment: dict[str, str]
    given: tuple[str, ...]
    lustre: Path
    beat_s: float

    @property
    def stop_file(self) -> Path:
        """Appears when the command is to leave."""
        return self.directory / "stop"

    @property
    def progress_file(self) -> Path:
        """What the command may say about its steps."""
        return progress_file(self.directory)


def progress_file(directory: Path) -> Path:
    """In the directory of an epoch: what the command may say about its steps."""
    return directory / "progress.jsonl"


def command_start(host: Host, spec: JobSpec, order: EpochOrder, node_rank: int) -> CommandStart:
    """What the command of an epoch gets on this node."""
    assert spec.command is not None
    directory = host.files(spec).epoch(order.record.number).directory
    given = variables(host, spec, order, node_rank)
    own = OwnCommand(command=spec.command.command, image=spec.command.image, leave_by=spec.command.leave_by)
    return CommandStart(
        epoch=order.record.number,
        directory=directory,
        nodes=len(order.record.nodes),
        node_rank=node_rank,
        job=spec.job,
        own=own,
        code=spec.command.code,
        bucket=host.checkpoint_bucket,
        code_directory=host.state / _CODE,
        environment={**_inherited(host.variables), **given},
        given=tuple(given),
        lustre=Path(given[CommandVariable.LUSTRE]),
        beat_s=host.timing(spec).rank_beat_s,
    )


def variables(host: Host, spec: JobSpec, order: EpochOrder, node_rank: int) -> dict[str, str]:
    """The variables that a command gets from us, and the region for the AWS SDK."""
    record, directory = order.record, host.files(spec).epoch(order.record.number).directory
    placement = host.variables.get(CommandVariable.PLACEMENT)
    return {
        CommandVariable.MASTER_ADDR.value: record.nodes[0].address,
        CommandVariable.MASTER_PORT.value: str(order.rendezvous_port),
        CommandVariable.NNODES.value: str(len(record.nodes)),
        CommandVariable.NODE_RANK.value: str(node_rank),
        CommandVariable.NPROC_PER_NODE.value: str(record.plan.ranks_per_node),
        CommandVariable.WORLD_SIZE.value: str(len(record.nodes) * record.plan.ranks_per_node),
        CommandVariable.JOB.value: spec.job,
        CommandVariable.RUN.value: str(spec.run),
        CommandVariable.EPOCH.value: str(record.number),
        CommandVariable.CHECKPOINT_URI.value: host.checkpoint_bucket + own_files_prefix(spec.job),
        CommandVariable.DATA_URI.value: spec.data,
        CommandVariable.LUSTRE.value: host.variables.get(NodeVariable.LUSTRE_MOUNT_POINT, ""),
        CommandVariable.STOP_FILE.value: str(directory / "stop"),
        CommandVariable.PROGRESS_FILE.value: str(progress_file(directory)),
        CommandVariable.HOSTS.value: ",".join(node.address for node in record.nodes),
        **({CommandVariable.PLACEMENT.value: placement} if placement else {}),
        "AWS_DEFAULT_REGION": host.variables.get("AWS_DEFAULT_REGION", ""),
    }


def _inherited(given: Mapping[str, str]) -> dict[str, str]:
    """What is not ours: the command's Python must not find our packages, nor the node's own settings."""
    return {
        name: value
        for name, value in given.items()
        if name in _KEPT or not (name in _OURS or name.startswith("TRAINFABRIC_"))
    }
