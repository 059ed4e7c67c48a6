"""What to train: a recipe names the model, the batch and the optimizer; the plan says how it is laid out."""

from trainfabric_plan.recipes.builtin import RECIPES, recipe
from trainfabric_plan.recipes.types import ModelShape, Recipe

__all__ = ["RECIPES", "ModelShape", "Recipe", "recipe"]
