from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

from trainfabric_training.telemetry import End, RankFiles, end_of, write_end


def beat(directory: Path, rank: int = 3) -> dict[str, object]:
    return json.loads((directory / f"{rank}.json").read_text())  # type: ignore[no-any-return]


def test_a_rank_says_who_it_is_and_what_it_does_at_every_change(tmp_path: Path) -> None:
    with RankFiles(tmp_path / "ranks", 3, 60.0) as files:
        first = beat(tmp_path / "ranks")
        files.phase("train")
        files.step(12)
        second = beat(tmp_path / "ranks")

    told = {name: first[name] for name in ("rank", "pid", "step", "phase")}
    assert told == {"rank": 3, "pid": os.getpid(), "step": 0, "phase": "start"}
    assert (second["step"], second["phase"]) == (12, "train")
    assert files.last_step == 12


def test_a_rank_beats_while_it_does_nothing_and_no_longer_than_it_lives(tmp_path: Path) -> None:
    with RankFiles(tmp_path, 3, 0.01):
        beats = {beat(tmp_path)["beat"]}
        deadline = time.monotonic() + 10
        while len(beats) < 3:
            assert time.monotonic() < deadline
            beats.add(beat(tmp_path)["beat"])

    assert [thread.name for thread in threading.enumerate() if thread.name == "beats"] == []


def test_without_a_directory_nothing_is_said(tmp_path: Path) -> None:
    with RankFiles(None, 3, 0.01) as files:
        files.phase("train")
        files.step(1)
        files.end(End(status="done"))

    assert files.last_step == 1
    assert list(tmp_path.iterdir()) == []


def test_the_last_word_of_a_rank_reads_back(tmp_path: Path) -> None:
    end = End(status="failed", detail="no memory", of_others=False, hopeless=True, step=7)

    write_end(tmp_path, 3, end)

    assert end_of(tmp_path, 3) == end
    assert end_of(tmp_path, 4) is None
    assert [path.name for path in tmp_path.iterdir()] == ["3.end.json"]
