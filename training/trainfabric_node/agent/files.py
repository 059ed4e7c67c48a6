"""The files of a run on a node, which its supervisor and its ranks share."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import BaseModel, ValidationError

from trainfabric_plan.planning import AnyPlan
from trainfabric_plan.recipes import Recipe

Record = TypeVar("Record", bound=BaseModel)


class RankBeat(BaseModel):
    """What a rank says every few moments, each time with another `beat`."""

    rank: int
    pid: int
    step: int
    """The last optimizer step that it has finished, 0 if none."""
    phase: Literal["start", "restore", "train", "save", "done"]
    beat: float


class RankEnd(BaseModel):
    """What a rank says as its last word."""

    status: Literal["done", "resume", "failed"]
    detail: str = ""
    of_others: bool = False
    """Whether it failed because ranks elsewhere were gone."""
    hopeless: bool = False
    """Whether trying again cannot help."""
    step: int = 0


@dataclass(frozen=True, kw_only=True)
class EpochFiles:
    """Where the files of one epoch lie on this node.

    Attributes:
        directory: Of this epoch alone.
    """

    directory: Path

    @property
    def recipe(self) -> Path:
        """The recipe as JSON."""
        return self.directory / "recipe.json"

    @property
    def plan(self) -> Path:
        """The plan of this epoch's nodes as JSON."""
        return self.directory / "plan.json"

    @property
    def output(self) -> Path:
        """Directory that rank 0 writes telemetry and its result into."""
        return self.directory / "output"

    @property
    def ranks(self) -> Path:
        """Directory of the ranks' beats and last words."""
        return self.directory / "ranks"

    @property
    def stop_flag(self) -> Path:
        """Appears when the ranks are to leave: `now` at the next step, `checkpoint` at the next that is saved."""
        return self.directory / "stop"

    @property
    def log(self) -> Path:
        """What the ranks print."""
        return self.directory / "trainer.log"

    def prepare(self, recipe: Recipe | None, plan: AnyPlan) -> None:
        """Makes the directory anew, with what the ranks read."""
        shutil.rmtree(self.directory, ignore_errors=True)
        self.output.mkdir(parents=True)
        self.ranks.mkdir()
        if recipe is not None:
            self.recipe.write_text(recipe.model_dump_json(indent=2))
        self.plan.write_text(plan.model_dump_json(indent=2))

    def ask_to_leave(self, at: Literal["now", "checkpoint"]) -> None:
        """Raises the stop flag; one that says `now` is not taken back."""
        if self.stop_flag.exists() and self.stop_flag.read_text() in ("now", at):
            return
        whole = self.stop_flag.with_suffix(".new")
        whole.write_text(at)
        whole.replace(self.stop_flag)

    def beat(self, rank: int) -> RankBeat | None:
        """What a rank last said, if it said anything."""
        return _read(self.ranks / f"{rank}.json", RankBeat)

    def end(self, rank: int) -> RankEnd | None:
        """What a rank said as its last word, if it has."""
        path = self.ranks / f"{rank}.end.json"
        found = _read(path, RankEnd)
        if found is None and path.exists():
            return _read(path, RankEnd) or RankEnd(status="failed", detail=f"{path} cannot be read")
        return found

    def printed(self, limit: int = 256 * 1024) -> str:
        """What the ranks have printed, or the end of that."""
        try:
            with self.log.open("rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - limit))
                return file.read().decode(errors="replace")
        except FileNotFoundError:
            return ""


@dataclass(frozen=True, kw_only=True)
class RunFiles:
    """Where a run's files lie on this node.

    Attributes:
        directory: Of this run alone.
        cache: Shared by all runs.
    """

    directory: Path
    cache: Path

    def epoch(self, number: int) -> EpochFiles:
        """The files of one epoch."""
        return EpochFiles(directory=self.directory / "epochs" / f"{number:08d}")

    def epochs(self) -> Iterator[int]:
        """Numbers of the epochs that have files, ascending: those of an earlier supervisor too."""
        folder = self.directory / "epochs"
        yield from sorted(int(one.name) for one in folder.glob("*") if one.name.isdecimal())


def _read(path: Path, kind: type[Record]) -> Record | None:
    try:
        return kind.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None
