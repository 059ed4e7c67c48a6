from __future__ import annotations

import itertools
import math
import random

import pytest

from trainfabric_node.checkpoint import Extent, Geometry, covered, intersections

Values = list[float]


def whole_tensor(shape: tuple[int, ...]) -> Values:
    return [float(index + 1) for index in range(math.prod(shape))]


def shard(values: Values, shape: tuple[int, ...], geometry: Geometry) -> Values:
    """The local tensor by index arithmetic of its own: element by element, padding as zeros."""
    local, dimension = geometry.local_shape, geometry.sharded_dimension
    shift = geometry.tensor_rank * local[dimension] if dimension is not None else 0
    found = []
    for position in itertools.product(*(range(size) for size in local)):
        index = list(position)
        if dimension is not None:
            index[dimension] += shift
        inside = all(at < size for at, size in zip(index, shape, strict=True))
        found.append(values[flat(index, shape)] if inside else 0.0)
    return found


def flat(index: list[int], shape: tuple[int, ...]) -> int:
    position = 0
    for at, size in zip(index, shape, strict=True):
        position = position * size + at
    return position


def geometries(shape: tuple[int, ...], dimension: int | None, degree: int) -> list[Geometry]:
    if dimension is None:
        return [Geometry(local_shape=shape)]
    local = list(shape)
    local[dimension] = -(-shape[dimension] // degree)
    return [
        Geometry(
            local_shape=tuple(local),
            sharded_dimension=dimension,
            tensor_degree=degree,
            tensor_rank=rank,
            logical_size=shape[dimension],
        )
        for rank in range(degree)
    ]


def cut(geometry: Geometry, generator: random.Random) -> list[Extent]:
    """The local tensor cut into flat slices at random places, as data-parallel partitions do."""
    places = sorted({0, geometry.elements, *(generator.randint(0, geometry.elements) for _ in range(3))})
    return [Extent(geometry=geometry, start=a, count=b - a) for a, b in itertools.pairwise(places)]


def fill(target: Extent, sources: list[tuple[Extent, Values]]) -> tuple[Values, int]:
    found, filled = [0.0] * target.count, 0
    for source, data in sources:
        for block in intersections(source, target):
            filled += block.rows * block.columns
            for row, column in itertools.product(range(block.rows), range(block.columns)):
                value = data[block.source_offset + row * block.source_stride + column]
                found[block.target_offset + row * block.target_stride + column] = value
    return found, filled


@pytest.mark.parametrize("shape", [(12,), (8, 6), (7, 5), (4, 6, 3), (1, 9)])
@pytest.mark.parametrize(("before", "after"), [(1, 1), (2, 1), (1, 2), (2, 3), (4, 2), (3, 4)])
def test_slices_of_any_layout_rebuild_those_of_any_other(shape: tuple[int, ...], before: int, after: int) -> None:
    generator = random.Random(f"{shape} {before} {after}")
    values = whole_tensor(shape)
    for dimension in (None, *range(len(shape))):
        stored = []
        for geometry in geometries(shape, dimension, before):
            local = shard(values, shape, geometry)
            stored += [(e, local[e.start : e.start + e.count]) for e in cut(geometry, generator)]
        for geometry in geometries(shape, dimension, after):
            expected = shard(values, shape, geometry)
            for target in cut(geometry, generator):
                found, filled = fill(target, stored)
                assert found == expected[target.start : target.start + target.count]
                assert filled == covered(target)


def test_a_missing_slice_shows_as_uncovered_elements() -> None:
    whole = Geometry(local_shape=(4, 4))
    half = Extent(geometry=whole, start=0, count=8)

    filled = sum(block.rows * block.columns for block in intersections(half, Extent(geometry=whole, start=0, count=16)))

    assert filled == 8
    assert covered(Extent(geometry=whole, start=0, count=16)) == 16


def test_padding_behind_the_logical_size_is_never_copied() -> None:
    padded = Geometry(local_shape=(8, 2), sharded_dimension=0, tensor_degree=2, tensor_rank=1, logical_size=11)
    everything = Extent(geometry=padded, start=0, count=16)

    assert covered(everything) == 3 * 2
    assert sum(block.rows * block.columns for block in intersections(everything, everything)) == 3 * 2
