"""What each rank says to the supervisor of its node: beats while it lives, and one last word.

<rank>.json        rank, pid, step, phase, beat; written anew at every change and every few seconds
<rank>.end.json    status, detail, of_others, hopeless, step; the last thing that the rank writes
"""

from __future__ import annotations

import json
import os
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Self

Phase = Literal["start", "restore", "train", "save", "done"]


@dataclass(frozen=True, kw_only=True)
class End:
    """How a rank ended.

    Attributes:
        status: done; resume: left in order, to go on; failed.
        detail: Why it failed.
        of_others: Whether it failed because other ranks did.
        hopeless: Whether trying again cannot help.
        step: The last step that it finished, 0 if none.
    """

    status: Literal["done", "resume", "failed"]
    detail: str = ""
    of_others: bool = False
    hopeless: bool = False
    step: int = 0


class RankFiles:
    """Beats of one rank from a thread of their own, so that a rank that computes or waits for others is heard.

    Without a directory, nothing is written.
    """

    def __init__(self, directory: Path | None, rank: int, beat_s: float) -> None:
        self._directory = directory
        self._rank = rank
        self._beat_s = beat_s
        self._phase: Phase = "start"
        self._step = 0
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if self._directory is not None:
            self._directory.mkdir(parents=True, exist_ok=True)
            self._beat()
            self._thread = threading.Thread(target=self._beat_on, name="beats", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._thread is not None:
            self._stop.set()
            self._thread.join()

    @property
    def last_step(self) -> int:
        """The last step that the rank has finished, 0 if none."""
        return self._step

    def phase(self, phase: Phase) -> None:
        """Says what the rank does from here on."""
        self._phase = phase
        self._beat()

    def step(self, step: int) -> None:
        """Says that a step is finished."""
        self._step = step
        self._beat()

    def end(self, end: End) -> None:
        """Says how the rank ends."""
        if self._directory is not None:
            write_end(self._directory, self._rank, end)

    def _beat_on(self) -> None:
        while not self._stop.wait(self._beat_s):
            self._beat()

    def _beat(self) -> None:
        if self._directory is None:
            return
        with self._lock:
            beat = {"rank": self._rank, "pid": os.getpid(), "step": self._step, "phase": self._phase}
            _replace(self._directory / f"{self._rank}.json", {**beat, "beat": time.time()})


def write_end(directory: Path, rank: int, end: End) -> None:
    """Writes how a rank ended."""
    _replace(_end_path(directory, rank), asdict(end))


def end_of(directory: Path, rank: int) -> End | None:
    """How a rank said that it ended; `None` if it has not."""
    try:
        return End(**json.loads(_end_path(directory, rank).read_bytes()))
    except FileNotFoundError:
        return None


def _end_path(directory: Path, rank: int) -> Path:
    return directory / f"{rank}.end.json"


def _replace(path: Path, content: dict[str, Any]) -> None:
    """Writes a file that nobody sees half."""
    unfinished = path.with_name(f".{path.name}")
    unfinished.write_text(json.dumps(content) + "\n", encoding="utf-8")
    unfinished.replace(path)
