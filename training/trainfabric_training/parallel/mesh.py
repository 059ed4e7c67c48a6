"""Where a rank stands among the others."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch.distributed as dist

from trainfabric_plan.layout import Layout


@dataclass(frozen=True, kw_only=True)
class Coordinates:
    """A rank's place on the three axes. Ranks count tensor first, then data, then pipeline."""

    pipeline: int
    data: int
    tensor: int


def coordinates(layout: Layout, rank: int) -> Coordinates:
    """The place of a rank: tensor neighbours are adjacent, so that they share a node."""
    rest, tensor = divmod(rank, layout.tensor)
    pipeline, data = divmod(rest, layout.data)
    return Coordinates(pipeline=pipeline, data=data, tensor=tensor)


@dataclass(frozen=True, kw_only=True)
class Mesh:
    """The layout seen from one rank; passed to whatever needs it, never a global.

    Attributes:
        layout: Degrees of parallelism.
        rank: This process.
        tensor_group: The ranks that share every layer with this one; `None` if it is alone.
    """

    layout: Layout = field(default_factory=Layout)
    rank: int = 0
    tensor_group: dist.ProcessGroup | None = None

    @classmethod
    def of_world(cls, layout: Layout, rank: int) -> Mesh:
        """The mesh over all processes of `torch.distributed`; makes the tensor groups, so every rank calls it."""
        own = None
        if layout.tensor > 1:
            for first in range(0, layout.ranks, layout.tensor):
                members = list(range(first, first + layout.tensor))
                group = dist.new_group(members)
                own = group if rank in members else own
        return cls(layout=layout, rank=rank, tensor_group=own)

    @property
    def place(self) -> Coordinates:
        """This rank on the three axes."""
        return coordinates(self.layout, self.rank)

    @property
    def tensor_degree(self) -> int:
        """Ranks that share every layer."""
        return self.layout.tensor

    @property
    def tensor_rank(self) -> int:
        """Which of them this one is."""
        return self.place.tensor
