"""The manifest of a checkpoint: what its parts hold, and every scalar of the training state."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import Field

from trainfabric_node.checkpoint.geometry import Count, Extent, Geometry
from trainfabric_plan.layout import Layout
from trainfabric_plan.model import Strict
from trainfabric_plan.recipes import Recipe

FORMAT_VERSION = 1
ELEMENT_BYTES = 4
CHUNK_BYTES = 16 * 1024 * 1024

Kind = Literal["master", "exp_avg", "exp_avg_sq"]

MAY_CHANGE = {"name", "description", "steps", "checkpoint_every", "micro_batch"}
"""What of a recipe may differ when a checkpoint of it is resumed."""


class Slice(Strict):
    """`count` float32 elements from `start` on of a rank's flattened local tensor, at byte `offset` of a part."""

    parameter: str
    kind: Kind
    geometry: Geometry
    start: Count
    count: Count
    offset: Count

    @property
    def extent(self) -> Extent:
        """Where the slice lies in its parameter."""
        return Extent(geometry=self.geometry, start=self.start, count=self.count)


class Part(Strict):
    """One object of slices. `crc32c` has one value per chunk of 16 MiB, the last of which may be shorter."""

    key: str
    size: Count
    sha256: str
    crc32c: tuple[Count, ...]
    slices: tuple[Slice, ...]


class RankState(Strict):
    """What belongs to one rank: states of its random generators by device type, base64."""

    rank: Count
    random: dict[str, str]


class Counters(Strict):
    """Scalars of the training state, the same on all ranks.

    `samples` is the data cursor: samples consumed from the recipe's seed on. `engine` are counters of the engine,
    `scheduler` its learning rate schedule's.
    """

    optimizer_step: Count
    samples: Count
    engine: dict[str, int]
    scheduler: dict[str, Any]
    learning_rates: tuple[float, ...]


class Manifest(Strict):
    """Everything about one checkpoint except the tensors' bytes."""

    format_version: Annotated[int, Field(ge=1, le=FORMAT_VERSION)] = FORMAT_VERSION
    element: Literal["float32"] = "float32"
    chunk_bytes: Annotated[int, Field(gt=0)] = CHUNK_BYTES
    job: str
    step: Count
    nonce: str
    created: str
    code_version: str
    layout: Layout
    recipe: Recipe
    counters: Counters
    ranks: tuple[RankState, ...]
    parts: tuple[Part, ...]

    def to_bytes(self) -> bytes:
        """The manifest as it is stored: JSON in UTF-8."""
        return json.dumps(self.model_dump(mode="json"), separators=(",", ":")).encode()


def recipe_differences(saved: Recipe, given: Recipe) -> list[str]:
    """Fields, as `name: saved → given`, that keep a checkpoint of one recipe from going on with the other."""
    before, after = saved.model_dump(), given.model_dump()
    return [
        f"{name}: {before[name]} → {after[name]}"
        for name in before
        if name not in MAY_CHANGE and before[name] != after[name]
    ]
