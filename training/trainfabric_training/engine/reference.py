"""The reference: plain PyTorch, one process, the same layers, micro-batches, optimizer and schedule."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from trainfabric_plan.layout import accumulation
from trainfabric_plan.recipes import Recipe
from trainfabric_training.engine.optimizer import Schedule, adamw
from trainfabric_training.engine.protocol import StepOutcome
from trainfabric_training.feed import MicroBatch
from trainfabric_training.model import Layer, gpt_layers, gpt_loss
from trainfabric_training.parallel import Mesh

_EPSILON = 1e-6
"""What torch and DeepSpeed add to the norm that they divide by."""


class SequentialModel(nn.Module):
    """All layers in order; layers of one tied key share a module."""

    def __init__(self, layers: tuple[Layer, ...]) -> None:
        super().__init__()
        shared: dict[str, nn.Module] = {}
        self._layers = layers
        self.modules_in_order = nn.ModuleList()
        for layer in layers:
            module = layer.build() if layer.tied is None else shared.setdefault(layer.tied, layer.build())
            self.modules_in_order.append(module)

    def forward(self, values: Tensor) -> Tensor:
        """Tokens [B, S] → logits [B, S, vocabulary]."""
        for layer, module in zip(self._layers, self.modules_in_order, strict=True):
            values = module(values) if layer.forward is None else layer.forward(module, values)
        return values


class ReferenceEngine:
    """One process, fp32."""

    def __init__(self, recipe: Recipe, device: torch.device) -> None:
        mesh = Mesh()
        self._recipe = recipe
        self._device = device
        self._model = SequentialModel(gpt_layers(recipe.model, mesh, recipe.seed)).to(device)
        self._loss = gpt_loss(recipe.model, mesh)
        self._optimizer = adamw(self._model.parameters(), recipe)
        self._schedule = Schedule(self._optimizer, recipe)

    def train_step(self, micro_batches: Iterator[MicroBatch]) -> StepOutcome:
        """One step: gradients summed over the micro-batches, clipped by their global norm."""
        rate, count, total = self._schedule.rate, accumulation(self._recipe, data=1), 0.0
        self._optimizer.zero_grad()
        for inputs, labels in micro_batches:
            loss = self._loss(self._model(inputs.to(self._device)), labels.to(self._device)) / count
            loss.backward()
            total += float(loss.detach())
        norm = clip_gradients(self._model, self._recipe.gradient_clipping)
        self._optimizer.step()
        self._schedule.step()
        return StepOutcome(loss=total, grad_norm=norm, learning_rate=rate)


def clip_gradients(model: nn.Module, largest: float) -> float:
    """Scales gradients down to a global norm of `largest`; the norm before.

    Summed in double precision, as DeepSpeed does: torch's own fp32 norm of a few hundred thousand elements was seen to
    be wrong in the fifth digit on CPUs, which clipping then spreads over all weights.
    """
    gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    norm = math.sqrt(sum(float(gradient.double().pow(2).sum()) for gradient in gradients))
    if norm > largest:
        for gradient in gradients:
            gradient.mul_(largest / (norm + _EPSILON))
    return norm
