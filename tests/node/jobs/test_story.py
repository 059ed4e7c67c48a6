from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.node.jobs.said import BEGIN, drain, ended, epoch, event
from tests.node.samples import spec
from trainfabric_node.jobs import Outcome, StopRequest, story
from trainfabric_node.jobs.story import innermost, tell
from trainfabric_plan.contract import Event

FIRST = "2026-07-01 19:02:00 first (run 1) asks for 4 nodes, data 4 × pipeline 1 × tensor 2"

STACK = """\
Process 4242: python -m trainfabric_training
Python v3.11.2 (/usr/bin/python3.11)

Thread 4250 (idle): "beats"
    wait (threading.py:331)
Thread 4242 (active): "MainThread"
    all_reduce (torch/distributed/distributed_c10d.py:2501)
    agree (trainfabric_training/parallel/stopping.py:40)
    train (trainfabric_training/trainer.py:120)
    main (trainfabric_training/__main__.py:12)
Thread 4251 (idle): "uploads"
    wait (threading.py:331)
"""


def told(*events: dict[str, Any], **more: Any) -> list[str]:
    """The story of a run of four nodes, without its first line."""
    lines = tell(spec(4, created=BEGIN), list(events), **more)
    assert lines[0] == FIRST
    return lines[1:]


def test_a_spot_notice_is_told_from_the_notice_to_the_smaller_epoch() -> None:
    lines = told(
        epoch(1, 1, detail="4 of 4 nodes are ready"),
        event("start", 4, epoch=1, recipe="tiny_cpu", layout="data 4", ranks=8, device="cpu", engine="deepspeed"),
        event("commit", 9, epoch=1, step=10, checkpoint="s3://c", seconds=0.42, bytes=100),
        event("spot_notice", 11, node="i-0abc", detail="terminate at 19:04:10"),
        drain(1, 11.2, detail="i-0abc got a spot notice"),
        event("commit", 13, epoch=1, step=17, checkpoint="s3://c", seconds=0.4, bytes=100),
        event("stop", 13.1, epoch=1, step=17),
        ended(1, "resume", 14),
        event("node_replaced", 14.2, node="i-0abc", detail="it is taken back"),
        epoch(2, 16, nodes=2, layout="data 1 × pipeline 2 × tensor 2", detail="no replacement within 0 s"),
        event("resume", 18, epoch=2, step=17, checkpoint="s3://c"),
    )

    assert lines == [
        "19:02:01 epoch 1: 4 nodes train, data 4: 4 of 4 nodes are ready",
        "19:02:04 epoch 1: 8 ranks are loaded, on cpu",
        "19:02:09 the checkpoint of step 10 is committed in 0.4 s",
        "19:02:11 i-0abc got a spot notice: terminate at 19:04:10",
        "19:02:11 all ranks are asked to save and leave: i-0abc got a spot notice",
        "19:02:13 all ranks saved step 17 and left",
        "19:02:14 i-0abc is given back, the fleet launches another: it is taken back",
        "19:02:16 epoch 2: 2 of 4 nodes train, data 1 × pipeline 2 × tensor 2: no replacement within 0 s",
        "19:02:18 all ranks go on from the checkpoint of step 17",
    ]


@pytest.mark.parametrize(
    ("happened", "says"),
    [
        (event("node_joined", node="i-1", address="10.0.0.5", role="worker"), "i-1 is up and warm (worker, 10.0.0.5)"),
        (event("node_lost", node="i-1", detail="silent for 20 s"), "i-1 is lost: silent for 20 s"),
        (event("node_refused", node="i-1", detail="asset b, not a"), "i-1 is not taken in: asset b, not a"),
        (event("rebalance", node="i-1"), "i-1 is likelier to be taken back, says EC2"),
        (
            drain(1, at="checkpoint", detail="i-2 is there"),
            "all ranks are asked to leave at the next checkpoint: i-2 is there",
        ),
        (ended(1, "failed", detail="i-1: rank 3 was killed"), "epoch 1 failed: i-1: rank 3 was killed"),
        (ended(1, "resume"), "epoch 1 ended: its ranks saved and left"),
        (ended(1, "done"), "epoch 1 is done"),
        (
            event("rank_stalled", epoch=1, node="i-1", rank=3, detail="no beat for 60 s", stack=STACK),
            "i-1: rank 3 stopped moving: no beat for 60 s; stack: "
            "all_reduce (torch/distributed/distributed_c10d.py:2501) < "
            "agree (trainfabric_training/parallel/stopping.py:40) < train (trainfabric_training/trainer.py:120)",
        ),
        (
            event("wait", detail="3 of 4 nodes are ready", until="2026-07-01T19:07:00+00:00"),
            "too few nodes: 3 of 4 nodes are ready; waiting until 19:07:00",
        ),
        (event("wait", detail="none", until=None), "too few nodes: none; waiting for as long as it takes"),
        (event("controller", node="i-1", detail="waits"), "the controller on i-1 is in charge: waits"),
        (event("release", detail="the run is done"), "the nodes are given back: the run is done"),
        (event("done", epoch=1, step=40), "the last step, 40, is committed"),
        (event("surprise", epoch=1, size=2), "surprise: epoch 1, size 2"),
    ],
)
def test_everything_that_happens_has_a_sentence(happened: dict[str, Any], says: str) -> None:
    assert told(happened) == [f"19:02:00 {says}"]


def test_there_are_words_for_every_event_of_the_contract() -> None:
    assert set(story._SENTENCES) == set(Event)


def test_what_comes_again_and_again_is_told_once() -> None:
    commits = [event("commit", step, epoch=1, step=step, checkpoint="s3://c", seconds=1.0) for step in (5, 10, 15)]
    nodes = [event("node_joined", n / 10, node=f"i-{n}", address="10.0.0.5", role="worker") for n in range(3)]

    assert told(*nodes, *commits) == [
        "19:02:00 3 nodes are up and warm: i-0, i-1, i-2",
        "19:02:15 the checkpoints of steps 5 to 15 are committed, 3 of them",
    ]


def test_who_follows_is_told_each_thing_in_a_line_that_does_not_change_any_more() -> None:
    commits = [event("commit", 2 * n, epoch=1, step=5 * n, checkpoint="s3://c") for n in (1, 2, 3)]

    assert told(*commits, summed_up=False) == [
        "19:02:02 the checkpoint of step 5 is committed",
        "19:02:04 the checkpoint of step 10 is committed",
        "19:02:06 the checkpoint of step 15 is committed",
    ]
    assert told(*commits[:2], summed_up=False) == told(*commits, summed_up=False)[:2]


def test_the_start_the_request_to_stop_and_the_end_belong_to_the_story() -> None:
    given = spec(2, run=2, resume=True, from_step=20, spares=1, created=BEGIN)
    stop = StopRequest(detail="by trainfabric job stop", requested=BEGIN + timedelta(hours=4, minutes=59))
    outcome = Outcome(state="stopped", step=24, detail="asked by me", ended=BEGIN + timedelta(hours=5))

    assert tell(given, [epoch(3, 60, nodes=2)], stop, outcome) == [
        "2026-07-01 19:02:00 first (run 2) asks for 2 nodes and 1 spare, data 2 × pipeline 1 × tensor 2, from step 20",
        "19:03:00 epoch 3: 2 nodes train, data 4",
        "2026-07-02 00:01:00 asked to stop by trainfabric job stop",
        "00:02:00 the run has ended: stopped at step 24: asked by me",
    ]


def test_a_long_detail_is_one_line_and_cut() -> None:
    (line,) = told(ended(1, "failed", detail="Traceback\n" + "x" * 400))

    assert line == f"19:02:00 epoch 1 failed: Traceback {'x' * 289}…"


def test_the_innermost_frames_are_those_of_the_main_thread() -> None:
    assert innermost(STACK, frames=1) == ["all_reduce (torch/distributed/distributed_c10d.py:2501)"]
    assert innermost("ep_poll\nState: T (stopped)") == ["ep_poll", "State: T (stopped)"]
    assert innermost("") == []
