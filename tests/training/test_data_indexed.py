import struct
from pathlib import Path

import numpy as np
import pytest

from trainfabric_plan.errors import InvalidInput, NotFound
from trainfabric_training.data import IndexedTokens, IndexedWriter
from trainfabric_training.data.indexed import token_dtype


def _write(prefix: Path, *documents: list[int], vocabulary: int = 1000) -> Path:
    with IndexedWriter(prefix, vocabulary) as writer:
        for document in documents:
            writer.add(document)
    return prefix


def _damaged(prefix: Path, offset: int, data: bytes) -> Path:
    path = Path(f"{prefix}.idx")
    content = bytearray(path.read_bytes())
    content[offset : offset + len(data)] = data
    path.write_bytes(content)
    return prefix


def _message(prefix: Path) -> str:
    with pytest.raises(InvalidInput) as caught:
        IndexedTokens(prefix)
    return str(caught.value)


REMEDY = "the file is damaged or cut short: prepare or copy it again"


def test_the_index_is_byte_for_byte_what_megatron_documents(tmp_path: Path) -> None:
    _write(tmp_path / "c", [7, 8, 9], [10])

    index = (tmp_path / "c.idx").read_bytes()

    assert index == (
        b"MMIDIDX\x00\x00"
        + struct.pack("<Q", 1)  # version
        + struct.pack("<B", 8)  # uint16
        + struct.pack("<Q", 2)  # sequences
        + struct.pack("<Q", 3)  # document boundaries
        + struct.pack("<ii", 3, 1)  # lengths
        + struct.pack("<qq", 0, 6)  # byte offsets
        + struct.pack("<qqq", 0, 1, 2)  # documents begin at sequences 0 and 1; 2 is the end
    )
    assert (tmp_path / "c.bin").read_bytes() == struct.pack("<4H", 7, 8, 9, 10)


def test_tokens_are_int32_where_uint16_does_not_hold_the_vocabulary(tmp_path: Path) -> None:
    _write(tmp_path / "c", [70_000, 1], vocabulary=70_001)

    assert (tmp_path / "c.bin").read_bytes() == struct.pack("<2i", 70_000, 1)
    assert (tmp_path / "c.idx").read_bytes()[17] == 4
    assert token_dtype(65_499) == np.dtype("<u2")
    assert token_dtype(65_500) == np.dtype("<i4")


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    read = IndexedTokens(_write(tmp_path / "c", [1, 2, 3], [], [4, 5]))

    assert [read.sequence(number).tolist() for number in range(len(read))] == [[1, 2, 3], [], [4, 5]]
    assert read.tokens.tolist() == [1, 2, 3, 4, 5]
    assert read.documents.tolist() == [0, 1, 2, 3]


def test_a_dot_in_the_name_of_a_corpus_stays(tmp_path: Path) -> None:
    _write(tmp_path / "stdlib-3.11", [1])

    assert (tmp_path / "stdlib-3.11.bin").exists()


def test_a_token_beyond_the_vocabulary_is_refused_with_its_document(tmp_path: Path) -> None:
    with IndexedWriter(tmp_path / "c", 100) as writer:
        writer.add([99])
        with pytest.raises(InvalidInput) as caught:
            writer.add([5, 100])

    assert str(caught.value) == (
        f"{tmp_path}/c.bin: document 1: token must be from 0 to 99, got 100; use the corpus's own tokenizer"
    )


def test_no_index_appears_when_writing_fails(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput), IndexedWriter(tmp_path / "c", 100) as writer:
        writer.add([-1])

    assert not (tmp_path / "c.idx").exists()


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    _write(tmp_path / "c", [1])
    (tmp_path / "c.bin").unlink()

    with pytest.raises(NotFound) as caught:
        IndexedTokens(tmp_path / "c")

    assert str(caught.value) == (
        f"{tmp_path}/c.bin: corpus file must be an existing file, got none; prepare the corpus first"
    )


@pytest.mark.parametrize(
    ("offset", "data", "says"),
    [
        (0, b"NOTIDX!", "the first nine bytes must be b'MMIDIDX\\x00\\x00', got b'NOTIDX!\\x00\\x00'"),
        (9, struct.pack("<Q", 2), "version must be 1, got 2"),
        (17, b"\x07", "dtype code must be one of 1, 2, 3, 4, 5, 8, got 7"),
        (18, struct.pack("<Q", 9), "size must be 166 bytes for 9 sequences, got 82"),
        (34, struct.pack("<i", 4), "offsets of sequences must be the sums of the lengths before them"),
        (58, struct.pack("<q", 1), "document boundaries must be ascending from 0 to 2"),
    ],
)
def test_a_damaged_index_is_refused(tmp_path: Path, offset: int, data: bytes, says: str) -> None:
    prefix = _damaged(_write(tmp_path / "c", [7, 8, 9], [10]), offset, data)

    assert _message(prefix) == f"{tmp_path}/c.idx: {says}; {REMEDY}"


def test_a_cut_index_is_refused(tmp_path: Path) -> None:
    prefix = _write(tmp_path / "c", [7, 8, 9])
    (tmp_path / "c.idx").write_bytes(b"MMIDIDX")

    assert _message(prefix) == f"{tmp_path}/c.idx: size must be at least 34 bytes, got 7; {REMEDY}"


def test_cut_tokens_are_refused(tmp_path: Path) -> None:
    prefix = _write(tmp_path / "c", [7, 8, 9])
    (tmp_path / "c.bin").write_bytes(b"\x07\x00")

    assert _message(prefix) == f"{tmp_path}/c.bin: size must be 6 bytes for the 3 tokens of its index, got 2; {REMEDY}"
