"""From a job to the command that runs it on a node."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trainfabric_node.jobs.records import JobSpec, Rendezvous
from trainfabric_plan.contract import Role

JOIN_TIMEOUT_S = 1800
"""How long a node waits in the rendezvous for the others, which may boot later."""

_STORE_TIMEOUT_S = 300
"""How long a node tries to reach the rendezvous store, which the coordinator's torchrun opens once it has started."""


@dataclass(frozen=True, kw_only=True)
class Node:
    """This node, as the metadata service and its settings describe it."""

    instance_id: str
    address: str
    role: Role


@dataclass(frozen=True, kw_only=True)
class RunFiles:
    """Where a run's files lie on this node.

    Attributes:
        directory: Of this run alone; emptied when the run begins.
        cache: Shared by all runs.
    """

    directory: Path
    cache: Path

    @property
    def recipe(self) -> Path:
        """The recipe as JSON."""
        return self.directory / "recipe.json"

    @property
    def plan(self) -> Path:
        """The plan as JSON."""
        return self.directory / "plan.json"

    @property
    def output(self) -> Path:
        """Directory that the trainer writes telemetry and its result into."""
        return self.directory / "output"

    @property
    def stop_flag(self) -> Path:
        """A file that appears when the trainer is to stop at the next step, with a checkpoint."""
        return self.directory / "stop"

    @property
    def log(self) -> Path:
        """What the trainer prints."""
        return self.directory / "trainer.log"


@dataclass(frozen=True, kw_only=True)
class Launch:
    """A run as one node is to start it."""

    spec: JobSpec
    node: Node
    rendezvous: Rendezvous
    checkpoints: str
    files: RunFiles


def torchrun_command(launch: Launch) -> list[str]:
    """The trainer under torchrun, with this Python: one rendezvous of exactly the plan's nodes, no restarts.

    The agents start a run anew instead: torch elastic 2.13 does not recover by itself with gloo, and a node that
    restarts its ranks alone cannot win the others back (pytorch issue 135712).
    """
    spec, files = launch.spec, launch.files
    is_host = int(launch.node.role is Role.COORDINATOR)
    conf = f"is_host={is_host},join_timeout={JOIN_TIMEOUT_S},read_timeout={_STORE_TIMEOUT_S}"
    return [
        *(sys.executable, "-m", "torch.distributed.run"),
        f"--nnodes={spec.plan.nodes}:{spec.plan.nodes}",
        f"--nproc-per-node={spec.plan.ranks_per_node}",
        "--rdzv-backend=c10d",
        f"--rdzv-endpoint={launch.rendezvous.host}:{launch.rendezvous.port}",
        f"--rdzv-id={spec.job}-{spec.run}",
        f"--rdzv-conf={conf}",
        f"--local-addr={launch.node.address}",
        "--max-restarts=0",
        *("-m", "trainfabric_training"),
        *("--recipe", str(files.recipe)),
        *("--plan", str(files.plan)),
        *("--job", spec.job),
        *("--data", spec.data),
        *("--checkpoints", launch.checkpoints),
        *("--output", str(files.output)),
        *("--stop-flag", str(files.stop_flag)),
        *("--cache", str(files.cache)),
        *spec.resume_options,
    ]


def trainer_variables(inherited: Mapping[str, str], region: str) -> dict[str, str]:
    """Environment variables of the trainer.

    The rendezvous store is not shared with the ranks: with gloo, what an earlier round left in it breaks the next
    (facts of torch 2.13: `TORCH_DISABLE_SHARE_RDZV_TCP_STORE`).
    """
    return {
        "OMP_NUM_THREADS": "1",
        "AWS_DEFAULT_REGION": region,
        **inherited,
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
        "PYTHONUNBUFFERED": "1",
    }
