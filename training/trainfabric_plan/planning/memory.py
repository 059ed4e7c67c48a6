"""Memory per rank, by formula.

Model states under Adam and ZeRO-1 (Rajbhandari et al. 2020, arXiv 1910.02054, section 3.1): weights and gradients in
the training precision, fp32 master weights and two moments (12 bytes per parameter) divided by the data degree.
DeepSpeed 0.19.8 keeps the master copy in fp32 training as well (`stage_1_and_2.py`, `single_partition_of_fp32_groups`)
and does not divide gradients in stage 1. Our engine accumulates bf16 gradients in fp32, which keeps both
(`bf16_optimizer.py`, `fp32_groups_gradients_flat` beside each parameter's own): 6 bytes, not 2.

Activations per layer without recomputation (Korthikanti et al. 2022, arXiv 2205.05198, section 4.2.1):
s·b·h·(10 + 24/t + 5·a·s/(h·t)) bytes in 16 bit. The models here have no dropout (2 for its masks) and use fused
attention (the a·s term), which leaves s·b·h·(8 + 24/t). Counting the tensors that autograd saves in
`trainfabric_training.model` at t = 1 gives 32.2 per s·b·h for a block and 8.02 bytes per logit for the loss. A pipeline
runs 1F1B: stage i holds the activations of min(p - i, micro-batches) micro-batches (DeepSpeed `TrainSchedule`).

Not measured on a GPU yet. CUDA context, communication buffers and fragmentation are not in it; `USABLE_SHARE` leaves
room for them.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from trainfabric_plan.layout import Layout, accumulation
from trainfabric_plan.recipes import ModelShape, Recipe

USABLE_SHARE = 0.9
"""Share of an accelerator's memory that a plan may fill: a margin that we chose, not a measurement."""

_BYTES = {"fp32": 4, "bf16": 2}
_GRADIENT_BYTES = {"fp32": 4, "bf16": 2 + 4}
_OPTIMIZER_BYTES = 12
_LOSS_BYTES = 8
"""Vocabulary-parallel cross-entropy keeps two fp32 values per logit for its backward pass."""


@dataclass(frozen=True, kw_only=True)
class MemoryPerRank:
    """Bytes on one rank of the fullest pipeline stage."""

    weights: int
    gradients: int
    optimizer: int
    activations: int
    logits: int

    @property
    def total(self) -> int:
        """All parts together, in bytes."""
        return self.weights + self.gradients + self.optimizer + self.activations + self.logits

    def by_part(self) -> dict[str, int]:
        """The parts by name, and their `total`."""
        return {**asdict(self), "total": self.total}


def memory_per_rank(recipe: Recipe, layout: Layout) -> MemoryPerRank:
    """Memory of a rank of the fullest stage: the first (most micro-batches in flight) or the last (the logits).

    Every stage is taken to hold the most layers that any stage holds. The first and the last hold a copy of the tied
    embedding each.
    """
    last = _stage(recipe, layout, in_flight=1, has_head=True)
    if layout.pipeline == 1:
        return last
    in_flight = min(layout.pipeline, accumulation(recipe, layout.data))
    return max(last, _stage(recipe, layout, in_flight=in_flight, has_head=False), key=lambda stage: stage.total)


def _stage(recipe: Recipe, layout: Layout, *, in_flight: int, has_head: bool) -> MemoryPerRank:
    model, width, t = recipe.model, _BYTES[recipe.precision], layout.tensor
    layers = -(-model.layers // layout.pipeline)
    held = layers * _block_parameters(model, t) + _other_parameters(model, layout, has_head)
    tokens = model.sequence_length * recipe.micro_batch
    per_token = layers * model.hidden * (8 + 24 / t) + (4 * model.hidden if has_head else 0)
    logit_bytes = width + _LOSS_BYTES + (4 if recipe.precision != "fp32" else 0)
    return MemoryPerRank(
        weights=held * width,
        gradients=held * _GRADIENT_BYTES[recipe.precision],
        optimizer=held * _OPTIMIZER_BYTES // layout.data,
        activations=int(tokens * per_token * width / 2) * in_flight,
        logits=tokens * _vocabulary_per_rank(model, t) * logit_bytes if has_head else 0,
    )


def _vocabulary_per_rank(model: ModelShape, tensor: int) -> int:
    """Rows of the embedding on one rank; the vocabulary is padded to a multiple of 8 × tensor."""
    return -(-model.vocabulary // (8 * tensor)) * 8


def _block_parameters(model: ModelShape, tensor: int) -> int:
    """Parameters of one transformer block on one rank: matrices and column biases are cut, the rest is replicated."""
    h, f = model.hidden, model.feed_forward
    cut = 4 * h * h + 3 * h + 2 * h * f + f
    replicated = 2 * h + 4 * h
    return cut // tensor + replicated


def _other_parameters(model: ModelShape, layout: Layout, has_head: bool) -> int:
    """Parameters outside the blocks: embedding, on the first stage the positions, on the last the final norm."""
    first = layout.pipeline == 1 or not has_head
    positions = model.sequence_length * model.hidden if first else 0
    norm = 2 * model.hidden if has_head else 0
    return _vocabulary_per_rank(model, layout.tensor) * model.hidden + positions + norm
