"""The types of a recipe."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from trainfabric_plan.model import Strict

Positive = Annotated[int, Field(gt=0)]


class ModelShape(Strict):
    """Shape of a GPT-2 style transformer with a tied embedding (pre-norm, GELU, learned positions)."""

    family: Literal["gpt"] = "gpt"
    layers: Positive
    """Transformer blocks."""
    hidden: Positive
    """Width of the residual stream."""
    heads: Positive
    """Attention heads; divides `hidden`."""
    vocabulary: Positive
    """Entries of the tokenizer; padded to a multiple of 8 × tensor inside the engine."""
    sequence_length: Positive
    """Tokens per sample."""

    @model_validator(mode="after")
    def _heads_divide_hidden(self) -> Self:
        if self.hidden % self.heads:
            raise ValueError(f"such that heads divide hidden, got {self.heads} heads and hidden {self.hidden}")
        return self

    @property
    def feed_forward(self) -> int:
        """Width of the feed-forward layer: 4 × hidden."""
        return 4 * self.hidden

    @property
    def parameters(self) -> int:
        """Number of parameters; the embedding, tied to the head, counts once."""
        h = self.hidden
        block = (4 * h * h + 4 * h) + (2 * h * self.feed_forward + self.feed_forward + h) + 4 * h
        return self.layers * block + self.vocabulary * h + self.sequence_length * h + 2 * h


class Recipe(Strict):
    """What to train, on any layout."""

    name: str
    description: str
    model: ModelShape
    precision: Literal["fp32", "bf16"] = "bf16"
    micro_batch: Positive
    """Samples per rank and forward pass."""
    global_batch: Positive
    """Samples per optimizer step over all ranks; the same on every layout."""
    steps: Positive
    """Optimizer steps of a whole run."""
    checkpoint_every: Positive
    """Optimizer steps between checkpoints."""
    learning_rate: Annotated[float, Field(gt=0)] = 3e-4
    warmup_steps: Annotated[int, Field(ge=0)] = 0
    """Steps of linear warm-up, after which the rate decays by a cosine to a tenth at `steps`."""
    weight_decay: Annotated[float, Field(ge=0)] = 0.1
    betas: tuple[float, float] = (0.9, 0.95)
    gradient_clipping: Annotated[float, Field(gt=0)] = 1.0
    """Largest global gradient norm."""
    seed: int = 1234
