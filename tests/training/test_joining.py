"""How ranks meet: threads stand for them, as far as the store goes."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist
from torch._C._distributed_c10d import HashStore, TCPStore
from torch.distributed import distributed_c10d

from tests.node.seaweed import free_ports
from trainfabric_node.membership.timing import PROFILES
from trainfabric_training.engine.processes import COLLECTIVE_TIMEOUT, check_devices, choose_device, connect, joined
from trainfabric_training.failure import NodeFault, NoStore, end_by
from trainfabric_training.launch.rendezvous import FixedRendezvous
from trainfabric_training.parallel import Agreed
from trainfabric_training.settings import RankSettings

HOST = socket.gethostname()
ODD = "device must be cuda as of rank 1, got cpu; replace the node, or give --device cpu"

TIMEOUTS = ("default_pg_timeout", "default_pg_nccl_timeout")
"""Of gloo and NCCL, where no other is given."""


@pytest.fixture
def server() -> TCPStore:
    return TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)


@pytest.fixture
def defaults(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Puts torch's own timeouts back, and takes connections down, whatever a test does."""
    for name in TIMEOUTS:
        monkeypatch.setattr(distributed_c10d, name, getattr(distributed_c10d, name))
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


def torchs_own() -> list[timedelta | None]:
    return [getattr(distributed_c10d, name) for name in TIMEOUTS]


def verdicts(server: TCPStore, devices: Sequence[str]) -> list[Exception | None]:
    """What each rank says, when these are their devices."""

    def check(rank: int) -> Exception | None:
        store = connect("127.0.0.1", server.port, "ranks")
        try:
            check_devices(store, RankSettings(rank=rank, world_size=len(devices)), torch.device(devices[rank]))
        except Exception as error:
            return error
        return None

    with ThreadPoolExecutor(len(devices)) as pool:
        return list(pool.map(check, range(len(devices))))


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_ranks_of_one_device_type_go_on(server: TCPStore, device: str) -> None:
    assert verdicts(server, [device] * 3) == [None] * 3


def test_ranks_without_cuda_where_others_have_it_are_named_and_may_be_replaced(server: TCPStore) -> None:
    said = verdicts(server, ["cpu", "cuda", "cuda", "cpu"])

    ends = [end_by(error, rank=rank, step=0) for rank, error in enumerate(said) if error]
    assert [(end.detail, end.of_others, end.hopeless) for end in ends] == [
        (f"rank 0 on {HOST}: {ODD}", False, False),
        (f"rank 0 on {HOST}: {ODD}", True, False),
        (f"rank 0 on {HOST}: {ODD}", True, False),
        (f"rank 3 on {HOST}: {ODD}", False, False),
    ]


def test_a_rank_alone_has_nobody_to_agree_with() -> None:
    check_devices(HashStore(), RankSettings(), torch.device("cuda"))


@pytest.mark.parametrize("prefix", [None, "job.epoch1/ranks"])
def test_devices_are_compared_before_any_rank_joins_a_group(
    defaults: None, monkeypatch: pytest.MonkeyPatch, server: TCPStore, prefix: str | None
) -> None:
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", str(server.port))
    monkeypatch.setenv("TORCHELASTIC_USE_AGENT_STORE", "True")

    def join(rank: int) -> Exception | None:
        settings = RankSettings(rank=rank, world_size=2, host="127.0.0.1", port=server.port, store_prefix=prefix)
        try:
            with joined(settings, torch.device("cuda" if rank else "cpu")):
                return None
        except Exception as error:
            return error

    with ThreadPoolExecutor(2) as pool:
        said = list(pool.map(join, range(2)))

    assert [type(error) for error in said] == [Agreed, Agreed]
    assert str(said[1]) == f"rank 0 on {HOST}: {ODD}"
    assert not dist.is_initialized()


def test_fewer_devices_than_ranks_are_a_fault_of_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 7)

    with pytest.raises(NodeFault) as caught:
        choose_device("auto", RankSettings(rank=9, world_size=16, local_rank=1, local_size=8))

    assert str(caught.value) == (
        f"rank 9 on {HOST}: CUDA devices must be one for each of the 8 ranks of this node, got 7; "
        "replace the node, start fewer ranks on it, or give --device cpu"
    )


def test_below_a_supervisor_every_group_outlasts_its_patience(defaults: None, server: TCPStore) -> None:
    settings = RankSettings(host="127.0.0.1", port=server.port, store_prefix="job.epoch1/ranks")

    with joined(settings, torch.device("cpu")):
        groups = [dist.group.WORLD, dist.new_group([0])]
        timeouts = [group._get_backend(torch.device("cpu")).options._timeout for group in groups]

    assert timeouts == [COLLECTIVE_TIMEOUT, COLLECTIVE_TIMEOUT]
    assert torchs_own() == [COLLECTIVE_TIMEOUT, COLLECTIVE_TIMEOUT]
    assert all(timing.step_stalled_s < COLLECTIVE_TIMEOUT.total_seconds() for timing in PROFILES.values())


def test_without_a_supervisor_torchs_own_timeouts_stay(defaults: None) -> None:
    before = torchs_own()

    with joined(RankSettings(), torch.device("cpu")):
        pass

    assert torchs_own() == before
    assert COLLECTIVE_TIMEOUT not in before


def test_a_store_that_does_not_answer_is_told_in_time() -> None:
    (port,) = free_ports(1)
    within = timedelta(seconds=1)
    meeting = FixedRendezvous(
        host="127.0.0.1", port=port, run_id="job.epoch1", node_rank=0, nodes=2, answers_within=within
    )

    for call in (lambda: connect("127.0.0.1", port, "a", answers_within=within), meeting.next_rendezvous):
        with pytest.raises(NoStore) as caught:
            call()

        assert str(caught.value) == (
            f"rendezvous store: 127.0.0.1:{port} must answer within 1 s, got no connection; "
            "the next epoch meets where the controller runs then"
        )


def test_ranks_that_come_late_are_waited_for_longer_than_the_supervisor_does(server: TCPStore) -> None:
    assert connect("127.0.0.1", server.port, "ranks").timeout == COLLECTIVE_TIMEOUT  # type: ignore[attr-defined]


def test_a_store_that_is_there_is_waited_for_no_longer_than_a_minute() -> None:
    assert FixedRendezvous.__init__.__kwdefaults__ == {"answers_within": timedelta(seconds=60)}
