"""That nothing outlives its parent, and that nothing of an epoch is left when it is over (Linux, prctl(2))."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections import defaultdict
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PAUSE_S = 0.005

_LIBC = ctypes.CDLL(None, use_errno=True)


def die_with_parent(parent: int) -> None:
    """Lets the kernel kill this process when the thread that forked it ends.

    Args:
        parent: Process id of the parent, to notice that it ended before the kernel could be asked.
    """
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def adopt_orphans() -> None:
    """Makes descendants whose parent ends children of this process, so that none is lost and none stays a zombie."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def kill_descendants() -> None:
    """Kills every descendant of this process, which adopts orphans, and returns when none is left, not even a zombie.

    Descendants are looked for anew until there is no child: one that forked meanwhile is found in the next round.
    """
    while True:
        for process in descendants(os.getpid()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        if not _reap():
            return
        time.sleep(_PAUSE_S)


def descendants(process: int) -> list[int]:
    """Process ids of all that a process has started, directly or not, and that are its descendants still."""
    children = defaultdict(list)
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal() and (parent := _parent(folder)) is not None:
            children[parent].append(int(folder.name))
    found = [process]
    for one in found:
        found += children[one]
    return found[1:]


def children(process: int) -> list[int]:
    """Process ids of what a process has started itself."""
    return [
        int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdecimal() and _parent(folder) == process
    ]


def reaped() -> dict[int, int]:
    """Children that have ended since the last call, with their exit statuses; negative if a signal ended them."""
    ended: dict[int, int] = {}
    with contextlib.suppress(ChildProcessError):
        while True:
            process, status = os.waitpid(-1, os.WNOHANG)
            if not process:
                break
            ended[process] = os.waitstatus_to_exitcode(status)
    return ended


def _reap() -> bool:
    """Takes the children that have ended; whether there are others."""
    reaped()
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _parent(folder: Path) -> int | None:
    """Of the process of this folder below `/proc`; `None` if it has ended meanwhile."""
    try:
        stat = (folder / "stat").read_text()
    except OSError:
        return None
    return int(stat.rpartition(")")[2].split()[1])  # the name before it, in parentheses, may hold anything


def _prctl(option: int, value: int) -> None:
    if _LIBC.prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
