"""Uploads of what a run writes on this node, from a thread of their own."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from trainfabric_node.agent.files import EpochFiles, RunFiles
from trainfabric_node.agent.host import attempt
from trainfabric_node.jobs.run_records import RunRecords, log_file
from trainfabric_plan.contract import EVENTS_FILE, RESULT_FILE, STEPS_FILE

LOG_BYTES = 4 * 1024 * 1024
"""Only the end of a longer log is uploaded."""

_SHARE_OF_TIME = 0.05
_RETRY_S = 0.5


@dataclass(frozen=True)
class _Version:
    size: int
    modified_ns: int


class Publisher:
    """Uploads files of one epoch that have changed: the log, and of the node with rank 0 telemetry and result."""

    def __init__(self, records: RunRecords, number: int, files: EpochFiles, instance_id: str) -> None:
        self._records = records
        self._number = number
        self._published: dict[str, _Version] = {}
        self._sources = {
            log_file(instance_id): files.log,
            STEPS_FILE: files.output / STEPS_FILE,
            EVENTS_FILE: files.output / EVENTS_FILE,
            RESULT_FILE: files.output / RESULT_FILE,
        }

    def publish(self) -> None:
        """Uploads what has changed; the result goes last, so that whoever sees it sees the rest."""
        for name, path in self._sources.items():
            version = _version(path)
            if version and version != self._published.get(name):
                self._records.publish(self._number, name, _tail(path))
                self._published[name] = version


class Uploads:
    """Uploads what the epochs of a run write, at intervals and at the end of each.

    Files grow and are uploaded whole, so the pause between two uploads grows with what they take: at most a twentieth
    of the time is spent on them.

    Args:
        records: Where to.
        files: The run's; what an earlier supervisor of this node has left of it is uploaded as well.
        instance_id: Of this node.
        pause_s: Between two uploads, at least.
        ring: Called when everything is uploaded that `finish` asked for.
        clock: Seconds, monotonic.
    """

    def __init__(
        self,
        records: RunRecords,
        files: RunFiles,
        instance_id: str,
        pause_s: float,
        ring: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._records = records
        self._files = files
        self._instance_id = instance_id
        self._pause_s = pause_s
        self._ring = ring
        self._clock = clock
        self._changed = threading.Condition()
        self._publishers = {number: self._publisher(number) for number in files.epochs()}
        self._asked = 0
        self._finished = 0
        self._stopped = False

    def add(self, number: int) -> None:
        """Another epoch has begun."""
        with self._changed:
            self._publishers[number] = self._publisher(number)

    def ask(self) -> int:
        """Asks for an upload of all that is there now; `has_finished` tells by the number when that is done."""
        with self._changed:
            self._asked += 1
            self._changed.notify()
            return self._asked

    def has_finished(self, asked: int) -> bool:
        """Whether all is uploaded that was there when `ask` returned this number."""
        with self._changed:
            return self._finished >= asked

    def run(self) -> None:
        """Uploads until `stop`."""
        pause, failed = 0.0, False
        while self._await_turn(pause, failed=failed):
            begun, asked = self._clock(), self._asked
            failed = not attempt(self.publish)
            pause = max(self._pause_s, (self._clock() - begun) / _SHARE_OF_TIME)
            if not failed:
                self._mark_finished(asked)

    def stop(self) -> None:
        """Lets `run` return."""
        with self._changed:
            self._stopped = True
            self._changed.notify()

    def publish(self) -> bool:
        """Uploads what has changed, the newest epoch first."""
        with self._changed:
            publishers = list(self._publishers.values())
        for publisher in reversed(publishers):
            publisher.publish()
        return True

    def _publisher(self, number: int) -> Publisher:
        return Publisher(self._records, number, self._files.epoch(number), self._instance_id)

    def _await_turn(self, pause: float, *, failed: bool) -> bool:
        with self._changed:
            if failed and self._changed.wait_for(lambda: self._stopped, _RETRY_S):
                return False
            self._changed.wait_for(lambda: self._stopped or self._asked > self._finished, pause)
            return not self._stopped

    def _mark_finished(self, asked: int) -> None:
        with self._changed:
            news, self._finished = asked > self._finished, max(asked, self._finished)
        if news:
            self._ring()


def _version(path: Path) -> _Version | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return _Version(found.st_size, found.st_mtime_ns)


def _tail(path: Path) -> bytes:
    if path.suffix != ".log":
        return path.read_bytes()
    with path.open("rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - LOG_BYTES))
        return file.read()
