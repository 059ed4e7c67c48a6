"""Joining the processes of a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import HashStore, PrefixStore, Store, TCPStore

from trainfabric_plan.errors import mistake
from trainfabric_training.parallel import Ranks
from trainfabric_training.settings import RankSettings

_CONNECT_TIMEOUT = timedelta(seconds=300)


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
    """All ranks, connected: gloo on CPUs; NCCL on CUDA, with gloo beside it for small messages.

    After an error, connections are left as they are: taking them down may wait for ranks that are gone or stuck.
    """
    if device.type == "cuda":
        torch.cuda.set_device(device)
    _initialise(settings, "nccl" if device.type == "cuda" else "gloo")
    group = dist.new_group(backend="gloo") if device.type == "cuda" else None
    yield Ranks(rank=settings.rank, size=settings.world_size, group=group)
    disconnect()


def disconnect() -> None:
    """Takes the connections down, if there are any."""
    if dist.is_initialized():
        dist.destroy_process_group()


def connect(host: str, port: int, prefix: str) -> Store:
    """A client of a store that serves several runs; sees the keys below a prefix alone."""
    store = TCPStore(host, port, is_master=False, wait_for_workers=False, timeout=_CONNECT_TIMEOUT)
    return PrefixStore(prefix, store)


def _initialise(settings: RankSettings, backend: str) -> None:
    """Through the environment, where torchrun says whether its agent keeps the store; alone, without a port."""
    if settings.host is None:
        dist.init_process_group(backend, store=HashStore(), rank=0, world_size=1)
    elif settings.store_prefix is None:
        dist.init_process_group(backend)
    else:
        store = connect(settings.host, settings.port, settings.store_prefix)
        dist.init_process_group(backend, store=store, rank=settings.rank, world_size=settings.world_size)
