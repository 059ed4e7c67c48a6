from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trainfabric_node.checkpoint.log import LogEntry
from trainfabric_node.store import PosixStore


@pytest.fixture
def committed(tmp_path: Path) -> str:
    """Address of a job with a claim and two commits."""
    store = PosixStore(tmp_path / "checkpoints")
    for number, (event, step) in enumerate([("claim", 0), ("commit", 10), ("commit", 20)], start=1):
        entry = LogEntry.model_validate(
            {
                "number": number,
                "event": event,
                "nonce": "abc",
                "time": f"2026-11-30T12:00:{step:02d}+00:00",
                "step": step,
                "manifest_key": f"steps/{step:08d}-abc/manifest.json",
            }
        )
        store.put(f"log/{number:08d}.json", entry.model_dump_json().encode())
    return store.uri


def test_committed_checkpoints_are_listed_oldest_first(trainfabric: Any, committed: str) -> None:
    ended = trainfabric("checkpoint", "ls", committed, "--json")

    assert (ended.status, ended.err) == (0, "")
    assert ended.json == [
        {
            "step": step,
            "time": f"2026-11-30T12:00:{step}+00:00",
            "run": "abc",
            "uri": f"{committed}steps/000000{step}-abc/",
        }
        for step in (10, 20)
    ]


def test_people_get_a_line_for_each(trainfabric: Any, committed: str) -> None:
    out = trainfabric("checkpoint", "ls", committed).out

    assert out.startswith(f"2 committed checkpoints in {committed}\n")
    assert [line.split()[:2] for line in out.splitlines() if "2026-" in line] == [
        ["10", "2026-11-30T12:00:10+00:00"],
        ["20", "2026-11-30T12:00:20+00:00"],
    ]


def test_a_place_without_checkpoints_has_an_empty_list(trainfabric: Any, tmp_path: Path) -> None:
    ended = trainfabric("checkpoint", "ls", f"file://{tmp_path}/nothing", "--json")

    assert (ended.status, ended.json) == (0, [])


def test_a_damaged_log_ends_with_status_2(trainfabric: Any, committed: str, tmp_path: Path) -> None:
    (tmp_path / "checkpoints" / "log" / "00000002.json").unlink()

    ended = trainfabric("checkpoint", "ls", committed, "--json")

    assert (ended.status, ended.out) == (2, "")
    assert ended.err == f"{committed}: log/00000002.json must exist, got none; restore it, or start a new job\n"
