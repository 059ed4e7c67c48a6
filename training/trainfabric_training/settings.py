"""What a process is told by who started it; the one place of the package that reads and sets environment variables."""

from __future__ import annotations

import os
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, replace
from pathlib import Path

from trainfabric_plan.contract import RENDEZVOUS_PORT, NodeVariable, Paths
from trainfabric_plan.errors import mistake

_FIRST_PORT, _PORTS = 20_000, 10_000
_METADATA_ENDPOINT_VARIABLE = "AWS_EC2_METADATA_SERVICE_ENDPOINT"
_METADATA_ENDPOINT = "http://169.254.169.254"


@dataclass(frozen=True, kw_only=True)
class RankSettings:
    """This process among the processes of the run.

    Attributes:
        rank: Global rank.
        world_size: Number of processes.
        local_rank: Rank on this node; picks the accelerator.
        local_size: Ranks on this node.
        host: Where the processes meet, or `None` if there is only one.
        port: TCP port on that host.
        store_prefix: Of this run's keys in the store that listens there already; `None` if rank 0 opens a store there,
            or torchrun has.
    """

    rank: int = 0
    world_size: int = 1
    local_rank: int = 0
    local_size: int = 1
    host: str | None = None
    port: int = 0
    store_prefix: str | None = None

    def in_store(self, prefix: str) -> RankSettings:
        """The same with a store that serves several runs."""
        return replace(self, store_prefix=prefix)


@dataclass(frozen=True, kw_only=True)
class LaunchSettings:
    """What the launcher and the rendezvous store of a node need to know.

    Attributes:
        state: Directory of the node's state; the launcher's socket is made in it.
        rendezvous_port: TCP port of the store.
        metadata_endpoint: Address of the instance metadata service.
    """

    state: Path
    rendezvous_port: int
    metadata_endpoint: str


def read_launch_settings(variables: Mapping[str, str] | None = None) -> LaunchSettings:
    """The settings in these variables, by default those of the process, which come from the node's environment file.

    Raises:
        InvalidInput: If the port is none.
    """
    given = os.environ if variables is None else variables
    port = given.get(NodeVariable.RENDEZVOUS_PORT) or str(RENDEZVOUS_PORT)
    if not (port.isdecimal() and 0 < int(port) < 65536):
        remedy = f"correct {Paths.NODE_ENVIRONMENT}, which the user data writes"
        raise mistake("node settings", NodeVariable.RENDEZVOUS_PORT, "a port from 1 to 65535", port, remedy)
    return LaunchSettings(
        state=Path(given.get(NodeVariable.STATE_DIRECTORY) or Paths.STATE),
        rendezvous_port=int(port),
        metadata_endpoint=given.get(_METADATA_ENDPOINT_VARIABLE) or _METADATA_ENDPOINT,
    )


def prepare_launcher(variables: MutableMapping[str, str] | None = None) -> None:
    """Sets what must stand before torch is imported in a process that forks ranks.

    Whether there is CUDA is asked of NVML: CUDA itself, once asked, cannot be used in a forked process.
    """
    target = os.environ if variables is None else variables
    target.setdefault("OMP_NUM_THREADS", "1")
    target["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
    target["TORCHDYNAMO_DISABLE"] = "1"


def prepare_ranks(*, cpu: bool, variables: MutableMapping[str, str] | None = None) -> None:
    """Sets what DeepSpeed reads while it is imported, as `export` does; `cpu` if there is no CUDA."""
    target = os.environ if variables is None else variables
    if cpu:
        target["DS_ACCELERATOR"] = "cpu"


def enter_epoch(given: Mapping[str, str], variables: MutableMapping[str, str] | None = None) -> None:
    """Takes the variables of an epoch over those of the launcher.

    Every node has as many ranks as the others, so that torch elastic need not gather them through the store.
    """
    target = os.environ if variables is None else variables
    target.update(given)
    target["TORCH_ELASTIC_WORKER_IDENTICAL"] = "1"


def threads() -> int:
    """Threads that a rank computes with on the CPU."""
    return _number(os.environ, "OMP_NUM_THREADS")


def read_settings(variables: Mapping[str, str] | None = None) -> RankSettings:
    """The settings that torchrun or srun gave, by default to this process; a process that neither started is alone.

    Under srun the processes meet on the node that ran it, which is the first of the job in a batch script, at a port
    that follows from the job; MASTER_ADDR and MASTER_PORT overrule both.

    Raises:
        InvalidInput: If a variable is missing or no number.
    """
    given = os.environ if variables is None else variables
    if "RANK" in given:
        names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
        return _settings(given, names, given.get("MASTER_ADDR"), given.get("MASTER_PORT"))
    if "SLURM_PROCID" in given:
        names = ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE")
        host = given.get("MASTER_ADDR") or given.get("SLURM_LAUNCH_NODE_IPADDR")
        port = given.get("MASTER_PORT") or str(_FIRST_PORT + _number(given, "SLURM_JOB_ID") % _PORTS)
        return _settings(given, names, host, port)
    return RankSettings()


def export(settings: RankSettings, *, cpu: bool, variables: MutableMapping[str, str] | None = None) -> None:
    """Sets what torch.distributed and DeepSpeed read from the environment by themselves.

    Nothing here is compiled, but DeepSpeed 0.19.8 decorates functions with `torch.compile` while it is imported, which
    would load the compiler: 1.2 s of CPU time per rank.
    """
    target = os.environ if variables is None else variables
    target.update(RANK=str(settings.rank), WORLD_SIZE=str(settings.world_size), LOCAL_RANK=str(settings.local_rank))
    if settings.host is not None:
        target.update(MASTER_ADDR=settings.host, MASTER_PORT=str(settings.port))
    target["TORCHDYNAMO_DISABLE"] = "1"
    if cpu:
        target["DS_ACCELERATOR"] = "cpu"


def _settings(
    given: Mapping[str, str], names: tuple[str, str, str, str], host: str | None, port: str | None
) -> RankSettings:
    rank, world_size, local_rank, local_size = (_number(given, name) for name in names)
    if world_size > 1 and not (host and port and port.isdecimal()):
        remedy = "start the processes with torchrun or srun, which set them"
        raise mistake("environment", "MASTER_ADDR and MASTER_PORT", "given", f"{host}:{port}", remedy)
    return RankSettings(
        rank=rank,
        world_size=world_size,
        local_rank=local_rank,
        local_size=local_size,
        host=host,
        port=int(port) if port else 0,
    )


def _number(given: Mapping[str, str], name: str) -> int:
    """A whole number; Slurm writes tasks per node as 2(x4) for two on each of four nodes."""
    value = given.get(name, "").partition("(")[0].partition(",")[0]
    if not value.isdecimal():
        remedy = "start the processes with torchrun or srun, which set it"
        raise mistake("environment", name, "a whole number", value or "nothing", remedy)
    return int(value)
