"""Memory per rank, by formula.

Model states under mixed-precision Adam and ZeRO-1 (Rajbhandari et al. 2020): weights and gradients in the training
precision, fp32 master weights and two moments (12 bytes) divided by the data degree. Activations per layer without
recomputation (Korthikanti et al. 2022, eq. 2): s·b·h·(10 + 24/t + 5·a·s/(h·t)) bytes in 16 bit, where fused attention
spares the a·s term. Not measured on a GPU yet; allocator and context overhead are not included.
"""

from __future__ import annotations

from dataclasses import dataclass

from trainfabric_plan.layout import Layout
from trainfabric_plan.recipes import Recipe

_BYTES = {"fp32": 4, "bf16": 2}
_OPTIMIZER_BYTES = 12


@dataclass(frozen=True, kw_only=True)
class MemoryPerRank:
    """Bytes on the fullest rank."""

    weights: int
    gradients: int
    optimizer: int
    activations: int
    logits: int

    @property
    def total(self) -> int:
        """All parts together, in bytes."""
        return self.weights + self.gradients + self.optimizer + self.activations + self.logits


def memory_per_rank(recipe: Recipe, layout: Layout) -> MemoryPerRank:
    """Memory of a rank that holds the embedding or the head and its share of the layers."""
    model, width = recipe.model, _BYTES[recipe.precision]
    h, s, t = model.hidden, model.sequence_length, layout.tensor
    embedding = model.vocabulary * h // t + model.sequence_length * h
    block = (model.parameters - model.vocabulary * h - model.sequence_length * h) // model.layers
    layers = -(-model.layers // layout.pipeline)
    held = layers * block // t + embedding
    per_layer = s * recipe.micro_batch * h * (10 + 24 / t) * width / 2
    in_flight = min(layout.pipeline, recipe.global_batch // (recipe.micro_batch * layout.data))
    return MemoryPerRank(
        weights=held * width,
        gradients=held * width,
        optimizer=held * _OPTIMIZER_BYTES // layout.data,
        activations=int(layers * per_layer * in_flight),
        logits=s * recipe.micro_batch * model.vocabulary // t * (width + 4),
    )
