"""What an interruption cost is computed from the steps, whatever the events claim."""

from __future__ import annotations

from typing import Any

from sandbox.demo.interruptions import changes, steps_trained_twice


def _step(epoch: int, step: int, second: float) -> dict[str, Any]:
    return {"epoch": epoch, "step": step, "time": f"2026-11-30T10:00:{second:06.3f}+00:00"}


def _epoch(number: int, ranks: int, detail: str) -> dict[str, Any]:
    return {"event": "epoch", "epoch": number, "ranks": ranks, "detail": detail}


def test_steps_that_an_epoch_trains_again_are_lost_and_the_pause_lasts_until_the_first_new_one() -> None:
    steps = [_step(1, 1, 1), _step(1, 2, 2), _step(1, 3, 3), _step(4, 2, 7), _step(4, 3, 8), _step(4, 4, 9.5)]
    events = [_epoch(1, 8, "all there"), _epoch(4, 4, "i-1 is lost")]

    (change,) = changes(steps, events)

    assert (change.epoch, change.after_step, change.steps_lost, change.ranks) == (1, 3, 2, (8, 4))
    assert (change.seconds, change.why, change.planned) == (6.5, "i-1 is lost", False)
    assert steps_trained_twice(steps) == 2


def test_a_node_taken_in_at_a_checkpoint_is_planned() -> None:
    steps = [_step(1, 1, 1), _step(2, 2, 4)]
    drain = {"event": "drain", "epoch": 1, "at": "checkpoint", "detail": "i-2 has come"}

    (change,) = changes(steps, [_epoch(1, 4, "start"), drain, _epoch(2, 8, "i-2 has come")])

    assert (change.planned, change.steps_lost, change.seconds) == (True, 0, 3.0)
    assert steps_trained_twice(steps) == 0


def test_a_run_in_one_epoch_has_no_change() -> None:
    assert changes([_step(1, 1, 1), _step(1, 2, 2)], [_epoch(1, 8, "start")]) == []
