"""Epochs on two nodes, driven over the launchers' sockets as a supervisor does."""

from __future__ import annotations

import socket

import pytest

from tests.training.conftest import SMALL, Finished
from tests.training.launch.conftest import Job
from trainfabric_plan.layout import Layout

TWO_NODES = Layout(data=2, tensor=2)
ONE_NODE = Layout(tensor=2)
LARGEST_LOSS_DIFFERENCE = 2e-6


def test_a_run_drains_and_goes_on_in_another_layout_with_no_step_lost_and_none_twice(
    job: Job, reference: Finished
) -> None:
    first = job.start(TWO_NODES)
    first.wait_for_step(4)
    first.files[1].stop_flag.write_text("now")

    assert first.statuses() == [75, 75]
    ends = [first.of(rank).end(rank) for rank in first.ranks]
    left = first.files[0].result["step"]
    assert ends == [
        {"status": "resume", "detail": "", "of_others": False, "hopeless": False, "step": left} for _ in first.ranks
    ]
    assert first.files[0].result == {"status": "stopped", "step": left}
    assert job.committed() == [(left, "nonce1")]

    second = job.start(ONE_NODE, "--resume")

    assert second.statuses() == [0]
    assert [end and end["status"] for end in map(second.files[0].end, second.ranks)] == ["done", "done"]
    assert second.files[0].result == {"status": "done", "step": SMALL.steps}
    steps = [*first.files[0].steps, *second.files[0].steps]
    assert [one["step"] for one in steps] == list(range(1, SMALL.steps + 1))
    for ours, theirs in zip(steps, reference.steps, strict=True):
        assert ours["loss"] == pytest.approx(theirs["loss"], abs=LARGEST_LOSS_DIFFERENCE, rel=0)
        assert ours["learning_rate"] == theirs["learning_rate"]
    assert [event["event"] for event in second.files[0].events][:2] == ["start", "resume"]


def test_a_run_that_may_wait_leaves_at_the_next_checkpoint_that_is_due(job: Job) -> None:
    epoch = job.start(ONE_NODE)
    epoch.wait_for_step(1)
    epoch.files[0].stop_flag.write_text("checkpoint")

    assert epoch.statuses() == [75]
    assert epoch.files[0].result == {"status": "stopped", "step": SMALL.checkpoint_every}
    assert job.committed() == [(SMALL.checkpoint_every, f"nonce{job.last}")]


def test_an_epoch_that_another_has_followed_cannot_commit(job: Job) -> None:
    stale = job.start(ONE_NODE)
    stale.wait_for_step(1)
    job.checkpoints.claim("newer", job.last + 1)

    stale.files[0].stop_flag.write_text("now")

    assert stale.statuses() == [1]
    assert job.committed() == []
    first, second = (stale.files[0].end(rank) for rank in stale.ranks)
    assert first is not None
    assert second is not None
    assert first["detail"] == (
        f"{job.checkpoints.uri}: run must be the one that owns the job, got nonce{job.last} while newer owns it; "
        "stop this run, the other one goes on"
    )
    assert (first["status"], first["of_others"], first["hopeless"]) == ("failed", False, False)
    assert (second["of_others"], second["hopeless"]) == (True, False)


def test_an_epoch_outlives_its_store_and_the_next_starts_through_another(job: Job) -> None:
    epoch = job.start(TWO_NODES, "--stop-after-step", "6")
    epoch.wait_for_step(1)
    job.fleet.kill_store()

    assert epoch.statuses() == [75, 75]

    job.fleet.start_store()
    again = job.start(TWO_NODES, "--resume", "--stop-after-step", "7")

    assert again.statuses() == [75, 75]
    assert [one["step"] for one in [*epoch.files[0].steps, *again.files[0].steps]] == list(range(1, 8))


def test_what_is_wrong_in_the_input_is_hopeless_and_said_once(job: Job) -> None:
    epoch = job.start(ONE_NODE, "--resume")

    assert epoch.statuses() == [2]
    first, second = (epoch.files[0].end(rank) for rank in epoch.ranks)
    assert first == {
        "status": "failed",
        "detail": f"{job.checkpoints.uri}: --resume must find a committed checkpoint, got none; "
        "correct --checkpoints, or start anew without --resume",
        "of_others": False,
        "hopeless": True,
        "step": 0,
    }
    assert second is not None
    assert second["of_others"]
    assert epoch.files[0].log.count("--resume must find a committed checkpoint") == 1


def test_arguments_that_cannot_be_read_are_told_in_the_end_of_each_rank(job: Job) -> None:
    epoch = job.start(ONE_NODE, "--steps", "0")

    assert epoch.statuses() == [2]
    ends = [epoch.files[0].end(rank) for rank in epoch.ranks]
    assert any(
        end and (end["detail"], end["hopeless"]) == ("command line: --steps must be at least 1, got 0", True)
        for end in ends
    )


def test_a_node_that_lacks_a_device_is_the_one_with_a_fault_and_the_run_may_go_on_elsewhere(job: Job) -> None:
    epoch = job.start(ONE_NODE, "--device", "cuda")

    assert epoch.statuses() == [1]
    said = [end for end in map(epoch.files[0].end, epoch.ranks) if end and not end["of_others"]]
    assert said
    for end in said:
        where, _, words = end["detail"].partition(": ")
        assert where in [f"rank {rank} on {socket.gethostname()}" for rank in epoch.ranks]
        assert words == (
            "CUDA devices must be one for each of the 2 ranks of this node, got 0; "
            "replace the node, start fewer ranks on it, or give --device cpu"
        )
        assert (end["status"], end["hopeless"], end["step"]) == ("failed", False, 0)


def test_an_agent_that_fails_says_so_for_its_ranks(job: Job) -> None:
    epoch = job.start(TWO_NODES, rendezvous="nowhere:none")

    assert epoch.statuses() == [1, 1]
    for rank in epoch.ranks:
        end = epoch.of(rank).end(rank)
        assert end is not None
        assert (end["status"], end["of_others"], end["hopeless"]) == ("failed", False, False)
        assert end["detail"] == "ValueError: invalid literal for int() with base 10: 'none'"
