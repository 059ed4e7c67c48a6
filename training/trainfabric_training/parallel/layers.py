"""Layers cut over the tensor ranks. Shapes: B samples, S tokens, H hidden; `t` is the tensor degree."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from trainfabric_training.parallel.collectives import copy_to_tensor_ranks, sum_over_tensor_ranks
from trainfabric_training.parallel.mesh import Mesh
from trainfabric_training.parallel.parameters import Initial, replicated, sharded


class ColumnLinear(nn.Module):
    """A linear layer whose outputs are cut: [B, S, inputs] → [B, S, bundles × outputs / t].

    `bundles` products of equal width, such as query, key and value, run as one and are cut each on its own.
    """

    def __init__(self, mesh: Mesh, initial: Initial, name: str, inputs: int, outputs: int, *, bundles: int = 1) -> None:
        super().__init__()
        self.mesh = mesh
        weight = initial.drawn(f"{name}.weight", (bundles, outputs, inputs))
        self.weight = sharded(mesh, f"{name}.weight", weight, 1)
        self.bias = sharded(mesh, f"{name}.bias", torch.zeros(bundles, outputs), 1)

    def forward(self, values: Tensor) -> Tensor:
        """One all-reduce over the tensor ranks, in the backward pass."""
        values = copy_to_tensor_ranks(self.mesh, values)
        return functional.linear(values, self.weight.flatten(0, 1), self.bias.flatten())


class RowLinear(nn.Module):
    """A linear layer whose inputs are cut: [B, S, inputs / t] → [B, S, outputs], the same on all tensor ranks."""

    def __init__(self, mesh: Mesh, initial: Initial, name: str, inputs: int, outputs: int) -> None:
        super().__init__()
        self.mesh = mesh
        weight = initial.drawn(f"{name}.weight", (outputs, inputs))
        self.weight = sharded(mesh, f"{name}.weight", weight, 1)
        self.bias = replicated(f"{name}.bias", torch.zeros(outputs))

    def forward(self, values: Tensor) -> Tensor:
        """One all-reduce over the tensor ranks, in the forward pass."""
        return sum_over_tensor_ranks(self.mesh, functional.linear(values, self.weight)) + self.bias


class VocabularyEmbedding(nn.Module):
    """An embedding whose vocabulary is cut, padded to a multiple of 8 × t; also the head, tied to it."""

    def __init__(self, mesh: Mesh, initial: Initial, name: str, vocabulary: int, hidden: int) -> None:
        super().__init__()
        self.mesh = mesh
        weight = initial.drawn(f"{name}.weight", (vocabulary, hidden))
        padded = padded_vocabulary(vocabulary, mesh.tensor_degree)
        self.weight = sharded(mesh, f"{name}.weight", weight, 0, padded_size=padded)

    def forward(self, tokens: Tensor) -> Tensor:
        """[B, S] tokens → [B, S, H], the same on all tensor ranks."""
        local = self.weight.shape[0]
        index = tokens - self.mesh.tensor_rank * local
        elsewhere = (index < 0) | (index >= local)
        found = functional.embedding(index.masked_fill(elsewhere, 0), self.weight)
        return sum_over_tensor_ranks(self.mesh, found.masked_fill(elsewhere[..., None], 0.0))

    def logits(self, values: Tensor) -> Tensor:
        """[B, S, H] → [B, S, padded vocabulary / t], this rank's part of the vocabulary."""
        return functional.linear(copy_to_tensor_ranks(self.mesh, values), self.weight)


class PositionEmbedding(nn.Module):
    """Learned positions, added: [B, S, H] → [B, S, H]."""

    def __init__(self, initial: Initial, name: str, positions: int, hidden: int) -> None:
        super().__init__()
        self.weight = replicated(f"{name}.weight", initial.drawn(f"{name}.weight", (positions, hidden)))

    def forward(self, values: Tensor) -> Tensor:
        """Adds the first S positions."""
        return values + self.weight[: values.shape[1]]


class Norm(nn.Module):
    """Layer norm over H, held whole by every tensor rank."""

    def __init__(self, name: str, hidden: int) -> None:
        super().__init__()
        self.weight = replicated(f"{name}.weight", torch.ones(hidden))
        self.bias = replicated(f"{name}.bias", torch.zeros(hidden))

    def forward(self, values: Tensor) -> Tensor:
        """[B, S, H] → [B, S, H]."""
        return functional.layer_norm(values, self.weight.shape, self.weight, self.bias)


def padded_vocabulary(vocabulary: int, tensor_degree: int) -> int:
    """Entries with padding: the next multiple of 8 × the tensor degree."""
    multiple = 8 * tensor_degree
    return -(-vocabulary // multiple) * multiple
