"""What the demo says while it runs, and the seconds of each phase."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


class Narrator:
    """Announces phases on the terminal and keeps their seconds in order."""

    def __init__(self, console: Console, phases: int) -> None:
        self.console = console
        self.seconds: dict[str, float] = {}
        self._phases = phases

    @contextlib.contextmanager
    def phase(self, name: str, title: str) -> Iterator[None]:
        """Time the body under `name` and say what it does."""
        number = f"{len(self.seconds) + 1}/{self._phases}"
        self.console.print(f"[bold cyan]{number}[/] {title}", highlight=False)
        start = time.monotonic()
        with self.console.status(title):
            yield
        self.seconds[name] = time.monotonic() - start
        self.console.print(f"      [green]done[/] in {self.seconds[name]:.1f} s", highlight=False)

    def say(self, text: str) -> None:
        """One line below the phase's title."""
        self.console.print(f"      {text}", highlight=False)

    @contextlib.contextmanager
    def steps(self, total: int) -> Iterator[StepBar]:
        """A progress bar over optimizer steps; a line every few steps where there is no terminal."""
        columns = (TextColumn("      training"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[loss]}"))
        with Progress(*columns, TimeElapsedColumn(), console=self.console, transient=True) as progress:
            yield StepBar(self, progress, total)


class StepBar:
    """The bar of one run."""

    def __init__(self, narrator: Narrator, progress: Progress, total: int) -> None:
        self._narrator, self._progress, self._total = narrator, progress, total
        self._task = progress.add_task("steps", total=total, loss="starting")
        self._said = 0

    def show(self, step: int, loss: float | None) -> None:
        """Move to `step`."""
        text = "starting" if loss is None else f"loss {loss:.3f}"
        self._progress.update(self._task, completed=step, loss=text)
        if not self._narrator.console.is_terminal and step >= self._said + 10:
            self._said = step
            self._narrator.say(f"step {step} of {self._total}, {text}")
