from __future__ import annotations

import json
from pathlib import Path

from trainfabric_node.command.progress import Progress, step_line


def test_steps_are_followed_and_copied_as_far_as_they_can_be_understood(tmp_path: Path) -> None:
    said, copy = tmp_path / "progress.jsonl", tmp_path / "steps.jsonl"
    progress = Progress(said, copy)
    progress.look()
    assert progress.step == 0

    said.write_text('{"step": 1, "loss": 2.5, "note": "warm"}\nnot json\n[3]\n{"step": "4"}\n{"step": 2, "tok')
    progress.look()
    first = progress.step
    with said.open("a") as more:
        more.write('ens": 8}\n')
    progress.look()

    assert (first, progress.step) == (1, 2)
    lines = [json.loads(line) for line in copy.read_text().splitlines()]
    assert [{name: value for name, value in line.items() if name != "time"} for line in lines] == [
        {"step": 1, "loss": 2.5},
        {"step": 2, "tokens": 8},
    ]


def test_a_step_is_a_whole_number_that_is_not_negative() -> None:
    assert [step_line(line) for line in (b'{"step": -1}', b'{"step": true}', b'{"step": 1.5}', b"{}", b"\xff")] == [
        None
    ] * 5
