"""What the trainer needs of an engine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from trainfabric_plan.recipes import Recipe
from trainfabric_training.engine.optimizer import Schedule
from trainfabric_training.engine.slices import LocalSlice
from trainfabric_training.feed import MicroBatch
from trainfabric_training.parallel import Mesh


@dataclass(frozen=True, kw_only=True)
class StepOutcome:
    """What one optimizer step tells: mean loss and gradient norm over the global batch, and the rate it took."""

    loss: float
    grad_norm: float
    learning_rate: float


class Engine(Protocol):
    """Takes optimizer steps."""

    def train_step(self, micro_batches: Iterator[MicroBatch]) -> StepOutcome:
        """One step over this rank's micro-batches of the global batch."""
        ...


class StatefulEngine(Engine, Protocol):
    """An engine whose state can be saved and restored."""

    mesh: Mesh
    recipe: Recipe
    schedule: Schedule

    def slices(self) -> Iterator[LocalSlice]:
        """What this rank keeps of weights and moments; moments exist after the first step or `begin_restore`."""
        ...

    def counters(self) -> dict[str, int]:
        """Counters of the engine itself."""
        ...

    def begin_restore(self, steps: int) -> None:
        """Makes room for moments and sets the optimizer's step count."""
        ...

    def end_restore(self, counters: dict[str, int]) -> None:
        """Takes the counters, and makes the model's weights of the restored slices; every rank calls it."""
        ...
