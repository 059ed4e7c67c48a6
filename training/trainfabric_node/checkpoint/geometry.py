"""Where a flat slice of a tensor-parallel shard lies in the whole tensor, and where two of them meet.

A shard that is cut along dimension d is seen as a matrix: rows are all dimensions before d, columns are d and what
follows. The shard of tensor rank r holds the columns from r × its width on. A flat slice of it is at most three
rectangles (first row's end, whole rows, last row's start), so that two slices of any two layouts meet in rectangles.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from trainfabric_plan.model import Strict

Count = Annotated[int, Field(ge=0)]


class Geometry(Strict):
    """How a rank's local tensor lies in the whole one.

    `logical_size` is the size of the cut dimension over all ranks without padding; what lies behind it is padding,
    which is zero and never stored across layouts.
    """

    local_shape: tuple[Count, ...]
    sharded_dimension: int | None = None
    tensor_degree: Annotated[int, Field(ge=1)] = 1
    tensor_rank: Count = 0
    logical_size: Count | None = None

    @property
    def elements(self) -> int:
        """Elements of the local tensor."""
        return math.prod(self.local_shape)

    @property
    def width(self) -> int:
        """Columns of the local matrix; a tensor that is not cut is a single row."""
        if self.sharded_dimension is None:
            return self.elements
        return math.prod(self.local_shape[self.sharded_dimension :])

    @property
    def first_column(self) -> int:
        """Column of the whole matrix where the local one starts."""
        return self.tensor_rank * self.width if self.sharded_dimension is not None else 0

    @property
    def logical_columns(self) -> int:
        """Columns of the whole matrix without padding."""
        if self.sharded_dimension is None:
            return self.width
        if self.logical_size is None:
            return self.width * self.tensor_degree
        return self.logical_size * math.prod(self.local_shape[self.sharded_dimension + 1 :])


@dataclass(frozen=True, kw_only=True)
class Extent:
    """`count` elements from `start` on of a flattened local tensor."""

    geometry: Geometry
    start: int
    count: int


@dataclass(frozen=True, kw_only=True)
class Block:
    """A rectangle to copy; offsets are elements from the start of each extent, strides elements between rows."""

    rows: int
    columns: int
    source_offset: int
    source_stride: int
    target_offset: int
    target_stride: int

    @property
    def source_end(self) -> int:
        """First element of the source behind the rectangle's last one."""
        return self.source_offset + (self.rows - 1) * self.source_stride + self.columns


def intersections(source: Extent, target: Extent) -> Iterator[Block]:
    """Every rectangle of the whole tensor that both extents hold, without padding."""
    source_width, target_width = source.geometry.width, target.geometry.width
    source_first, target_first = source.geometry.first_column, target.geometry.first_column
    limit = min(source.geometry.logical_columns, target.geometry.logical_columns)
    for ours in _rectangles(source):
        for theirs in _rectangles(target):
            top, bottom = max(ours.top, theirs.top), min(ours.bottom, theirs.bottom)
            left = max(ours.left + source_first, theirs.left + target_first)
            right = min(ours.right + source_first, theirs.right + target_first, limit)
            if top < bottom and left < right:
                yield Block(
                    rows=bottom - top,
                    columns=right - left,
                    source_offset=top * source_width + left - source_first - source.start,
                    source_stride=source_width,
                    target_offset=top * target_width + left - target_first - target.start,
                    target_stride=target_width,
                )


def covered(extent: Extent) -> int:
    """Elements of the extent that are not padding: what the blocks that fill it must sum up to."""
    first, limit = extent.geometry.first_column, extent.geometry.logical_columns
    return sum(
        (part.bottom - part.top) * max(0, min(part.right + first, limit) - (part.left + first))
        for part in _rectangles(extent)
    )


@dataclass(frozen=True)
class _Rectangle:
    top: int
    bottom: int
    left: int
    right: int


def _rectangles(extent: Extent) -> list[_Rectangle]:
    width = extent.geometry.width
    if not width or not extent.count:
        return []
    (first, left), (last, right) = divmod(extent.start, width), divmod(extent.start + extent.count, width)
    if first == last:
        return [_Rectangle(first, first + 1, left, right)]
    found = []
    if left:
        found.append(_Rectangle(first, first + 1, left, width))
        first += 1
    if first < last:
        found.append(_Rectangle(first, last, 0, width))
    if right:
        found.append(_Rectangle(last, last + 1, 0, right))
    return found
