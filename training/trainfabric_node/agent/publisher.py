"""Uploads of what a run writes on this node."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from trainfabric_node.agent.launch import RunFiles
from trainfabric_node.jobs.ledger import RunRecords
from trainfabric_plan.contract import EVENTS_FILE, RESULT_FILE, STEPS_FILE

LOG_BYTES = 4 * 1024 * 1024
"""Only the end of a longer log is uploaded."""

_SHARE_OF_TIME = 0.05


@dataclass(frozen=True)
class _Version:
    size: int
    modified_ns: int


class Publisher:
    """Uploads files that have changed: the log of every node, telemetry and result of the node with rank 0.

    Files grow and are uploaded whole, so the pause between two uploads grows with what they take: at most a twentieth
    of the time is spent on them.
    """

    def __init__(
        self,
        records: RunRecords,
        files: RunFiles,
        instance_id: str,
        pause_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._records = records
        self._pause_s = pause_s
        self._clock = clock
        self._next = clock()
        self._published: dict[str, _Version] = {}
        self._sources = {
            f"logs/{instance_id}.log": files.log,
            STEPS_FILE: files.output / STEPS_FILE,
            EVENTS_FILE: files.output / EVENTS_FILE,
            RESULT_FILE: files.output / RESULT_FILE,
        }

    def publish_when_due(self) -> None:
        """Uploads what has changed, unless the last upload was just now."""
        begun = self._clock()
        if begun < self._next:
            return
        self.publish()
        took = self._clock() - begun
        self._next = self._clock() + max(self._pause_s, took / _SHARE_OF_TIME)

    def publish(self) -> None:
        """Uploads what has changed; the result goes last, so that whoever sees it sees the rest."""
        for name, path in self._sources.items():
            version = _version(path)
            if version and version != self._published.get(name):
                self._records.publish(name, _tail(path))
                self._published[name] = version


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
