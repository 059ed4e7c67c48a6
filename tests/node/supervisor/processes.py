"""Processes of a test: found by a mark in their environment, so that none can hide."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

MARK = "TRAINFABRIC_TEST_MARK"


def marked(mark: str) -> list[int]:
    """Process ids of all that were started with this mark, or by such, and have not ended."""
    wanted, found = f"{MARK}={mark}".encode(), []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                if wanted in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
            except OSError:
                continue
    return found


def session_of(process: int) -> int:
    return os.getsid(process)


def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"the condition must come true within {seconds:g} s"
        time.sleep(0.01)
