from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from trainfabric_plan.errors import InvalidInput, Refused
from trainfabric_training.telemetry import Progress, Records, StepRecord


def record(step: int, loss: float = 0.1) -> StepRecord:
    return StepRecord(step=step, loss=loss, grad_norm=1.0, tokens=8, seconds=0.5, learning_rate=1e-3)


def steps(directory: Path) -> list[int]:
    return [json.loads(line)["step"] for line in (directory / "steps.jsonl").read_text().splitlines()]


def test_numbers_read_back_bit_for_bit(tmp_path: Path) -> None:
    loss = 8.332096099853516 / 3

    Records(tmp_path).step(record(1, loss))

    line = json.loads((tmp_path / "steps.jsonl").read_text())
    assert abs(datetime.now(UTC) - datetime.fromisoformat(line.pop("time"))) < timedelta(minutes=1)
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


def test_an_epoch_begins_with_empty_files_whatever_was_there(tmp_path: Path) -> None:
    before = Records(tmp_path)
    before.step(record(1))
    before.event("start")
    before.result("stopped", 1)

    after = Records(tmp_path)
    after.begin_epoch()

    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"steps.jsonl": "", "events.jsonl": ""}
    with pytest.raises(InvalidInput) as caught:
        Records(tmp_path / "steps.jsonl").begin_epoch()
    assert str(caught.value) == f"{tmp_path}/steps.jsonl: --output must be a directory to write into, got File exists"


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
    records.begin_epoch()
    records.step(record(1))
    records.event("done")
    records.result("done", 1)

    assert list(tmp_path.iterdir()) == []


def test_progress_is_printed_as_one_line_per_step_and_event(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = Records(tmp_path, progress=Progress(40))

    records.event("start", recipe="tiny_cpu", ranks=8, device="cpu", engine="deepspeed", layout={"data": 2})
    records.event("resume", step=11, checkpoint="s3://bucket/steps/11/")
    records.step(record(12, 6.78125))
    records.event("commit", step=12, checkpoint="s3://bucket/steps/12/", seconds=0.456)
    records.event("stop", step=12)
    records.event("done", step=40)

    assert capsys.readouterr().out.splitlines() == [
        "trainer: start of tiny_cpu: 8 ranks on cpu, deepspeed",
        "trainer: resume after step 11 from s3://bucket/steps/11/",
        "trainer: step 12 of 40  loss 6.7812  grad norm 1  0.50 s",
        "trainer: commit of step 12 in 0.46 s: s3://bucket/steps/12/",
        "trainer: stop after step 12",
        "trainer: done after step 40",
    ]


def test_other_ranks_print_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = Records(tmp_path, active=False, progress=Progress(40))

    records.step(record(1))
    records.event("done", step=1)

    assert capsys.readouterr().out == ""
