"""Joining the processes of a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist

from trainfabric_plan.errors import mistake
from trainfabric_training.parallel import Ranks
from trainfabric_training.settings import RankSettings


def choose_device(name: str, settings: RankSettings) -> torch.device:
    """The device of this rank; `auto` is CUDA where there is any.

    Raises:
        InvalidInput: If CUDA is to be used and has fewer devices than this node has ranks.
    """
    if name == "cpu" or (name == "auto" and not torch.cuda.is_available()):
        return torch.device("cpu")
    devices = torch.cuda.device_count()
    if settings.local_size > devices:
        rule = f"cpu, or cuda with a device for each of the {settings.local_size} ranks of this node"
        remedy = "start fewer ranks per node, or give --device cpu"
        raise mistake("command line", "--device", rule, f"{name} with {devices} devices", remedy)
    return torch.device("cuda", settings.local_rank)


@contextmanager
def joined(settings: RankSettings, device: torch.device) -> Iterator[Ranks]:
    """All ranks, connected: gloo on CPUs; NCCL on CUDA, with gloo beside it for small messages."""
    if device.type == "cuda":
        torch.cuda.set_device(device)
    _initialise(settings, "nccl" if device.type == "cuda" else "gloo")
    try:
        group = dist.new_group(backend="gloo") if device.type == "cuda" else None
        yield Ranks(rank=settings.rank, size=settings.world_size, group=group)
    finally:
        dist.destroy_process_group()


def _initialise(settings: RankSettings, backend: str) -> None:
    """Through the environment, where torchrun says whether its agent keeps the store; alone, without a port."""
    if settings.host is None:
        dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)  # type: ignore[attr-defined]
    else:
        dist.init_process_group(backend)
