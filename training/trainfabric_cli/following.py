"""Following a job until it has ended."""

from __future__ import annotations

from collections.abc import Iterator
from time import sleep
from typing import TYPE_CHECKING

from trainfabric_plan.errors import Unreachable

if TYPE_CHECKING:
    from rich.console import Console

    from trainfabric_node.jobs import JobControl, JobStatus

POLL_S = 2.0
_PATIENCE = 5
"""Polls in a row that may fail before following ends: a job outlives a network that is gone for some seconds."""


def statuses(control: JobControl, job: str | None) -> Iterator[JobStatus]:
    """The job's status again and again; the last one has ended.

    Raises:
        Unreachable: If AWS does not answer several times in a row.
    """
    failed = 0
    while True:
        try:
            status = control.status(job)
        except Unreachable:
            failed += 1
            if failed >= _PATIENCE:
                raise
        else:
            failed = 0
            yield status
            if status.state.ended:
                return
        sleep(POLL_S)


def show(found: Iterator[JobStatus], out: Console) -> JobStatus:
    """Show a job until it has ended and return its last status: a bar on a terminal, else a line for each change.

    What happens to it is told line by line, above the bar.
    """
    return _bar(found, out) if out.is_terminal else _lines(found, out)


def last(found: Iterator[JobStatus]) -> JobStatus:
    """Wait until a job has ended and return its last status."""
    *_, status = found
    return status


def _lines(found: Iterator[JobStatus], out: Console) -> JobStatus:
    said, news = "", _News()
    for status in found:
        for line in news.of(status):
            out.print(line, soft_wrap=True, markup=False, highlight=False)
        text = status.summary + loss_text(status)
        if text != said:
            out.print(text)
            said = text
    return status


def _bar(found: Iterator[JobStatus], out: Console) -> JobStatus:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.fields[job]} {task.fields[state]}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[loss]}", markup=False),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=out) as progress:
        task, news = progress.add_task("", total=None, job="", state="", loss=""), _News()
        for status in found:
            for line in news.of(status):
                progress.console.print(line, soft_wrap=True, markup=False, highlight=False)
            progress.update(
                task,
                total=status.steps,
                completed=status.step or 0,
                job=status.job or status.environment,
                state=str(status.state),
                loss=loss_text(status).lstrip(", "),
            )
    return status


class _News:
    """What of a job's story has not been told yet."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def of(self, status: JobStatus) -> list[str]:
        lines = [line for line in status.lines if line not in self._told]
        self._told.update(lines)
        return lines


def loss_text(status: JobStatus) -> str:
    """`, loss 1.2345`, or nothing before the first step."""
    return "" if status.loss is None else f", loss {status.loss:.4f}"
