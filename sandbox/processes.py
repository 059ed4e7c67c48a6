"""Child processes that leave nothing behind: on the end of a `with`, on Ctrl-C or SIGTERM, and if we are killed.

Also what they get to know from our environment variables; no other file of the sandbox reads them.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from sandbox.guard import AT_ONCE, descendants
from trainfabric_plan.errors import Unreachable, mistake

GUARD = Path(__file__).with_name("guard.py")
POLL_S = 0.05
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LOG_LINES_SHOWN = 20
ENDPOINT_VARIABLE = "AWS_ENDPOINT_URL"


def free_port(host: str = "127.0.0.1") -> int:
    """A TCP port that nobody listens on now; another process may take it before it is used."""
    return free_ports(1, host)[0]


def free_ports(count: int, host: str = "127.0.0.1") -> list[int]:
    """Several different free TCP ports."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for held in sockets:
            held.bind((host, 0))
        return [held.getsockname()[1] for held in sockets]
    finally:
        for held in sockets:
            held.close()


@dataclass(frozen=True, kw_only=True)
class Child:
    """A running command in a process group of its own, under the guard (`sandbox.guard`)."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path
    cleanup: Callable[[], None] | None = None
    """Called once the command has been stopped."""

    @property
    def running(self) -> bool:
        """Whether the command has not ended yet."""
        return self.process.poll() is None

    @property
    def exit_status(self) -> int | None:
        """Exit status of the command; `None` while it runs."""
        return self.process.poll()

    def ask_to_end(self) -> None:
        """Send SIGTERM; the guard turns it to SIGKILL after the grace."""
        if self.running:
            self.process.terminate()

    def kill(self) -> None:
        """SIGKILL to every process of the command at once, and wait until all are gone."""
        if self.running:
            self.process.send_signal(AT_ONCE)
        self.process.wait()

    def below(self) -> set[int]:
        """Numbers of the command's processes, those in sessions of their own too."""
        return descendants(self.process.pid)

    def stop(self) -> None:
        """Ask to end, and wait until every process of the command is gone."""
        self.ask_to_end()
        self.process.wait()
        if self.cleanup is not None:
            self.cleanup()

    def last_lines(self) -> str:
        """The end of the command's log, for error messages."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-LOG_LINES_SHOWN:])


class Children:
    """The child processes of a `with` block; all of them are stopped when it ends.

    Start children from the main thread: the kernel tells a child about the death of the *thread* that started it.
    """

    def __init__(self) -> None:
        self._children: list[Child] = []

    def start(
        self,
        name: str,
        command: Sequence[str],
        *,
        log: Path,
        environment: Mapping[str, str] | None = None,
        directory: Path | None = None,
        grace_s: float = 5.0,
        cleanup: Callable[[], None] | None = None,
    ) -> Child:
        """Start a command; its output is appended to `log`, `environment` replaces ours if given.

        `grace_s` is the time between SIGTERM and SIGKILL when it is stopped.
        """
        log.parent.mkdir(parents=True, exist_ok=True)
        guarded = [sys.executable, "-I", "-S", str(GUARD), str(grace_s), *command]
        with log.open("ab") as output:
            process = subprocess.Popen(
                guarded,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=None if environment is None else dict(environment),
                cwd=directory,
                start_new_session=True,
            )
        child = Child(name=name, process=process, log=log, cleanup=cleanup)
        self._children.append(child)
        return child

    def stop(self, child: Child) -> None:
        """Stop one child and forget it."""
        child.stop()
        self._children.remove(child)

    def stop_all(self) -> None:
        """Stop every child, the newest first, waiting for all of them together."""
        for child in reversed(self._children):
            child.ask_to_end()
        while self._children:
            self.stop(self._children[-1])

    def __enter__(self) -> Children:
        return self

    def __exit__(self, *_: object) -> None:
        with _deaf():
            self.stop_all()


@contextmanager
def _deaf() -> Iterator[None]:
    """Let no second Ctrl-C or SIGTERM cut the cleaning up short; the guards bound how long it takes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def wait_until(
    condition: Callable[[], bool], *, timeout_s: float, what: str, child: Child | None = None, poll_s: float = POLL_S
) -> None:
    """Poll until `condition` holds.

    Raises:
        Unreachable: After `timeout_s`, or as soon as `child` has ended; the text names `what` and ends with its log.
    """
    deadline = time.monotonic() + timeout_s
    while not condition():
        if child is not None and not child.running:
            raise Unreachable(f"{what} ended with exit status {child.exit_status}; its log says:\n{child.last_lines()}")
        if time.monotonic() > deadline:
            said = f"; its log says:\n{child.last_lines()}" if child is not None else ""
            raise Unreachable(f"{what} did not answer within {timeout_s:g} s{said}")
        time.sleep(poll_s)


def exit_on_sigterm() -> None:
    """Turn SIGTERM into `SystemExit`, so that `with` blocks and `finally` run."""

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGHUP, leave)


def local_environment(**more: str) -> dict[str, str]:
    """Our environment variables without anything that points at a real AWS account, and `more`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return {**kept, **more}


def node_environment() -> dict[str, str]:
    """What a local node takes over from us: where the sandbox is, and the credentials for it.

    Raises:
        InvalidInput: If AWS_ENDPOINT_URL is not there: nothing of the sandbox may ever call a real account.
    """
    if not os.environ.get(ENDPOINT_VARIABLE):
        raise mistake(
            "sandbox",
            ENDPOINT_VARIABLE,
            "the address of the embedded AWS",
            "nothing",
            "start it with python -m sandbox up, and export what it prints",
        )
    services = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
    services.pop("AWS_EC2_METADATA_DISABLED", None)
    return services
