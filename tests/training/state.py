"""Checkpoints put together into whole tensors, by arithmetic of the tests' own, to compare them bit for bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from trainfabric_node.checkpoint import CheckpointReader, CheckpointStore, Geometry
from trainfabric_node.store import open_store

Tensors = dict[tuple[str, str], npt.NDArray[np.uint32]]


def reader_at(checkpoints: Path, step: int) -> CheckpointReader:
    opened = CheckpointStore(open_store(str(checkpoints)))
    return opened.open(opened.at_step(step))


def whole_tensors(checkpoints: Path, step: int) -> Tensors:
    """Every tensor of a checkpoint without padding, as the bits of its float32 elements.

    Local tensors are filled slice by slice, then joined along the dimension that they are cut along.
    """
    reader = reader_at(checkpoints, step)
    local: dict[tuple[str, str], dict[int, npt.NDArray[np.uint32]]] = {}
    written: dict[tuple[str, str, int], npt.NDArray[np.int64]] = {}
    geometries: dict[str, Geometry] = {}
    for part in reader.manifest.parts:
        for piece in part.slices:
            bits = np.frombuffer(reader.read(part, piece.offset, 4 * piece.count), dtype="<u4")
            rank = piece.geometry.tensor_rank
            shards = local.setdefault((piece.parameter, piece.kind), {})
            shard = shards.setdefault(rank, np.zeros(piece.geometry.elements, dtype=np.uint32))
            shard[piece.start : piece.start + piece.count] = bits
            count = written.setdefault((piece.parameter, piece.kind, rank), np.zeros(len(shard), dtype=np.int64))
            count[piece.start : piece.start + piece.count] += 1
            geometries[piece.parameter] = piece.geometry
    assert all((count == 1).all() for count in written.values())
    return {key: _joined(shards, geometries[key[0]]) for key, shards in local.items()}


def _joined(shards: dict[int, npt.NDArray[np.uint32]], geometry: Geometry) -> npt.NDArray[np.uint32]:
    assert sorted(shards) == list(range(geometry.tensor_degree if geometry.sharded_dimension is not None else 1))
    parts = [shards[rank].reshape(geometry.local_shape) for rank in sorted(shards)]
    if geometry.sharded_dimension is None:
        return parts[0]
    whole = np.concatenate(parts, geometry.sharded_dimension)
    assert geometry.logical_size is not None
    logical, padding = np.split(whole, [geometry.logical_size], geometry.sharded_dimension)
    assert not padding.any()
    return logical


def assert_equal_bits(ours: Tensors, theirs: Tensors) -> None:
    assert ours.keys() == theirs.keys()
    for key, tensor in ours.items():
        assert np.array_equal(tensor, theirs[key]), key
