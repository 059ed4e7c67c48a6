"""The optimizer and its schedule, the same for DeepSpeed and the reference."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from torch import nn
from torch.optim import AdamW

from trainfabric_plan.recipes import Recipe
from trainfabric_training.parallel import info_of

_FLOOR = 0.1


def adamw(parameters: Iterable[nn.Parameter], recipe: Recipe) -> AdamW:
    """AdamW in two groups: weights decay, biases and norms do not (GPT-2, GPT-3)."""
    known = list(parameters)
    decaying = [parameter for parameter in known if _decays(info_of(parameter).name)]
    others = [parameter for parameter in known if not _decays(info_of(parameter).name)]
    groups = [
        {"params": decaying, "weight_decay": recipe.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    return AdamW(groups, lr=recipe.learning_rate, betas=recipe.betas)


def _decays(name: str) -> bool:
    layer, _, kind = name.rpartition(".")
    return kind == "weight" and not layer.endswith("norm")


def learning_rate(recipe: Recipe, taken: int) -> float:
    """The rate of the step after `taken` ones: linear warm-up, then a cosine to a tenth at the recipe's last step."""
    if taken < recipe.warmup_steps:
        return recipe.learning_rate * (taken + 1) / recipe.warmup_steps
    progress = min(1.0, (taken - recipe.warmup_steps) / max(1, recipe.steps - recipe.warmup_steps))
    return recipe.learning_rate * (_FLOOR + (1 - _FLOOR) * 0.5 * (1 + math.cos(math.pi * progress)))


class Schedule:
    """Sets the learning rate of an optimizer before each step; has the methods that DeepSpeed calls."""

    def __init__(self, optimizer: AdamW, recipe: Recipe) -> None:
        self._optimizer = optimizer
        self._recipe = recipe
        self._taken = 0
        self._apply()

    @property
    def rate(self) -> float:
        """The rate of the next step."""
        return learning_rate(self._recipe, self._taken)

    def step(self, **_: Any) -> None:
        """A step was taken."""
        self._taken += 1
        self._apply()

    def get_last_lr(self) -> list[float]:
        """The rate of each group for the next step."""
        return [self.rate for _ in self._optimizer.param_groups]

    def state_dict(self) -> dict[str, int]:
        """What a checkpoint keeps."""
        return {"taken": self._taken}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Goes on from a checkpoint."""
        self._taken = int(state["taken"])
        self._apply()

    def _apply(self) -> None:
        for group in self._optimizer.param_groups:
            group["lr"] = self.rate
