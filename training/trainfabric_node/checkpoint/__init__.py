"""Checkpoints as named slices with a manifest and one ordered log of commits; format version 1, no torch.

    log/00000001.json                              claim: a run takes over the job
    log/00000002.json                              commit: step, key and SHA-256 of the manifest
    steps/00000010-<nonce>/manifest.json           what the parts hold
    steps/00000010-<nonce>/rank00000-0000.bin      little-endian float32 of the slices, one after the other

Whatever the log does not name does not exist. Objects below `steps/` are never changed.
"""

from trainfabric_node.checkpoint.geometry import Block, Extent, Geometry, covered, intersections
from trainfabric_node.checkpoint.log import LogEntry
from trainfabric_node.checkpoint.manifest import (
    ELEMENT_BYTES,
    FORMAT_VERSION,
    Counters,
    Kind,
    Manifest,
    Part,
    RankState,
    Slice,
    recipe_differences,
)
from trainfabric_node.checkpoint.reader import CheckpointReader
from trainfabric_node.checkpoint.store import CheckpointStore, new_nonce
from trainfabric_node.checkpoint.writer import PartWriter

__all__ = [
    "ELEMENT_BYTES",
    "FORMAT_VERSION",
    "Block",
    "CheckpointReader",
    "CheckpointStore",
    "Counters",
    "Extent",
    "Geometry",
    "Kind",
    "LogEntry",
    "Manifest",
    "Part",
    "PartWriter",
    "RankState",
    "Slice",
    "covered",
    "intersections",
    "new_nonce",
    "recipe_differences",
]
