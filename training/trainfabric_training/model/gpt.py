"""A GPT-2 style transformer: pre-norm, GELU, learned positions, embedding tied to the head.

Weights start with the deviation √(2 / (5 × hidden)) (Nguyen and Salazar 2019, "small init"), residual projections with
that over √(2 × layers) (GPT-2). Shapes: B samples, S tokens, H hidden.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch.nn import functional

from trainfabric_plan.recipes import ModelShape
from trainfabric_training.parallel import (
    ColumnLinear,
    Initial,
    Mesh,
    Norm,
    PositionEmbedding,
    RowLinear,
    VocabularyEmbedding,
    VocabularyParallelCrossEntropy,
)


@dataclass(frozen=True, kw_only=True)
class Layer:
    """How to build one layer of the sequence, wherever it lands.

    Layers of the same `tied` key are one module where they meet on a stage, and hold equal weights where they do not.
    `forward` is what the layer does if not the module's own forward.
    """

    module: type[nn.Module]
    arguments: tuple[Any, ...]
    tied: str | None = None
    forward: Callable[[Any, Tensor], Tensor] | None = None

    def build(self) -> nn.Module:
        """The module, with its weights."""
        return self.module(*self.arguments)


def gpt_layers(shape: ModelShape, mesh: Mesh, seed: int) -> tuple[Layer, ...]:
    """The layers from tokens [B, S] to logits [B, S, padded vocabulary / tensor degree]."""
    initial = Initial(seed=seed, deviation=math.sqrt(2 / (5 * shape.hidden)))
    embedding = (mesh, initial, "embedding", shape.vocabulary, shape.hidden)
    return (
        Layer(module=VocabularyEmbedding, arguments=embedding, tied="embedding"),
        Layer(module=PositionEmbedding, arguments=(initial, "positions", shape.sequence_length, shape.hidden)),
        *(Layer(module=Block, arguments=(mesh, initial, f"blocks.{index}", shape)) for index in range(shape.layers)),
        Layer(module=Norm, arguments=("norm", shape.hidden)),
        Layer(module=VocabularyEmbedding, arguments=embedding, tied="embedding", forward=VocabularyEmbedding.logits),
    )


def gpt_loss(shape: ModelShape, mesh: Mesh) -> VocabularyParallelCrossEntropy:
    """The loss of logits and labels."""
    return VocabularyParallelCrossEntropy(mesh, shape.vocabulary)


class Block(nn.Module):
    """Attention and feed-forward, each behind a norm and added to the stream: [B, S, H] → [B, S, H]."""

    def __init__(self, mesh: Mesh, initial: Initial, name: str, shape: ModelShape) -> None:
        super().__init__()
        self.attention_norm = Norm(f"{name}.attention_norm", shape.hidden)
        self.attention = Attention(mesh, initial, f"{name}.attention", shape)
        self.feed_forward_norm = Norm(f"{name}.feed_forward_norm", shape.hidden)
        self.feed_forward = FeedForward(mesh, initial, f"{name}.feed_forward", shape)

    def forward(self, values: Tensor) -> Tensor:
        """Two residual additions."""
        attended: Tensor = values + self.attention(self.attention_norm(values))
        transformed: Tensor = attended + self.feed_forward(self.feed_forward_norm(attended))
        return transformed


class Attention(nn.Module):
    """Causal self-attention; each tensor rank has its own heads."""

    def __init__(self, mesh: Mesh, initial: Initial, name: str, shape: ModelShape) -> None:
        super().__init__()
        self.heads = shape.heads // mesh.tensor_degree
        self.head_size = shape.hidden // shape.heads
        self.query_key_value = ColumnLinear(
            mesh, initial, f"{name}.query_key_value", shape.hidden, shape.hidden, bundles=3
        )
        self.output = RowLinear(mesh, _residual(initial, shape), f"{name}.output", shape.hidden, shape.hidden)

    def forward(self, values: Tensor) -> Tensor:
        """[B, S, H] → [B, S, H]."""
        samples, tokens, _ = values.shape
        bundled = self.query_key_value(values).view(samples, tokens, 3, self.heads, self.head_size)
        query, key, value = bundled.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        joined: Tensor = self.output(mixed.transpose(1, 2).reshape(samples, tokens, self.heads * self.head_size))
        return joined


class FeedForward(nn.Module):
    """Two linear layers with GELU between them."""

    def __init__(self, mesh: Mesh, initial: Initial, name: str, shape: ModelShape) -> None:
        super().__init__()
        self.expand = ColumnLinear(mesh, initial, f"{name}.expand", shape.hidden, shape.feed_forward)
        self.contract = RowLinear(mesh, _residual(initial, shape), f"{name}.contract", shape.feed_forward, shape.hidden)

    def forward(self, values: Tensor) -> Tensor:
        """[B, S, H] → [B, S, H]."""
        contracted: Tensor = self.contract(functional.gelu(self.expand(values)))
        return contracted


def _residual(initial: Initial, shape: ModelShape) -> Initial:
    return initial.scaled(1 / math.sqrt(2 * shape.layers))
