"""Steps, events and the result as files in the output directory; rank 0 writes, the others do not."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from trainfabric_plan.contract import EVENTS_FILE, RESULT_FILE, STEPS_FILE
from trainfabric_plan.errors import InvalidInput, Refused, mistake
from trainfabric_training.telemetry.progress import Progress


@dataclass(frozen=True, kw_only=True)
class StepRecord:
    """One optimizer step.

    Attributes:
        step: From 1 on.
        loss: Mean cross entropy over the global batch, before the step.
        grad_norm: Global gradient norm before clipping.
        tokens: Tokens of the global batch.
        seconds: Wall-clock time of the step.
        learning_rate: The rate that the step took.
    """

    step: int
    loss: float
    grad_norm: float
    tokens: int
    seconds: float
    learning_rate: float


class Records:
    """The files of one output directory, written by one rank. Numbers read back bit for bit."""

    def __init__(self, directory: Path, *, active: bool = True, progress: Progress | None = None) -> None:
        self._directory = directory
        self._active = active
        self._progress = progress if active else None
        self._unsaved: list[str] | None = None

    def begin(self, after_step: int | None) -> None:
        """Makes the directory ready for a run that goes on after this step, or that starts anew if `None`.

        Steps behind it, which the checkpoint does not know, are cut off, and the result of an earlier run is removed.

        Raises:
            Refused: If a run that starts anew would append to another's steps.
            InvalidInput: If the directory cannot be written.
        """
        if not self._active:
            return
        steps = self._directory / STEPS_FILE
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            (self._directory / RESULT_FILE).unlink(missing_ok=True)
            if steps.exists():
                self._keep_steps(steps, after_step)
        except OSError as error:
            raise self._unwritable(error) from error

    def begin_epoch(self) -> None:
        """Makes the directory ready for one epoch of several: whatever its files held, they begin empty.

        Raises:
            InvalidInput: If the directory cannot be written.
        """
        if not self._active:
            return
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            (self._directory / RESULT_FILE).unlink(missing_ok=True)
            for name in (STEPS_FILE, EVENTS_FILE):
                (self._directory / name).write_bytes(b"")
        except OSError as error:
            raise self._unwritable(error) from error

    def step(self, record: StepRecord) -> None:
        """Appends a step with the time at its end, and prints it if there is to be progress."""
        line = json.dumps({**asdict(record), "time": _now()}) + "\n"
        self._append(STEPS_FILE, line)
        if self._unsaved is not None:
            self._unsaved.append(line)
        if self._progress:
            self._progress.step(record)

    def take_unsaved(self) -> bytes:
        """Lines of the steps since the last call, for a checkpoint to keep; the first call only begins to collect."""
        lines, self._unsaved = self._unsaved or [], []
        return "".join(lines).encode()

    def event(self, event: str, **details: Any) -> None:
        """Appends an event with the time, and prints it if there is to be progress."""
        self._append(EVENTS_FILE, json.dumps({"event": event, "time": _now(), **details}) + "\n")
        if self._progress:
            self._progress.event(event, details)

    def result(self, status: str, step: int) -> None:
        """Writes how the run ended."""
        if not self._active:
            return
        target = self._directory / RESULT_FILE
        unfinished = target.with_name(f".{target.name}")
        unfinished.write_text(json.dumps({"status": status, "step": step}) + "\n", encoding="utf-8")
        unfinished.replace(target)

    def _unwritable(self, error: OSError) -> InvalidInput:
        return mistake(str(self._directory), "--output", "a directory to write into", error.strerror)

    def _append(self, name: str, line: str) -> None:
        if not self._active:
            return
        with (self._directory / name).open("a", encoding="utf-8") as file:
            file.write(line)

    def _keep_steps(self, steps: Path, after_step: int | None) -> None:
        if after_step is None:
            remedy = "give another directory, or go on with --resume"
            raise Refused(f"{self._directory}: --output must be free of other runs, got {STEPS_FILE}; {remedy}")
        lines = steps.read_text(encoding="utf-8").splitlines()
        kept = [line for line in lines if _step_of(line) <= after_step]
        unfinished = steps.with_name(f".{steps.name}")
        unfinished.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")
        unfinished.replace(steps)


def _now() -> str:
    return datetime.now(UTC).isoformat()


def _step_of(line: str) -> float:
    """The step of a line, infinity for one that was cut off while it was written."""
    try:
        return int(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return float("inf")
