"""What a command says about its steps: read leniently, as it is somebody else's."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

_NUMBERS = ("loss", "grad_norm", "tokens", "seconds")
_LONGEST_READ = 1024 * 1024


class Progress:
    """Follows the lines that a command writes, and keeps those that name a step.

    Args:
        path: What the command writes.
        copy: Where lines go for whoever shows them; `None` on nodes whose lines nobody shows.
    """

    def __init__(self, path: Path, copy: Path | None) -> None:
        self._path = path
        self._copy = copy
        self._offset = 0
        self.step = 0
        """The last step that it has named, 0 before."""

    def look(self) -> None:
        """Takes in what is new."""
        lines = [found for line in self._new_lines() if (found := step_line(line))]
        if not lines:
            return
        self.step = int(lines[-1]["step"])
        if self._copy is not None:
            with self._copy.open("a", encoding="utf-8") as copy:
                copy.write("".join(json.dumps(line) + "\n" for line in lines))

    def _new_lines(self) -> list[bytes]:
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read(_LONGEST_READ)
        except OSError:
            return []
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        return whole.splitlines()


def step_line(line: bytes) -> dict[str, Any] | None:
    """A line in the form of ours: `step`, `time`, and the numbers that we know; `None` if it names no step."""
    try:
        said = json.loads(line)
    except ValueError:
        return None
    if not isinstance(said, dict) or type(said.get("step")) is not int or said["step"] < 0:
        return None
    numbers = {name: said[name] for name in _NUMBERS if type(said.get(name)) in (int, float)}
    return {"step": said["step"], **numbers, "time": datetime.now(UTC).isoformat(timespec="milliseconds")}
