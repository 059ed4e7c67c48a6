"""Writing one rank's slices as parts."""

from __future__ import annotations

import hashlib

import google_crc32c

from trainfabric_node.checkpoint.geometry import Geometry
from trainfabric_node.checkpoint.manifest import CHUNK_BYTES, ELEMENT_BYTES, Kind, Part, Slice
from trainfabric_node.store import Store

PART_BYTES = 16 * CHUNK_BYTES


class PartWriter:
    """Collects slices and writes a part whenever `part_bytes` are together; holds at most one part in memory."""

    def __init__(
        self, store: Store, key_prefix: str, *, part_bytes: int = PART_BYTES, chunk_bytes: int = CHUNK_BYTES
    ) -> None:
        self._store = store
        self._key_prefix = key_prefix
        self._part_bytes = part_bytes
        self._chunk_bytes = chunk_bytes
        self._buffer = bytearray()
        self._slices: list[Slice] = []
        self._parts: list[Part] = []

    def add(self, *, parameter: str, kind: Kind, geometry: Geometry, start: int, data: memoryview) -> None:
        """Adds a slice; one that does not fit into the part goes on in the next.

        Args:
            parameter: Name, the same on every layout.
            kind: Which of the optimizer's tensors it is.
            geometry: Where the local tensor lies in the whole one.
            start: First element of the slice in the flattened local tensor.
            data: Its float32 elements, little-endian, as bytes.
        """
        while data:
            room = (self._part_bytes - len(self._buffer)) // ELEMENT_BYTES * ELEMENT_BYTES
            if room <= 0:
                self._flush()
                continue
            piece, data = data[:room], data[room:]
            count, offset = len(piece) // ELEMENT_BYTES, len(self._buffer)
            self._slices.append(
                Slice(parameter=parameter, kind=kind, geometry=geometry, start=start, count=count, offset=offset)
            )
            self._buffer += piece
            start += count

    def finish(self) -> list[Part]:
        """Writes what is left; the parts, all of them durable."""
        if self._buffer:
            self._flush()
        return self._parts

    def _flush(self) -> None:
        data = bytes(self._buffer)
        part = Part(
            key=f"{self._key_prefix}-{len(self._parts):04d}.bin",
            size=len(data),
            sha256=hashlib.sha256(data).hexdigest(),
            crc32c=tuple(
                google_crc32c.value(data[start : start + self._chunk_bytes])
                for start in range(0, len(data), self._chunk_bytes)
            ),
            slices=tuple(self._slices),
        )
        self._store.put(part.key, data)
        self._parts.append(part)
        self._buffer.clear()
        self._slices.clear()
