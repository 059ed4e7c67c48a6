from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from typing import cast

import pytest
from rich.console import Console

from trainfabric_cli.following import show, statuses
from trainfabric_node.jobs import JobControl, JobState, JobStatus
from trainfabric_plan.errors import Unreachable


def status(state: JobState, step: int | None = None, lines: list[str] | None = None) -> JobStatus:
    return JobStatus(
        environment="demo",
        state=state,
        summary=str(state),
        job="first",
        step=step,
        steps=60,
        lines=lines or [],
        loss=None if step is None else 8 / step,
    )


class Answers:
    """Stands for `JobControl`: gives one answer after the other, raises those that are exceptions."""

    def __init__(self, *answers: JobStatus | Exception) -> None:
        self._answers = iter(answers)

    def status(self, job: str | None) -> JobStatus:
        answer = next(self._answers)
        if isinstance(answer, Exception):
            raise answer
        return answer


def follow(*answers: JobStatus | Exception) -> Iterator[JobStatus]:
    return statuses(cast(JobControl, Answers(*answers)), "first")


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainfabric_cli.following.sleep", lambda _: None)


def test_following_ends_with_the_job() -> None:
    running, done = status(JobState.RUNNING, 1), status(JobState.DONE, 60)

    assert list(follow(running, running, done, running)) == [running, running, done]


def test_a_network_that_is_gone_for_a_moment_does_not_end_the_following() -> None:
    gone, done = Unreachable("gone"), status(JobState.DONE, 60)

    assert list(follow(gone, gone, gone, gone, done)) == [done]


def test_a_network_that_stays_away_ends_the_following() -> None:
    with pytest.raises(Unreachable, match="gone"):
        list(follow(*[Unreachable("gone")] * 5))


def shown(*answers: JobStatus, terminal: bool) -> str:
    out = StringIO()
    show(follow(*answers), Console(file=out, force_terminal=terminal, width=100, color_system=None))
    return out.getvalue()


def test_a_terminal_shows_a_bar_with_steps_and_loss() -> None:
    text = shown(status(JobState.STARTING), status(JobState.RUNNING, 4), status(JobState.DONE, 60), terminal=True)

    last = next(line for line in reversed(text.splitlines()) if "first" in line)
    assert "first done" in last
    assert "60/60" in last
    assert "loss 0.1333" in last


def test_a_log_gets_a_line_for_each_change() -> None:
    text = shown(
        status(JobState.STARTING), status(JobState.RUNNING, 4), status(JobState.RUNNING, 4), status(JobState.DONE, 60),
        terminal=False,
    )  # fmt: skip

    assert text.splitlines() == ["starting", "running, loss 2.0000", "done, loss 0.1333"]


def test_what_happens_is_told_once_and_as_it_happens() -> None:
    first, second = "19:02:00 epoch 1", "19:02:11 i-0abc got a spot notice"

    text = shown(
        status(JobState.RUNNING, 4, [first]),
        status(JobState.DRAINING, 4, [first, second]),
        status(JobState.DONE, 60, [first, second]),
        terminal=False,
    )

    assert text.splitlines() == [
        first, "running, loss 2.0000", second, "draining, loss 2.0000", "done, loss 0.1333",
    ]  # fmt: skip


def test_a_terminal_tells_what_happens_above_the_bar() -> None:
    text = shown(status(JobState.DONE, 60, ["19:02:11 i-0abc got a [spot] notice"]), terminal=True)

    assert text.index("19:02:11 i-0abc got a [spot] notice") < text.index("60/60")
