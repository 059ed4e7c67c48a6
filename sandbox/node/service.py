"""A unit that runs: its process, what is left of it, and when it starts again, as systemd would have it.

A service's control group is here whatever carries its INVOCATION_ID in its environment: orphans and those in sessions
of their own are among them.
"""

from __future__ import annotations

import os
import resource
import secrets
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from sandbox.guard import LIBC, PR_SET_PDEATHSIG, descendants
from sandbox.node.units import INFINITE, Unit, read_environment_file

STARTED, ENDED, STOPPED = "started", "ended", "stopped"
EXIT_EXEC = 203
"""What systemd reports when a command cannot be executed."""
JOURNAL = "var/log/journal"
_LIMITS = {"MEMLOCK": resource.RLIMIT_MEMLOCK, "NOFILE": resource.RLIMIT_NOFILE}


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What services have in common: the directory that stands for `/`, and the manager's environment."""

    root: Path
    environment: Mapping[str, str]


class Service:
    """One unit from its first start on; `tick` and `has_ended` move it on.

    States: inactive, active (a oneshot: activating), stopping, waiting (for its restart), failed.
    """

    def __init__(self, unit: Unit, surroundings: Surroundings) -> None:
        self.unit = unit
        self.state = "inactive"
        self.pid: int | None = None
        self.starts = 0
        self._surroundings = surroundings
        self._invocation = ""
        self._wanted = False
        self._status = 0
        self._deadline = INFINITE
        self._recent: list[float] = []
        self._then: list[Callable[[str], None]] = []

    @property
    def is_active(self) -> bool:
        """Whether `systemctl is-active` says yes."""
        return self.state == "active"

    @property
    def has_ended_for_good(self) -> bool:
        """Whether nothing of it runs and nothing will without being asked."""
        return self.state in ("inactive", "failed")

    @property
    def due(self) -> float:
        """When to call `tick` next, on the monotonic clock."""
        return time.monotonic() + 0.02 if self.state == "stopping" else self._deadline

    def start(self, then: Callable[[str], None]) -> None:
        """Start; `then` gets an error text, empty if all is well, once the command runs (a oneshot: has ended)."""
        if self.is_active:
            then("")
            return
        self._wanted = True
        self._recent = []
        self._then.append(then)
        if self.state != "stopping":
            self._spawn()

    def stop(self, then: Callable[[str], None]) -> None:
        """End it as KillMode says; `then` is called with an empty text once nothing of it is left."""
        self._wanted = False
        if self.state in ("active", "activating"):
            self._then.append(then)
            self._begin_to_stop(self.pid is not None)
            return
        if self.state == "stopping":
            self._then.append(then)
            return
        self.state, self._deadline = "inactive", INFINITE
        then("")

    def restart(self, then: Callable[[str], None]) -> None:
        """Stop, then start."""
        self.stop(lambda _: self.start(then))

    def has_ended(self, status: int) -> None:
        """Its main process is gone, with an exit status or minus the signal."""
        self.pid = None
        self._status = status
        if self.state == "activating" and status == 0 and self.unit.remains:
            self.state = "active"
            self._tell("")
        elif self.state != "stopping":
            self._begin_to_stop(asked=False)
        elif self.unit.kill_mode == "mixed":
            self._kill_group(signal.SIGKILL)

    def tick(self) -> None:
        """Go on with what time brings: a stop that takes too long, what is left after it, a restart."""
        now = time.monotonic()
        if self.state == "stopping":
            if now >= self._deadline:
                self._kill_group(signal.SIGKILL)
            if self.pid is None and (self.unit.kill_mode == "process" or not self._group()):
                self._is_over()
        elif self.state == "waiting" and now >= self._deadline:
            self._spawn()

    def _begin_to_stop(self, asked: bool) -> None:
        self.state, self._deadline = "stopping", time.monotonic() + self.unit.stop_s
        if asked and self.unit.kill_mode in ("mixed", "process"):
            self._signal(self.pid, signal.SIGTERM)
        elif self.unit.kill_mode == "mixed":
            self._kill_group(signal.SIGKILL)
        elif self.unit.kill_mode == "control-group":
            self._kill_group(signal.SIGTERM)

    def _is_over(self) -> None:
        self._deadline = INFINITE
        restarts = self.unit.restart == "always" or (self.unit.restart == "on-failure" and self._status != 0)
        oneshot_failed = self.unit.kind == "oneshot" and self._status != 0
        if self._wanted and self._recent and restarts:
            self.state, self._deadline = "waiting", time.monotonic() + self.unit.restart_s
        elif self._wanted and not self._recent:  # a start was asked for while it stopped
            self._spawn()
            return
        else:
            self.state = "failed" if self._wanted and (oneshot_failed or self._status != 0) else "inactive"
        self._tell(f"Job for {self.unit.name} failed with status {self._status}." if oneshot_failed else "")

    def _spawn(self) -> None:
        now = time.monotonic()
        within = [moment for moment in self._recent if now - moment < self.unit.start_interval_s]
        if self.unit.start_interval_s > 0 and len(within) >= self.unit.start_burst:
            self.state, self._deadline = "failed", INFINITE
            self._tell(f"{self.unit.name}: Start request repeated too quickly.")
            return
        self._recent = [*within, now]
        self.starts += 1
        try:
            self.pid = self._execute()
        except OSError as error:
            self._status, self.pid = EXIT_EXEC, None
            self._begin_to_stop(asked=False)
            self._tell(f"Job for {self.unit.name} failed: {error}")
            return
        self._deadline = INFINITE
        self.state = "activating" if self.unit.kind == "oneshot" else "active"
        if self.is_active:
            self._tell("")

    def _execute(self) -> int:
        root = self._surroundings.root
        log = root / JOURNAL / f"{self.unit.name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        self._invocation = secrets.token_hex(16)
        program, *arguments = self.unit.command
        with log.open("ab") as output:
            process = subprocess.Popen(
                [f"{root}{program}", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self._environment(),
                cwd=root,
                start_new_session=True,
                preexec_fn=self._prepare,
            )
        process.returncode = 0  # the init reaps all processes itself; this keeps subprocess from doing it
        return process.pid

    def _environment(self) -> dict[str, str]:
        root = self._surroundings.root
        variables = {**self._surroundings.environment, **self.unit.environment}
        for path in self.unit.environment_files:
            file = root / path.lstrip("-").lstrip("/")
            if file.exists() or not path.startswith("-"):
                variables.update(read_environment_file(file))
        return {**variables, "INVOCATION_ID": self._invocation}

    def _prepare(self) -> None:
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        for name, value in self.unit.limits.items():
            _set_limit(_LIMITS[name], resource.RLIM_INFINITY if value == INFINITE else int(value))

    def _group(self) -> set[int]:
        mark = f"INVOCATION_ID={self._invocation}".encode()
        return {pid for pid in descendants(os.getpid()) if mark in _environment_of(pid)}

    def _kill_group(self, number: signal.Signals) -> None:
        for pid in self._group():
            self._signal(pid, number)

    @staticmethod
    def _signal(pid: int | None, number: signal.Signals) -> None:
        if pid is not None:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                return

    def _tell(self, problem: str) -> None:
        waiting, self._then = self._then, []
        for then in waiting:
            then(problem)


def _environment_of(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:  # gone meanwhile, or a zombie
        return []


def _set_limit(which: int, value: int) -> None:
    """Only root may raise a limit; what another user may not stays as it is."""
    hard = resource.getrlimit(which)[1]
    try:
        resource.setrlimit(which, (value, value))
    except (OSError, ValueError):
        resource.setrlimit(which, (hard, hard))
