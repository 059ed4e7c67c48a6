"""Megatron's indexed dataset: tokens in a `.bin` file, their layout in an `.idx` file, so that either side reads both.

Layout of `.idx`, little endian (Megatron-LM, megatron/core/datasets/indexed_dataset.py, `_IndexWriter`, 2026): magic
`MMIDIDX\\0\\0`; version 1 as u64; dtype code as u8; count of sequences as u64; count of document boundaries as u64;
length of each sequence as i32; byte offset of each in `.bin` as i64; boundaries of the documents, as indices of
sequences from 0 to their count, as i64. One document is one sequence here.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from trainfabric_plan.errors import InvalidInput, NotFound, mistake

MAGIC = b"MMIDIDX\x00\x00"
VERSION = 1
_HEADER = struct.Struct("<9sQBQQ")
_DTYPES: dict[int, np.dtype[Any]] = {
    1: np.dtype("u1"),
    2: np.dtype("i1"),
    3: np.dtype("<i2"),
    4: np.dtype("<i4"),
    5: np.dtype("<i8"),
    8: np.dtype("<u2"),
}
_CODES = {dtype: code for code, dtype in _DTYPES.items()}
_UINT16_VOCABULARY = 65500
"""Megatron's `optimal_dtype` writes uint16 below this many entries."""


def bin_path(prefix: Path) -> Path:
    """The token file of a prefix."""
    return prefix.with_name(f"{prefix.name}.bin")


def idx_path(prefix: Path) -> Path:
    """The index file of a prefix."""
    return prefix.with_name(f"{prefix.name}.idx")


def token_dtype(vocabulary: int) -> np.dtype[Any]:
    """The type that Megatron would choose for this many entries: uint16 or int32."""
    return np.dtype("<u2") if vocabulary < _UINT16_VOCABULARY else np.dtype("<i4")


class IndexedWriter:
    """Writes documents one after the other; `.idx` appears when the `with` block ends without an error.

    Args:
        prefix: Path without suffix; `.bin` and `.idx` are appended to its name.
        vocabulary: Every token must be below it; decides the type of the tokens.
    """

    def __init__(self, prefix: Path, vocabulary: int) -> None:
        self._prefix = prefix
        self._vocabulary = vocabulary
        self._dtype = token_dtype(vocabulary)
        self._lengths: list[int] = []
        self._bin: BinaryIO = bin_path(prefix).open("wb")

    def __enter__(self) -> IndexedWriter:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._bin.close()
        if kind is None:
            idx_path(self._prefix).write_bytes(_index(self._lengths, self._dtype))

    def add(self, tokens: Sequence[int]) -> None:
        """Appends a document.

        Raises:
            InvalidInput: If a token is not in the vocabulary.
        """
        values = np.asarray(tokens, dtype=np.int64)
        if values.size and not 0 <= int(values.min()) <= int(values.max()) < self._vocabulary:
            worst = int(values.min()) if values.min() < 0 else int(values.max())
            where = f"{bin_path(self._prefix)}: document {len(self._lengths)}"
            raise mistake(where, "token", f"from 0 to {self._vocabulary - 1}", worst, "use the corpus's own tokenizer")
        self._bin.write(values.astype(self._dtype).tobytes())
        self._lengths.append(len(values))


def _index(lengths: Sequence[int], dtype: np.dtype[Any]) -> bytes:
    sizes = np.asarray(lengths, dtype="<i4")
    header = _HEADER.pack(MAGIC, VERSION, _CODES[dtype], len(sizes), len(sizes) + 1)
    documents = np.arange(len(sizes) + 1, dtype="<i8")
    return header + sizes.tobytes() + _pointers(sizes, dtype).tobytes() + documents.tobytes()


def _pointers(sizes: npt.NDArray[Any], dtype: np.dtype[Any]) -> npt.NDArray[np.int64]:
    ends = np.cumsum(sizes, dtype=np.int64)
    return np.concatenate([np.zeros(min(1, len(sizes)), np.int64), ends[:-1]]) * dtype.itemsize


class IndexedTokens:
    """A `.bin/.idx` pair, mapped into memory and checked against each other.

    Attributes:
        tokens: All tokens as one array [tokens], read from disk as they are touched.
        boundaries: Where sequences begin in `tokens`, and the end: [sequences + 1].
        documents: Indices of sequences where documents begin, and their count: [documents + 1].

    Raises:
        NotFound: If one of the files is missing.
        InvalidInput: If one of them is not what the format says, or they do not belong together.
    """

    def __init__(self, prefix: Path) -> None:
        dtype, sizes, pointers, self.documents = _read_index(idx_path(prefix))
        self.boundaries = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])
        if (sizes < 0).any() or not np.array_equal(pointers, self.boundaries[:-1] * dtype.itemsize):
            raise _corrupt(idx_path(prefix), "offsets of sequences", "the sums of the lengths before them")
        self.tokens = _map_tokens(bin_path(prefix), dtype, int(self.boundaries[-1]))

    def __len__(self) -> int:
        """Number of sequences."""
        return len(self.boundaries) - 1

    def sequence(self, number: int) -> npt.NDArray[Any]:
        """The tokens of a sequence, in the type of the file."""
        if not 0 <= number < len(self):
            raise IndexError(f"sequence {number} of {len(self)}")
        return self.tokens[self.boundaries[number] : self.boundaries[number + 1]]


def _read_index(path: Path) -> tuple[np.dtype[Any], npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
    data = _read(path)
    if len(data) < _HEADER.size:
        raise _corrupt(path, "size", f"at least {_HEADER.size} bytes", len(data))
    magic, version, code, sequences, boundaries = _HEADER.unpack_from(data)
    if magic != MAGIC:
        raise _corrupt(path, "the first nine bytes", f"{MAGIC!r}", repr(magic))
    if version != VERSION:
        raise _corrupt(path, "version", str(VERSION), version)
    if code not in _DTYPES:
        raise _corrupt(path, "dtype code", f"one of {', '.join(map(str, _DTYPES))}", code)
    expected = _HEADER.size + 12 * sequences + 8 * boundaries
    if len(data) != expected:
        raise _corrupt(path, "size", f"{expected} bytes for {sequences} sequences", len(data))
    sizes = np.frombuffer(data, "<i4", sequences, _HEADER.size)
    pointers = np.frombuffer(data, "<i8", sequences, _HEADER.size + 4 * sequences)
    documents = np.frombuffer(data, "<i8", boundaries, _HEADER.size + 12 * sequences)
    if not len(documents) or documents[0] != 0 or documents[-1] != sequences or (np.diff(documents) < 0).any():
        raise _corrupt(path, "document boundaries", f"ascending from 0 to {sequences}")
    return _DTYPES[code], sizes, pointers, documents


def _map_tokens(path: Path, dtype: np.dtype[Any], count: int) -> npt.NDArray[Any]:
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        raise _missing(path) from None
    if size != count * dtype.itemsize:
        rule = f"{count * dtype.itemsize} bytes for the {count} tokens of its index"
        raise _corrupt(path, "size", rule, size)
    return np.memmap(path, dtype=dtype, mode="r") if count else np.zeros(0, dtype)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise _missing(path) from None


def _missing(path: Path) -> NotFound:
    return NotFound(f"{path}: corpus file must be an existing file, got none; prepare the corpus first")


def _corrupt(path: Path, name: str, rule: str, got: object = None) -> InvalidInput:
    return mistake(str(path), name, rule, got, "the file is damaged or cut short: prepare or copy it again")
