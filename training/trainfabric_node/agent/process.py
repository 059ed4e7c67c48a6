"""The trainer's processes on one node."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from trainfabric_plan.contract import NodeVariable

_PR_SET_PDEATHSIG = 1
_SECONDS_TO_DIE = 10.0


def die_with_parent(parent: int) -> Callable[[], None]:
    """What a child does first, so that the kernel kills it when the thread that started it ends.

    Args:
        parent: Process id of the parent, to notice that it ended before the child could ask.
    """
    libc = ctypes.CDLL(None, use_errno=True)  # loaded here: nothing may be loaded between fork and exec

    def ask_the_kernel() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    return ask_the_kernel


def marked(mark: str) -> list[int]:
    """Process ids whose environment carries a mark; those that end meanwhile are left out."""
    wanted = f"{NodeVariable.TRAINER_MARK}={mark}".encode()
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with contextlib.suppress(OSError):
                if wanted in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
    return found


class TrainerProcess:
    """A running command with its output in a file; leaving the `with` block kills it and all that it started.

    Start it from the main thread: the kernel ends the command when the thread that started it ends. Its descendants
    are found by a mark in their environment, because torchrun starts every rank in a session of its own, where a
    signal to torchrun's group does not come.
    """

    def __init__(self, command: Sequence[str], variables: Mapping[str, str], directory: Path, log: Path) -> None:
        self.log = log
        self._mark = uuid.uuid4().hex
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                list(command),
                cwd=directory,
                env={**variables, NodeVariable.TRAINER_MARK: self._mark},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=die_with_parent(os.getpid()),
            )

    def __enter__(self) -> TrainerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def status(self) -> int | None:
        """Exit status, `None` while it runs, negative if a signal ended it."""
        return self._process.poll()

    @property
    def has_children(self) -> bool:
        """Whether the command has started others: torchrun starts the ranks when all nodes have met."""
        return len(marked(self._mark)) > 1

    def terminate(self) -> None:
        """Asks the command to end at once; torchrun passes it on to its ranks."""
        if self._process.poll() is None:
            self._process.terminate()

    def kill(self) -> None:
        """Kills what is left of the command and of all that it started, and returns when nothing is."""
        deadline = time.monotonic() + _SECONDS_TO_DIE
        while self._process.poll() is None or marked(self._mark):
            for process in marked(self._mark):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            if time.monotonic() > deadline:
                raise RuntimeError(f"processes {marked(self._mark)} must be gone {_SECONDS_TO_DIE:g} s after SIGKILL")
            time.sleep(0.02)

    def output(self, limit: int = 256 * 1024) -> str:
        """What it has printed, or the end of that."""
        with self.log.open("rb") as file:
            file.seek(max(0, self.log.stat().st_size - limit))
            return file.read().decode(errors="replace")
