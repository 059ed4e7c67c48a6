"""A layout and its arithmetic: which degrees of parallelism a recipe and a number of ranks admit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from trainfabric_plan.model import Strict
from trainfabric_plan.recipes import Recipe


class Layout(Strict):
    """Degrees of parallelism; their product is the number of ranks."""

    data: Annotated[int, Field(ge=1)] = 1
    """Replicas of the model that share the global batch."""
    pipeline: Annotated[int, Field(ge=1)] = 1
    """Stages that the layers are cut into."""
    tensor: Annotated[int, Field(ge=1)] = 1
    """Ranks that share every layer; keep it inside a node."""

    @property
    def ranks(self) -> int:
        """Number of ranks: data × pipeline × tensor."""
        return self.data * self.pipeline * self.tensor

    def __str__(self) -> str:
        return f"data {self.data} × pipeline {self.pipeline} × tensor {self.tensor}"


@dataclass(frozen=True, kw_only=True)
class LayoutProblem:
    """A rule that a layout breaks, without the place where the layout stood."""

    rule: str
    got: str
    remedy: str


def layout_problems(layout: Layout, recipe: Recipe, ranks: int) -> Iterator[LayoutProblem]:
    """Every reason why this recipe cannot run in this layout on this number of ranks."""
    if layout.ranks != ranks:
        yield LayoutProblem(
            rule=f"a layout of {ranks} ranks (nodes × ranks per node)",
            got=f"{layout} = {layout.ranks}",
            remedy="change a degree or the number of nodes so that the product is equal",
        )
    model = recipe.model
    if model.heads % layout.tensor:
        yield LayoutProblem(
            rule=f"such that tensor divides the {model.heads} attention heads of {recipe.name}",
            got=f"tensor {layout.tensor}",
            remedy="use a tensor degree that divides the heads",
        )
    if layout.pipeline > model.layers:
        yield LayoutProblem(
            rule=f"such that pipeline is at most the {model.layers} layers of {recipe.name}",
            got=f"pipeline {layout.pipeline}",
            remedy="use fewer stages",
        )
    if recipe.global_batch % (recipe.micro_batch * layout.data):
        yield LayoutProblem(
            rule=f"such that micro-batch {recipe.micro_batch} × data divides global batch {recipe.global_batch}",
            got=f"data {layout.data}",
            remedy="use a data degree that divides it",
        )


def accumulation(recipe: Recipe, data: int) -> int:
    """Micro-batches per optimizer step and data-parallel replica; absorbs what the data degree changes."""
    return recipe.global_batch // (recipe.micro_batch * data)
