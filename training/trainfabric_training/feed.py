"""From samples to micro-batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from trainfabric_plan.layout import accumulation
from trainfabric_plan.recipes import Recipe
from trainfabric_training.parallel import Mesh

MicroBatch = tuple[Tensor, Tensor]
"""Inputs and labels, both [micro-batch, S] int64."""


class Samples(Protocol):
    """Numbered samples of S + 1 tokens."""

    def __len__(self) -> int: ...

    def sample(self, number: int) -> npt.NDArray[np.int64]:
        """Tokens of one sample."""
        ...


@dataclass(frozen=True, kw_only=True)
class Feed:
    """The micro-batches of one rank; which samples a step consumes depends on its number and the seed alone.

    Attributes:
        samples: The corpus.
        order: Seed, position in the endless run and number of samples → number of the sample.
        recipe: Gives seed and batch sizes.
        mesh: Each data rank takes a run of the global batch of its own.
    """

    samples: Samples
    order: Callable[[int, int, int], int]
    recipe: Recipe
    mesh: Mesh

    def micro_batches(self, step: int) -> Iterator[MicroBatch]:
        """The micro-batches of a step, from 1 on, loaded as they are asked for."""
        recipe, layout = self.recipe, self.mesh.layout
        count = accumulation(recipe, layout.data)
        own = (step - 1) * recipe.global_batch + self.mesh.place.data * count * recipe.micro_batch
        for first in range(own, own + count * recipe.micro_batch, recipe.micro_batch):
            yield self._micro_batch(range(first, first + recipe.micro_batch))

    def _micro_batch(self, positions: range) -> MicroBatch:
        numbers = [self.order(self.recipe.seed, position, len(self.samples)) for position in positions]
        tokens = torch.from_numpy(np.stack([self.samples.sample(number) for number in numbers]))
        return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
