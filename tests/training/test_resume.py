"""Stopping, resuming on the same and on other layouts, and refusing what cannot be resumed."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.training.conftest import ALL_RANKS, ONE_RANK, SMALL, Finished, Workplace
from tests.training.state import assert_equal_bits, reader_at, whole_tensors
from trainfabric_plan.layout import Layout

Trained = Callable[..., tuple[int, str]]
REMEDY = "restore the object, or resume an older commit with --from-step"


def learned(run: Finished, first: int, last: int) -> list[tuple[float, float, float]]:
    return [
        (record["loss"], record["grad_norm"], record["learning_rate"])
        for record in run.steps
        if first <= record["step"] <= last
    ]


def assert_stopped_in_order(run: Finished) -> None:
    """The first rank that left did so with the status that says it; torchrun itself knows no such thing."""
    assert run.status == 1, run.stderr
    assert re.findall(r"exitcode  : (-?\d+)", run.stderr.partition("Root Cause")[2]) == ["75"]


def test_a_stopped_run_goes_on_bit_for_bit_on_the_layout_that_saved_it(
    workplace: Workplace, uninterrupted: Finished, committed: Path, checkpoints: Path
) -> None:
    run = workplace.torchrun(
        "same-layout",
        ALL_RANKS,
        *("--checkpoints", str(checkpoints), "--from-step", "6", "--stop-after-step", "12"),
    )

    assert_stopped_in_order(run)
    assert [record["step"] for record in run.steps] == list(range(7, 13))
    assert learned(run, 7, 12) == learned(uninterrupted, 7, 12)
    assert_equal_bits(whole_tensors(checkpoints, 12), whole_tensors(committed, 12))
    ours, theirs = reader_at(checkpoints, 12).manifest, reader_at(committed, 12).manifest
    assert ours.nonce != theirs.nonce
    assert (ours.counters, ours.ranks, ours.layout) == (theirs.counters, theirs.ranks, theirs.layout)
    assert [part.sha256 for part in ours.parts] == [part.sha256 for part in theirs.parts]
    assert run.result == {"status": "stopped", "step": 12}
    assert [event["event"] for event in run.events] == ["start", "resume", "commit", "stop"]
    assert run.events[1]["step"] == 6


@pytest.mark.parametrize("layout", [Layout(pipeline=2, tensor=2), Layout(pipeline=3)], ids=["data 1", "pipeline 3"])
def test_a_run_goes_on_with_the_same_losses_on_another_layout(
    workplace: Workplace, uninterrupted: Finished, checkpoints: Path, layout: Layout
) -> None:
    name = f"layout-{layout.data}-{layout.pipeline}-{layout.tensor}"

    run = workplace.torchrun(
        name, layout, *("--checkpoints", str(checkpoints), "--from-step", "6", "--stop-after-step", "12")
    )

    assert_stopped_in_order(run)
    for (loss, norm, rate), (expected, expected_norm, expected_rate) in zip(
        learned(run, 7, 12), learned(uninterrupted, 7, 12), strict=True
    ):
        assert loss == pytest.approx(expected, abs=2e-6, rel=0)
        assert norm == pytest.approx(expected_norm, rel=1e-5)
        assert rate == expected_rate


def test_a_stop_flag_that_one_rank_sees_stops_all_with_a_checkpoint(workplace: Workplace, tmp_path: Path) -> None:
    flag, checkpoints = tmp_path / "stop", tmp_path / "checkpoints"
    flag.touch()

    run = workplace.torchrun("flag", Layout(tensor=2), *("--checkpoints", str(checkpoints), "--stop-flag", str(flag)))

    assert_stopped_in_order(run)
    assert run.result == {"status": "stopped", "step": 1}
    assert [event["event"] for event in run.events] == ["start", "commit", "stop"]
    assert reader_at(checkpoints, 1).manifest.counters.samples == SMALL.global_batch


def test_a_damaged_checkpoint_is_refused_by_all_ranks_and_said_once(workplace: Workplace, checkpoints: Path) -> None:
    part = damage(checkpoints, 20, lambda data: data[:100] + bytes([data[100] ^ 1]) + data[101:])

    run = workplace.torchrun("damaged", Layout(data=2), "--checkpoints", str(checkpoints), "--resume")

    message = f"file://{checkpoints}/: {part} must be an object whose chunk 0 has CRC32C "
    assert run.status != 0
    assert run.stderr.count(message) == 1
    assert "exitcode  : 2" in run.stderr
    assert not (run.output / "steps.jsonl").exists()


def damage(checkpoints: Path, step: int, change: Callable[[bytes], bytes | None]) -> str:
    """Changes, or removes, the first part of a checkpoint; its key."""
    part = reader_at(checkpoints, step).manifest.parts[0].key
    changed = change((checkpoints / part).read_bytes())
    (checkpoints / part).unlink()
    if changed is not None:
        (checkpoints / part).write_bytes(changed)
    return part


def test_a_truncated_checkpoint_is_refused(trained: Trained, checkpoints: Path) -> None:
    size = len((checkpoints / reader_at(checkpoints, 20).manifest.parts[0].key).read_bytes())
    part = damage(checkpoints, 20, lambda data: data[:-4])

    status, said = trained("--checkpoints", str(checkpoints), "--resume")

    assert status == 2
    assert said == f"file://{checkpoints}/: {part} must be an object of {size} bytes, got {size - 4}; {REMEDY}\n"


def test_a_checkpoint_without_one_of_its_parts_is_refused(trained: Trained, checkpoints: Path) -> None:
    part = damage(checkpoints, 20, lambda _: None)

    status, said = trained("--checkpoints", str(checkpoints), "--resume")

    assert status == 2
    assert said == f"file://{checkpoints}/: {part} must exist, got none; {REMEDY}\n"


def test_an_older_commit_can_be_resumed_when_the_newest_is_damaged(
    trained: Trained, workplace: Workplace, uninterrupted: Finished, checkpoints: Path
) -> None:
    damage(checkpoints, 20, lambda _: None)

    status, _ = trained("--checkpoints", str(checkpoints), "--from-step", "18", name="older")

    run = Finished(status=status, output=workplace.output("older"), stdout="", stderr="")
    assert run.status == 0
    assert run.result == {"status": "done", "step": 20}
    for (loss, *_), (expected, *_) in zip(learned(run, 19, 20), learned(uninterrupted, 19, 20), strict=True):
        assert loss == pytest.approx(expected, abs=2e-6, rel=0)


def test_a_run_that_resumes_nothing_is_refused(trained: Trained, tmp_path: Path) -> None:
    status, said = trained("--checkpoints", str(tmp_path / "none"), "--resume")

    assert status == 2
    assert said == (
        f"file://{tmp_path}/none/: --resume must find a committed checkpoint, got none; "
        "correct --checkpoints, or start anew without --resume\n"
    )


def test_a_new_run_does_not_write_behind_the_checkpoints_of_another(trained: Trained, checkpoints: Path) -> None:
    status, said = trained("--checkpoints", str(checkpoints))

    assert status == 2
    assert said == (
        f"file://{checkpoints}/: checkpoints must be new ones, got a commit of step 20; "
        "go on with --resume, or give --checkpoints of a new job\n"
    )


def test_a_new_run_does_not_append_to_the_steps_of_another(
    trained: Trained, workplace: Workplace, uninterrupted: Finished
) -> None:
    status, said = trained(name="uninterrupted")

    assert status == 2
    assert said == (
        f"{uninterrupted.output}: --output must be free of other runs, got steps.jsonl; "
        "give another directory, or go on with --resume\n"
    )


def test_a_checkpoint_is_not_resumed_with_a_recipe_that_learns_otherwise(
    trained: Trained, workplace: Workplace, checkpoints: Path
) -> None:
    other = workplace.recipe(SMALL.model_copy(update={"learning_rate": 0.5}))

    status, said = trained("--checkpoints", str(checkpoints), "--resume", "--recipe", str(other))

    assert status == 2
    assert said == (
        f"file://{checkpoints}/: recipe must be the one of the checkpoint at step 20, got learning_rate: 0.003 → 0.5; "
        "resume with the recipe that wrote it, or give --checkpoints of a new job\n"
    )


def test_a_finished_run_that_is_resumed_is_done_at_once(
    trained: Trained, workplace: Workplace, checkpoints: Path
) -> None:
    status, said = trained("--checkpoints", str(checkpoints), "--resume", name="finished", layout=ONE_RANK)

    run = Finished(status=status, output=workplace.output("finished"), stdout="", stderr=said)
    assert (run.status, said) == (0, "")
    assert run.result == {"status": "done", "step": 20}
    assert [event["event"] for event in run.events] == ["start", "resume", "done"]
