"""The whole trainer over eight real processes, held against one process of plain PyTorch."""

from __future__ import annotations

import math

import pytest

from tests.training.conftest import SMALL, Finished, Workplace
from tests.training.state import reader_at

LARGEST_LOSS_DIFFERENCE = 2e-6
LARGEST_NORM_DIFFERENCE = 1e-5


def test_eight_ranks_train_as_one_process_does(uninterrupted: Finished, reference: Finished) -> None:
    assert uninterrupted.status == 0, uninterrupted.stderr

    for ours, theirs in zip(uninterrupted.steps, reference.steps, strict=True):
        assert ours["step"] == theirs["step"]
        assert ours["loss"] == pytest.approx(theirs["loss"], abs=LARGEST_LOSS_DIFFERENCE, rel=0)
        assert ours["grad_norm"] == pytest.approx(theirs["grad_norm"], rel=LARGEST_NORM_DIFFERENCE)
        assert ours["learning_rate"] == theirs["learning_rate"]


def test_the_model_learns(uninterrupted: Finished) -> None:
    losses = [record["loss"] for record in uninterrupted.steps]

    assert losses[0] == pytest.approx(math.log(SMALL.model.vocabulary), abs=0.3)
    assert losses[-1] < losses[0] - 0.5


def test_a_run_records_its_steps_events_and_result(uninterrupted: Finished, workplace: Workplace) -> None:
    tokens = SMALL.global_batch * SMALL.model.sequence_length

    assert [record["step"] for record in uninterrupted.steps] == list(range(1, SMALL.steps + 1))
    assert {record["tokens"] for record in uninterrupted.steps} == {tokens}
    assert all(record["seconds"] > 0 for record in uninterrupted.steps)
    assert [(event["event"], event.get("step")) for event in uninterrupted.events] == [
        ("start", None),
        ("commit", 6),
        ("commit", 12),
        ("commit", 18),
        ("commit", 20),
        ("done", 20),
    ]
    assert uninterrupted.events[0]["layout"] == {"data": 2, "pipeline": 2, "tensor": 2}
    where = workplace.output("uninterrupted-checkpoints")
    assert uninterrupted.events[1]["checkpoint"].startswith(f"file://{where}/steps/00000006-")
    parts = reader_at(where, 6).manifest.parts
    assert uninterrupted.events[1]["bytes"] == sum(part.size for part in parts)
    assert uninterrupted.result == {"status": "done", "step": 20}


def test_a_run_says_how_far_it_is_and_nothing_else_when_all_is_well(uninterrupted: Finished) -> None:
    said = uninterrupted.stdout.splitlines()
    assert said[0] == "trainer: start of small: 8 ranks on cpu, deepspeed"
    assert said[-1] == "trainer: done after step 20"
    assert len(said) == 20 + len(uninterrupted.events)
    assert all(line.startswith("trainer: ") for line in said)
    assert uninterrupted.stderr == ""
