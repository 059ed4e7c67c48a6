"""Parameters that know their name and where their shard lies; the same weights on every layout.

A name does not depend on the layout, and a weight is drawn whole from a generator seeded by its name, then cut.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from trainfabric_node.checkpoint import Geometry
from trainfabric_training.parallel.mesh import Mesh

_ATTRIBUTE = "trainfabric_info"


@dataclass(frozen=True, kw_only=True)
class ParameterInfo:
    """What a checkpoint says about a parameter: its name on every layout, and this shard's place in the whole."""

    name: str
    geometry: Geometry


def info_of(parameter: Tensor) -> ParameterInfo:
    """The name and place of a parameter that one of our layers made."""
    found = getattr(parameter, _ATTRIBUTE, None)
    assert isinstance(found, ParameterInfo), "every parameter comes from replicated() or sharded()"
    return found


@dataclass(frozen=True, kw_only=True)
class Initial:
    """How weights start: from a normal distribution of this deviation."""

    seed: int
    deviation: float

    def scaled(self, factor: float) -> Initial:
        """The same with another deviation."""
        return Initial(seed=self.seed, deviation=self.deviation * factor)

    def drawn(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """A whole weight, a function of seed, name and shape alone."""
        digest = hashlib.sha256(f"{self.seed}:{name}".encode()).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest[:7], "big"))
        return torch.empty(shape).normal_(0.0, self.deviation, generator=generator)


def replicated(name: str, whole: Tensor) -> nn.Parameter:
    """A parameter that every tensor rank holds whole; its gradients are equal, because its inputs are."""
    parameter = nn.Parameter(whole)
    setattr(parameter, _ATTRIBUTE, ParameterInfo(name=name, geometry=Geometry(local_shape=tuple(whole.shape))))
    return parameter


def sharded(mesh: Mesh, name: str, whole: Tensor, dimension: int, *, padded_size: int | None = None) -> nn.Parameter:
    """This rank's shard of a parameter that is cut along `dimension`.

    Rows behind the whole's own up to `padded_size` are zero. They stay zero: they get no gradient, and decay keeps
    zero zero.
    """
    logical = whole.shape[dimension]
    if padded_size is not None and padded_size > logical:
        padding = list(whole.shape)
        padding[dimension] = padded_size - logical
        whole = torch.cat([whole, torch.zeros(padding)], dimension)
    shard = whole.chunk(mesh.tensor_degree, dimension)[mesh.tensor_rank].clone()
    parameter = nn.Parameter(shard)
    geometry = Geometry(
        local_shape=tuple(shard.shape),
        sharded_dimension=dimension,
        tensor_degree=mesh.tensor_degree,
        tensor_rank=mesh.tensor_rank,
        logical_size=logical,
    )
    setattr(parameter, _ATTRIBUTE, ParameterInfo(name=name, geometry=geometry))
    for mark in ("model_parallel", "tensor_model_parallel"):  # DeepSpeed's norm counts unmarked ones on rank 0 only
        setattr(parameter, mark, True)
    return parameter
