from __future__ import annotations

import json
from pathlib import Path

import pytest

from trainfabric_plan.errors import InvalidInput, Refused
from trainfabric_training.telemetry import Records, StepRecord


def record(step: int, loss: float = 0.1) -> StepRecord:
    return StepRecord(step=step, loss=loss, grad_norm=1.0, tokens=8, seconds=0.5, learning_rate=1e-3)


def steps(directory: Path) -> list[int]:
    return [json.loads(line)["step"] for line in (directory / "steps.jsonl").read_text().splitlines()]


def test_numbers_read_back_bit_for_bit(tmp_path: Path) -> None:
    loss = 8.332096099853516 / 3

    Records(tmp_path).step(record(1, loss))

    line = json.loads((tmp_path / "steps.jsonl").read_text())
    assert line == {
        "step": 1,
        "loss": loss,
        "grad_norm": 1.0,
        "tokens": 8,
        "seconds": 0.5,
        "learning_rate": 0.001,
    }


def test_a_resumed_run_drops_the_steps_that_its_checkpoint_does_not_know(tmp_path: Path) -> None:
    before = Records(tmp_path)
    for step in (1, 2, 3, 4):
        before.step(record(step))
    before.result("stopped", 4)
    with (tmp_path / "steps.jsonl").open("a") as file:
        file.write('{"step": 5, "lo')

    after = Records(tmp_path)
    after.begin(2)
    after.step(record(3))

    assert steps(tmp_path) == [1, 2, 3]
    assert not (tmp_path / "result.json").exists()


def test_a_new_run_refuses_the_directory_of_another(tmp_path: Path) -> None:
    Records(tmp_path).step(record(1))

    with pytest.raises(Refused) as caught:
        Records(tmp_path).begin(None)

    assert str(caught.value) == (
        f"{tmp_path}: --output must be free of other runs, got steps.jsonl; "
        "give another directory, or go on with --resume"
    )
    assert steps(tmp_path) == [1]


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(InvalidInput) as caught:
        Records(tmp_path / "file" / "output").begin(None)

    assert str(caught.value) == (
        f"{tmp_path}/file/output: --output must be a directory to write into, got Not a directory"
    )


def test_other_ranks_write_nothing(tmp_path: Path) -> None:
    records = Records(tmp_path / "output", active=False)

    records.begin(None)
    records.step(record(1))
    records.event("done")
    records.result("done", 1)

    assert list(tmp_path.iterdir()) == []
