"""One command of somebody else on one node, from its start to its end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from trainfabric_node.agent.failure import is_of_others, why_it_failed
from trainfabric_node.agent.files import EpochFiles, RankBeat, RankEnd
from trainfabric_node.command import container
from trainfabric_node.command.progress import Progress
from trainfabric_node.command.start import CommandStart
from trainfabric_node.jobs.code import unpacked
from trainfabric_node.launch.processes import children, die_with_parent
from trainfabric_node.store import open_store
from trainfabric_plan.contract import STEPS_FILE, ExitStatus
from trainfabric_plan.errors import TrainfabricError
from trainfabric_plan.own_command import ecr_repository

_LOOK_S = 0.05
_TRIES = 3
_PAUSE_S = 5.0
_SHELLS = ("sh", "bash", "dash")


def run_command(start: CommandStart, launcher: int) -> int:
    """Runs the command of an epoch in a child of this process; the exit status of the epoch on this node.

    Args:
        start: The epoch.
        launcher: Process id of the parent.
    """
    os.setsid()
    die_with_parent(launcher)
    _write_to(start.log)
    start.rank_files.mkdir(parents=True, exist_ok=True)
    voice = _Voice(start)
    voice.beat("start", 0)
    try:
        end = _Run(start, voice).end()
    except (TrainfabricError, OSError) as error:
        print(error, file=sys.stderr, flush=True)
        end = RankEnd(status="failed", detail=f"rank {start.node_rank} of the nodes: {error}")
    voice.end(end)
    return {"done": ExitStatus.DONE, "resume": ExitStatus.RESUME}.get(end.status, ExitStatus.FAILED)


class _Voice:
    """What the supervisor is told, in the files that ranks of ours write: the command counts as one rank."""

    def __init__(self, start: CommandStart) -> None:
        self._start = start
        self._said: tuple[str, int] | None = None
        self._spoken = 0.0

    def beat(self, phase: str, step: int) -> None:
        """Says that it lives; at once if there is news, else every few moments."""
        now = time.monotonic()
        if (phase, step) == self._said and now - self._spoken < self._start.beat_s:
            return
        self._said, self._spoken = (phase, step), now
        rank = self._start.node_rank
        beat = RankBeat.model_validate(
            {"rank": rank, "pid": os.getpid(), "step": step, "phase": phase, "beat": time.time()}
        )
        _replace(self._start.rank_files / f"{rank}.json", beat.model_dump_json())

    def end(self, end: RankEnd) -> None:
        """Says how it ended."""
        _replace(self._start.rank_files / f"{self._start.node_rank}.end.json", end.model_dump_json())


class _Run:
    """The process of the command."""

    def __init__(self, start: CommandStart, voice: _Voice) -> None:
        self._start = start
        self._voice = voice
        first = start.node_rank == 0
        self._progress = Progress(start.progress_file, start.directory / "output" / STEPS_FILE if first else None)
        self._has_signalled = False

    def end(self) -> RankEnd:
        """Runs it and says how it has ended."""
        process = _popen(self._start)
        while process.poll() is None:
            self._progress.look()
            self._voice.beat("train", self._progress.step)
            self._ask_to_leave(process)
            time.sleep(_LOOK_S)
        self._progress.look()
        return self._judge(process.returncode)

    def _ask_to_leave(self, process: subprocess.Popen[bytes]) -> None:
        if self._start.own.leave_by == "signal" and not self._has_signalled and self._start.stop_file.exists():
            self._has_signalled = True
            print("asked to leave: SIGTERM to the command", flush=True)
            for one in behind_shells(process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(one, signal.SIGTERM)

    def _judge(self, status: int) -> RankEnd:
        """See docs/own-training-code.md: after a request to leave, 0 is no end, and after SIGTERM no status is."""
        asked, step = self._start.stop_file.exists(), self._progress.step
        if status == ExitStatus.RESUME or self._has_signalled or (asked and status == ExitStatus.DONE):
            return RankEnd(status="resume", step=step)
        if status == ExitStatus.DONE:
            return RankEnd(status="done", step=step)
        printed = EpochFiles(directory=self._start.directory).printed()
        reason = why_it_failed(printed)
        detail = f"rank {self._start.node_rank} of the nodes: the command {_how(status)}"
        return RankEnd(
            status="failed",
            detail=f"{detail}: {reason}" if reason else detail,
            of_others=self._start.nodes > 1 and is_of_others(printed),
            step=step,
        )


def behind_shells(process: int) -> list[int]:
    """Who is to get a signal for a command: a shell dies of it and tells nobody, so what it waits for gets it."""
    below = children(process) if _name(process) in _SHELLS else []
    return [one for child in below for one in behind_shells(child)] or [process]


def _popen(start: CommandStart) -> subprocess.Popen[bytes]:
    folder = unpacked(open_store(start.bucket), start.code, start.code_directory) if start.code else None
    own = os.getpid()
    return subprocess.Popen(
        _line(start, folder),
        cwd=folder or start.directory,
        env={"HOME": str(Path.home()), **start.environment},
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=lambda: die_with_parent(own),
    )


def _line(start: CommandStart, folder: Path | None) -> list[str]:
    image = start.own.image
    if image is None:
        return ["/bin/bash", "-c", start.own.command]
    _fetch(image, start.environment)
    return container.docker_run(
        name=container.container_name(start.job, start.epoch),
        image=image,
        command=start.own.command,
        variables=start.given,
        devices=container.devices_of(),
        mounts=[start.lustre, start.directory, *([folder] if folder else [])],
        directory=folder,
    )


def _fetch(image: str, environment: dict[str, str]) -> None:
    repository = ecr_repository(image)
    if repository is not None:
        password = _must(container.ecr_password(repository.region), environment)
        _must(container.docker_login(repository.registry), environment, password)
    _must(container.docker_pull(image), environment)


def _must(line: Sequence[str], environment: dict[str, str], given: bytes = b"") -> bytes:
    """What a program prints; it is tried again before it counts as failed. Its output may be a password: not logged."""
    for turn in range(_TRIES):
        done = subprocess.run(line, input=given, env=environment, stdout=subprocess.PIPE, check=False)
        if done.returncode == 0:
            return done.stdout
        time.sleep(_PAUSE_S if turn < _TRIES - 1 else 0)
    raise OSError(f"{' '.join(line[:2])} left with status {done.returncode} {_TRIES} times, see the log")


def remove_containers() -> None:
    """Kills and removes all containers of ours on this node; nothing happens where there is no docker."""
    with contextlib.suppress(FileNotFoundError):
        listed = subprocess.run(container.docker_list(), stdout=subprocess.PIPE, check=False)
        if ids := listed.stdout.decode().split():
            subprocess.run(container.docker_remove(ids), stdout=subprocess.DEVNULL, check=False)


def _how(status: int) -> str:
    return f"was ended by {signal.Signals(-status).name}" if status < 0 else f"left with status {status}"


def _name(process: int) -> str:
    try:
        return Path(f"/proc/{process}/comm").read_text().strip()
    except OSError:
        return ""


def _write_to(log: Path) -> None:
    """Sends what this process and the command print to the epoch's log."""
    output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    os.close(output)
    os.close(nothing)


def _replace(path: Path, text: str) -> None:
    unfinished = path.with_name(f".{path.name}")
    unfinished.write_text(f"{text}\n", encoding="utf-8")
    unfinished.replace(path)
