"""Reading a committed checkpoint; every chunk is held against its checksum before a byte of it is used."""

from __future__ import annotations

import hashlib
from collections import OrderedDict, defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NoReturn

import google_crc32c

from trainfabric_node.checkpoint.manifest import Kind, Manifest, Part, Slice
from trainfabric_node.store import ObjectMissing, Store
from trainfabric_plan.errors import NotFound, mistake

_CHUNKS_KEPT = 8
_SIZES_AT_ONCE = 16
REMEDY = "restore the object, or resume an older commit with --from-step"


@dataclass(frozen=True)
class StoredSlice:
    """A slice and the part that holds it."""

    part: Part
    slice: Slice


class CheckpointReader:
    """The slices of one checkpoint, by parameter and kind."""

    def __init__(self, store: Store, manifest: Manifest) -> None:
        self.manifest = manifest
        self._store = store
        self._chunks: OrderedDict[tuple[str, int], bytes] = OrderedDict()
        self._by_name: defaultdict[tuple[str, Kind], list[StoredSlice]] = defaultdict(list)
        for part in manifest.parts:
            for piece in part.slices:
                self._by_name[piece.parameter, piece.kind].append(StoredSlice(part, piece))

    @property
    def parameters(self) -> frozenset[str]:
        """Names of the parameters in the checkpoint."""
        return frozenset(parameter for parameter, _ in self._by_name)

    def slices(self, parameter: str, kind: Kind) -> list[StoredSlice]:
        """Every stored slice of one tensor; raises `InvalidInput` if the checkpoint has none."""
        found = self._by_name.get((parameter, kind))
        if found is None:
            self._corrupt("manifest.json", f"one with {parameter} ({kind})", "none of it", "check the recipe")
        return found

    def read(self, part: Part, start: int, length: int) -> bytes:
        """Bytes of a part, verified.

        Raises:
            NotFound: If the part is missing.
            InvalidInput: If it is truncated or does not match its checksums.
        """
        size = self.manifest.chunk_bytes
        first, last = start // size, (start + length - 1) // size
        data = b"".join(self._chunk(part, index) for index in range(first, last + 1))
        return data[start - first * size : start - first * size + length]

    def check_complete(self) -> None:
        """Sees that every part is there with its size, which reads none of its bytes.

        Raises:
            NotFound: If a part is missing.
            InvalidInput: If one has another size.
        """
        with ThreadPoolExecutor(_SIZES_AT_ONCE) as pool:
            for _ in pool.map(self._check_size, self.manifest.parts):
                pass

    def verify(self) -> None:
        """Reads every part whole and holds it against its SHA-256; raises as `read` does."""
        for part in self.manifest.parts:
            digest = hashlib.sha256(self.read(part, 0, part.size)).hexdigest()
            if digest != part.sha256:
                self._corrupt(part.key, f"an object with SHA-256 {part.sha256}", digest, REMEDY)

    def _check_size(self, part: Part) -> None:
        try:
            size = self._store.size(part.key)
        except ObjectMissing:
            raise self._missing(part) from None
        if size != part.size:
            self._corrupt(part.key, f"an object of {part.size} bytes", size, REMEDY)

    def _chunk(self, part: Part, index: int) -> bytes:
        key = (part.key, index)
        if key not in self._chunks:
            self._chunks[key] = self._verified(part, index)
            if len(self._chunks) > _CHUNKS_KEPT:
                self._chunks.popitem(last=False)
        self._chunks.move_to_end(key)
        return self._chunks[key]

    def _verified(self, part: Part, index: int) -> bytes:
        start = index * self.manifest.chunk_bytes
        expected = min(self.manifest.chunk_bytes, part.size - start)
        try:
            data = self._store.get_range(part.key, start, expected)
        except ObjectMissing:
            raise self._missing(part) from None
        if len(data) != expected:
            self._corrupt(part.key, f"an object of {part.size} bytes", start + len(data), REMEDY)
        checksum = google_crc32c.value(data)
        if checksum != part.crc32c[index]:
            rule = f"an object whose chunk {index} has CRC32C {part.crc32c[index]:08x}"
            self._corrupt(part.key, rule, f"{checksum:08x}", REMEDY)
        return data

    def _missing(self, part: Part) -> NotFound:
        return NotFound(f"{self._store.uri}: {part.key} must exist, got none; {REMEDY}")

    def _corrupt(self, key: str, rule: str, got: object, remedy: str) -> NoReturn:
        raise mistake(self._store.uri, key, rule, got, remedy)
