"""Runs one command so that nothing of it outlives whoever asked; run by path, with the standard library alone.

`python -I -S guard.py GRACE_SECONDS COMMAND…`: the guard gets SIGTERM when its parent dies (PR_SET_PDEATHSIG), and
orphans of the command become its children (PR_SET_CHILD_SUBREAPER), even those in sessions of their own. On SIGTERM
or SIGINT it sends SIGTERM to the command and, once the command has ended or the grace is over, SIGKILL to every
process below the guard; on SIGUSR1 it does so at once. If the guard itself is killed, so is the command. Leaves with
the command's exit status, or 128 + signal.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
ENDING = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
AT_ONCE = signal.SIGUSR1
POLL_S = 0.5


def descendants(pid: int) -> set[int]:
    """Every process below `pid`, zombies too, read from /proc."""
    children: dict[int, list[int]] = {}
    for child, parent in _parents():
        children.setdefault(parent, []).append(child)
    found: set[int] = set()
    pending = [pid]
    while pending:
        below = [child for child in children.get(pending.pop(), []) if child not in found]
        found.update(below)
        pending.extend(below)
    return found


def _parents() -> Iterator[tuple[int, int]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # gone meanwhile
                continue
            yield int(entry.name), int(fields[1])


def _tie_to_parent(number: signal.Signals) -> None:
    parent = os.getppid()
    LIBC.prctl(PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:  # it died before the kernel was told
        os.kill(os.getpid(), number)


def _kill_all_below() -> None:
    while below := descendants(os.getpid()):
        for pid in below:
            _signal(pid, signal.SIGKILL)
        _reap()
        time.sleep(POLL_S / 50)


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _wait(command: subprocess.Popen[bytes], grace_s: float) -> int:
    deadline = float("inf")
    while command.poll() is None and time.monotonic() < deadline:
        heard = signal.sigtimedwait({*ENDING, AT_ONCE, signal.SIGCHLD}, POLL_S)
        if heard and heard.si_signo == AT_ONCE:
            break
        if heard and heard.si_signo in ENDING and deadline == float("inf"):
            command.terminate()
            deadline = time.monotonic() + grace_s
    command.kill()
    return command.wait()


def main(arguments: list[str]) -> int:
    """Run the command of `arguments` (grace in seconds, then the command) and see to its end."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*ENDING, AT_ONCE, signal.SIGCHLD})
    _tie_to_parent(signal.SIGTERM)
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1)
    grace_s, *command = arguments

    def begin() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        _tie_to_parent(signal.SIGKILL)

    child = subprocess.Popen(command, preexec_fn=begin)
    try:
        status = _wait(child, float(grace_s))
    finally:
        _kill_all_below()
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
