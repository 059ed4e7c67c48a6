"""The two conjugate operations of tensor parallelism (Shoeybi et al. 2019, figure 3), as autograd functions."""

from __future__ import annotations

from typing import Any

import torch.distributed as dist
from torch import Tensor, autograd

from trainfabric_training.parallel.mesh import Mesh


def copy_to_tensor_ranks(mesh: Mesh, values: Tensor) -> Tensor:
    """The values as they are; their gradient is summed over the tensor ranks."""
    if mesh.tensor_group is None:
        return values
    copied: Tensor = _Copy.apply(values, mesh.tensor_group)  # type: ignore[no-untyped-call]
    return copied


def sum_over_tensor_ranks(mesh: Mesh, values: Tensor) -> Tensor:
    """The sum over the tensor ranks; its gradient goes to each of them as it is."""
    if mesh.tensor_group is None:
        return values
    reduced: Tensor = _Sum.apply(values, mesh.tensor_group)  # type: ignore[no-untyped-call]
    return reduced


def _summed(values: Tensor, group: dist.ProcessGroup) -> Tensor:
    total = values.contiguous().clone()
    dist.all_reduce(total, group=group)
    return total


class _Copy(autograd.Function):
    @staticmethod
    def forward(context: Any, values: Tensor, group: dist.ProcessGroup) -> Tensor:
        context.group = group
        return values.view_as(values)

    @staticmethod
    def backward(context: Any, *gradients: Any) -> Any:
        return _summed(gradients[0], context.group), None


class _Sum(autograd.Function):
    @staticmethod
    def forward(context: Any, values: Tensor, group: dist.ProcessGroup) -> Tensor:
        return _summed(values, group)

    @staticmethod
    def backward(context: Any, *gradients: Any) -> Any:
        return gradients[0], None
