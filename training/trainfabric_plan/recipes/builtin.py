"""Recipes that come with trainfabric, named for model and hardware."""

from __future__ import annotations

import difflib

from trainfabric_plan.errors import NotFound
from trainfabric_plan.recipes.types import ModelShape, Recipe

_ROWS = (
    Recipe(
        name="tiny_cpu",
        description="a small GPT that trains in minutes on two CPU cores; the recipe of the demo and the tests",
        model=ModelShape(layers=4, hidden=96, heads=4, vocabulary=2048, sequence_length=128),
        precision="fp32",
        micro_batch=2,
        global_batch=16,
        steps=40,
        checkpoint_every=10,
        learning_rate=1e-3,
        warmup_steps=5,
    ),
    Recipe(
        name="gpt_1b3_4x_p5",
        description="GPT 1.3B on four p5.48xlarge: the model fits one GPU, so 32-way data parallel",
        model=ModelShape(layers=24, hidden=2048, heads=16, vocabulary=50304, sequence_length=2048),
        micro_batch=8,
        global_batch=1024,
        steps=100_000,
        checkpoint_every=500,
        learning_rate=2e-4,
        warmup_steps=2000,
    ),
)

RECIPES: dict[str, Recipe] = {row.name: row for row in _ROWS}


def recipe(name: str) -> Recipe:
    """The recipe of this name.

    Raises:
        NotFound: If there is none; the message names the nearest.
    """
    try:
        return RECIPES[name]
    except KeyError:
        near = difflib.get_close_matches(name, RECIPES, n=1, cutoff=0.3)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise NotFound(f"recipes: recipe must be one of {', '.join(sorted(RECIPES))}, got {name}{hint}") from None
