"""What is killed takes what is below it along, and says so where it can; nothing and no zombie is left."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest

from tests.training.launch.conftest import Epoch, Job
from tests.training.launch.nodes import Fleet, wait_until
from trainfabric_plan.layout import Layout

TWO_NODES = Layout(data=2, tensor=2)
ONE_NODE = Layout(tensor=2)
SECONDS_TO_VANISH = 2.0
"""Far above what the kernel needs, far below what a timeout of torch would take."""


@pytest.fixture(autouse=True)
def _nothing_is_left(fleet: Fleet) -> Iterator[None]:
    yield
    for node in fleet.nodes:
        assert node.processes() == []
        assert node.zombies() == []


@pytest.fixture
def running(job: Job) -> Epoch:
    """Ranks on two nodes, all of which have taken a step."""
    epoch = job.start(TWO_NODES)
    epoch.wait_for_step(1)
    return epoch


def ends_of(epoch: Epoch) -> list[tuple[str, bool]]:
    ends = [epoch.of(rank).end(rank) for rank in epoch.ranks]
    return [(end["status"], end["of_others"]) for end in ends if end]


def gone(fleet: Fleet, *nodes: int) -> None:
    wait_until(lambda: not any(fleet.nodes[node].processes() for node in nodes), "no process", SECONDS_TO_VANISH)


def test_of_a_killed_rank_its_agent_says_how_it_ended_and_the_others_that_it_was_not_them(running: Epoch) -> None:
    process = running.of(1).beat(1)["pid"]
    os.kill(process, signal.SIGKILL)

    assert running.statuses() == [1, 1]
    assert ends_of(running) == [("failed", True), ("failed", False), ("failed", True), ("failed", True)]
    end = running.of(1).end(1)
    assert end is not None
    assert end["detail"] == f"rank 1 (process {process}) was ended by SIGKILL"


@pytest.mark.parametrize(
    ("printed", "of_others"),
    [
        ("[rank1]:[E1130 ProcessGroupNCCL.cpp:683] [Rank 1] Watchdog caught collective operation timeout", True),
        ("[rank1]:[E1130 ProcessGroupNCCL.cpp:683] [Rank 1] CUDA error: an illegal memory access", False),
    ],
)
def test_a_rank_that_the_watchdog_ended_is_the_reason_unless_it_has_printed_that_others_are(
    running: Epoch, printed: str, of_others: bool
) -> None:
    process = running.of(1).beat(1)["pid"]
    with (running.of(1).directory / "trainer.log").open("a") as log:
        log.write(f"{printed}\n")
    os.kill(process, signal.SIGABRT)

    assert running.statuses() == [1, 1]
    end = running.of(1).end(1)
    assert end is not None
    assert end["of_others"] == of_others
    assert end["detail"] == f"rank 1 (process {process}) was ended by SIGABRT" + (f": {printed}" if of_others else "")


def test_ranks_of_other_nodes_say_within_a_moment_that_others_are_gone(running: Epoch) -> None:
    began = time.monotonic()
    os.kill(running.of(0).beat(0)["pid"], signal.SIGKILL)

    wait_until(lambda: any(running.of(rank).end(rank) for rank in (2, 3)), "an end on the other node", 1)

    end = running.of(2).end(2) or running.of(3).end(3)
    assert end is not None
    assert time.monotonic() - began < 1
    assert "Connection" in end["detail"]
    assert running.statuses() == [1, 1]


def test_an_agent_that_is_killed_takes_its_ranks_along(running: Epoch, fleet: Fleet) -> None:
    os.kill(running.agents[0], signal.SIGKILL)

    assert running.statuses() == [-9, 1]
    gone(fleet, 0, 1)


def test_a_launcher_that_is_killed_takes_all_below_it_along(running: Epoch, fleet: Fleet) -> None:
    node = fleet.nodes[1]
    node.kill()

    gone(fleet, 1)
    assert node.client.answer() is None
    answer = fleet.nodes[0].client.answer()
    assert answer == {"ended": running.number, "status": 1}
    node.client.close()
    fleet.restart(node)


def test_a_supervisor_that_is_gone_takes_its_epoch_along_and_the_next_finds_the_launcher_warm(
    running: Epoch, job: Job
) -> None:
    node = job.fleet.nodes[1]
    node.client.close()
    gone(job.fleet, 1)

    node.connect()

    assert job.fleet.nodes[0].client.answer() == {"ended": running.number, "status": 1}
    again = job.start(TWO_NODES, "--stop-after-step", "1")
    assert again.statuses() == [75, 75]


def test_an_epoch_is_killed_whole_on_request_even_when_its_processes_are_stopped(running: Epoch, fleet: Fleet) -> None:
    for process in (running.agents[0], running.of(0).beat(0)["pid"]):
        os.kill(process, signal.SIGSTOP)

    running.kill()

    assert [node.processes() for node in fleet.nodes] == [[], []]


def test_a_kill_of_an_earlier_epoch_leaves_the_present_one_alone(job: Job) -> None:
    job.last += 1
    epoch = job.start(ONE_NODE, "--stop-after-step", "2")
    client = epoch.nodes[0].client

    client.send(kill=epoch.number - 1)
    client.send(status=True)

    assert client.answer() == {"killed": epoch.number - 1}
    assert client.answer() == {"ready": True, "epoch": epoch.number}
    assert epoch.statuses() == [75]
    client.send(status=True)
    assert client.answer() == {"ready": True, "epoch": None}


def test_a_start_kills_what_is_left_of_an_earlier_epoch(running: Epoch, job: Job) -> None:
    ranks = [running.of(rank).beat(rank)["pid"] for rank in running.ranks]

    again = job.start(TWO_NODES, "--stop-after-step", "1")

    assert not any(rank in node.processes() for node in job.fleet.nodes for rank in ranks)
    assert again.statuses() == [75, 75]


def test_a_request_that_makes_no_sense_ends_the_connection_and_what_it_started(running: Epoch, job: Job) -> None:
    node = job.fleet.nodes[1]
    node.client.send(begin=running.number)

    assert node.client.answer() is None
    assert (node.state / "launcher.log").read_text().splitlines()[-1] == (
        "launcher: begin must be valid, got Extra inputs are not permitted"
    )
    node.client.close()
    node.connect()
    assert job.fleet.nodes[0].client.answer() == {"ended": running.number, "status": 1}
