"""Cross entropy on logits that are cut over the vocabulary."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor, nn

from trainfabric_training.parallel.collectives import sum_over_tensor_ranks
from trainfabric_training.parallel.mesh import Mesh


class VocabularyParallelCrossEntropy(nn.Module):
    """Mean cross entropy over all tokens, in fp32. Logits behind the logical vocabulary are padding and take no part.

    No rank ever holds the logits of the whole vocabulary: three all-reduces of [B, S] instead.
    """

    def __init__(self, mesh: Mesh, vocabulary: int) -> None:
        super().__init__()
        self.mesh = mesh
        self.vocabulary = vocabulary

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """[B, S, padded vocabulary / t] and [B, S] → a scalar, the same on all tensor ranks."""
        logits = self._without_padding(logits.float())
        shifted = logits - self._largest(logits)[..., None]
        total = sum_over_tensor_ranks(self.mesh, shifted.exp().sum(-1))
        return (total.log() - self._of_labels(shifted, labels)).mean()

    def _without_padding(self, logits: Tensor) -> Tensor:
        local = logits.shape[-1]
        here = self.vocabulary - self.mesh.tensor_rank * local
        if here >= local:
            return logits
        padding = torch.arange(local, device=logits.device) >= here
        return logits.masked_fill(padding, float("-inf"))

    def _largest(self, logits: Tensor) -> Tensor:
        largest = logits.detach().amax(-1)
        if self.mesh.tensor_group is not None:
            dist.all_reduce(largest, op=dist.ReduceOp.MAX, group=self.mesh.tensor_group)
        return largest

    def _of_labels(self, shifted: Tensor, labels: Tensor) -> Tensor:
        local = shifted.shape[-1]
        index = labels - self.mesh.tensor_rank * local
        elsewhere = (index < 0) | (index >= local)
        found = shifted.gather(-1, index.masked_fill(elsewhere, 0)[..., None])[..., 0]
        return sum_over_tensor_ranks(self.mesh, found.masked_fill(elsewhere, 0.0))
