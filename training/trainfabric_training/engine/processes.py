"""Joining the processes of a run."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import HashStore, PrefixStore, Store, TCPStore
from torch.distributed import distributed_c10d
from torch.distributed.rendezvous import rendezvous

from trainfabric_plan.errors import Mistake
from trainfabric_training.failure import NodeFault, NoStore
from trainfabric_training.parallel import Agreed, Ranks
from trainfabric_training.settings import RankSettings

STORE_ANSWERS_WITHIN = timedelta(seconds=60)
"""A store that is there answers in milliseconds; without one, the controller is to form the next epoch."""

COLLECTIVE_TIMEOUT = timedelta(hours=1)
"""For which ranks below a supervisor wait for each other, from their meeting in the store on.

Longer than the supervisor waits for a step (`Timing.step_stalled_s`): it then names the ranks that hang, with their
stacks. Were torch's own watchdog first (10 minutes with NCCL), it would end every rank, and nobody could see which of
them had kept the others waiting. Ranks that are gone are noticed by their closed connections and the nodes' beats.
"""


def choose_device(name: str, settings: RankSettings) -> torch.device:
    """The device of this rank; `auto` is CUDA where there is any.

    Raises:
        NodeFault: If CUDA is to be used and has fewer devices than this node has ranks, as when one has failed.
    """
    if name == "cpu" or (name == "auto" and not torch.cuda.is_available()):
        return torch.device("cpu")
    devices = torch.cuda.device_count()
    if settings.local_size > devices:
        raise _fault(
            settings.rank,
            socket.gethostname(),
            name="CUDA devices",
            rule=f"one for each of the {settings.local_size} ranks of this node",
            got=str(devices),
            remedy="replace the node, start fewer ranks on it, or give --device cpu",
        )
    return torch.device("cuda", settings.local_rank)


@contextmanager
def joined(settings: RankSettings, device: torch.device) -> Iterator[Ranks]:
    """All ranks, connected: gloo on CPUs; NCCL on CUDA, with gloo beside it for small messages.

    After an error, connections are left as they are: taking them down may wait for ranks that are gone or stuck.

    Raises:
        Agreed: If some ranks have CUDA and others have not.
        NoStore: If there is a store that serves several runs, and it does not answer.
    """
    if settings.store_prefix is not None:
        _outlast_supervisor()
    store = _store(settings)
    check_devices(store, settings, device)
    if device.type == "cuda":
        torch.cuda.set_device(device)
    backend = "nccl" if device.type == "cuda" else "gloo"
    dist.init_process_group(
        backend, store=PrefixStore("ranks", store), rank=settings.rank, world_size=settings.world_size
    )
    group = dist.new_group(backend="gloo") if device.type == "cuda" else None
    yield Ranks(rank=settings.rank, size=settings.world_size, group=group)
    disconnect()


def disconnect() -> None:
    """Takes the connections down, if there are any."""
    if dist.is_initialized():
        dist.destroy_process_group()


def connect(host: str, port: int, prefix: str, *, answers_within: timedelta = STORE_ANSWERS_WITHIN) -> Store:
    """A client of a store that serves several runs; sees the keys below a prefix alone.

    Raises:
        NoStore: If it does not answer.
    """
    try:
        store = TCPStore(host, port, is_master=False, wait_for_workers=False, timeout=answers_within)
    except dist.DistNetworkError:
        raise NoStore(
            f"rendezvous store: {host}:{port} must answer within {answers_within.total_seconds():g} s, got no "
            "connection; the next epoch meets where the controller runs then"
        ) from None
    store.set_timeout(COLLECTIVE_TIMEOUT)
    return PrefixStore(prefix, store)


def check_devices(store: Store, settings: RankSettings, device: torch.device) -> None:
    """Sees that all ranks train on one type of device; those that differ would wait for the others for ever.

    Where any rank has CUDA, those that have none are the ones with a fault: `auto` is CUDA wherever there is any.

    Raises:
        Agreed: On every rank, by a rank without CUDA; it may pass, on another node.
    """
    if settings.world_size == 1:
        return
    store.set(_device_key(settings.rank), f"{device.type} {socket.gethostname()}")
    said = [words.decode().split() for words in store.multi_get([*map(_device_key, range(settings.world_size))])]
    with_cuda = [rank for rank, (kind, _) in enumerate(said) if kind == "cuda"]
    without = [rank for rank, (kind, _) in enumerate(said) if kind != "cuda"]
    if with_cuda and without:
        odd = settings.rank if settings.rank in without else without[0]
        kind, host = said[odd]
        rule, remedy = f"cuda as of rank {with_cuda[0]}", "replace the node, or give --device cpu"
        error = _fault(odd, host, name="device", rule=rule, got=kind, remedy=remedy)
        raise Agreed(str(error), rank=odd, passing=True)


def _device_key(rank: int) -> str:
    return f"device/{rank}"


def _fault(rank: int, host: str, *, name: str, rule: str, got: str, remedy: str) -> NodeFault:
    return NodeFault(str(Mistake(where=f"rank {rank} on {host}", name=name, rule=rule, got=got, remedy=remedy)))


def _outlast_supervisor() -> None:
    """Makes the timeout that of every group to come: DeepSpeed makes its own, without saying one."""
    distributed_c10d.default_pg_timeout = COLLECTIVE_TIMEOUT
    distributed_c10d.default_pg_nccl_timeout = COLLECTIVE_TIMEOUT  # type: ignore[attr-defined]


def _store(settings: RankSettings) -> Store:
    """Through the environment, where torchrun says whether its agent keeps the store; alone, without a port."""
    if settings.host is None:
        return HashStore()
    if settings.store_prefix is not None:
        return connect(settings.host, settings.port, settings.store_prefix)
    store: Store
    store, _, _ = next(rendezvous("env://", settings.rank, settings.world_size))
    return store
