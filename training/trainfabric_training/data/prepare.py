"""From text files to a corpus: tokenizer, `.bin/.idx` and facts, on disk or in a bucket."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from tokenizers import Tokenizer

from trainfabric_node.store import Store, open_store
from trainfabric_plan.errors import NotFound, mistake
from trainfabric_training.data.cache import split_prefix
from trainfabric_training.data.facts import CorpusFacts
from trainfabric_training.data.indexed import IndexedWriter, bin_path, idx_path
from trainfabric_training.data.tokenizer import encode_documents, train_tokenizer

_BATCH = 32


class Progress(Protocol):
    """Told how far the work is: `phase` is train, encode or write; `done` counts up to `total`."""

    def __call__(self, phase: str, done: int, total: int) -> None:
        """Called after each piece of work."""


def prepare(
    sources: Iterable[Path], output_uri_prefix: str, vocabulary: int, progress: Progress | None = None
) -> CorpusFacts:
    """Trains a byte-level BPE tokenizer on text files and writes the corpus under a prefix.

    Writes `<prefix>.bin`, `.idx`, `.tokenizer.json` and, last, `.json` with the facts: a corpus without facts is not
    one. The same files give the same bytes, in whatever order they are named.

    Args:
        sources: UTF-8 text files, one document each; empty and other files are skipped and counted.
        output_uri_prefix: Address such as `s3://bucket/data/name`, or a path.
        vocabulary: Largest number of tokens; fewer if the text has fewer pairs.
        progress: Told how far it is.

    Raises:
        NotFound: If no file can be used.
        InvalidInput: If the vocabulary is too small, or the address is none.
        Unreachable: If the output cannot be written.
    """
    folder, name = split_prefix(output_uri_prefix)
    store = open_store(folder)
    files = sorted(set(sources))
    texts = [text for text in map(_text, files) if text]
    if not texts:
        raise NotFound(
            f"{output_uri_prefix}: sources must hold UTF-8 text, got none in {len(files)} files; name others"
        )
    report = progress or _silent
    tokenizer = train_tokenizer(_told(texts, report), vocabulary, len(texts))
    with tempfile.TemporaryDirectory(prefix="corpus-") as directory:
        prefix = Path(directory) / "corpus"
        tokens = _write_tokens(tokenizer, texts, prefix, report)
        files_of = {
            f"{name}.bin": bin_path(prefix).read_bytes(),
            f"{name}.idx": idx_path(prefix).read_bytes(),
            f"{name}.tokenizer.json": tokenizer.to_str(pretty=True).encode(),
        }
    facts = CorpusFacts(
        documents=len(texts),
        tokens=tokens,
        vocabulary=tokenizer.get_vocab_size(),
        skipped=len(files) - len(texts),
        bin_sha256=_sha256(files_of[f"{name}.bin"]),
        idx_sha256=_sha256(files_of[f"{name}.idx"]),
        tokenizer_sha256=_sha256(files_of[f"{name}.tokenizer.json"]),
    )
    _upload(store, {**files_of, f"{name}.json": facts.model_dump_json(indent=2).encode()}, report)
    return facts


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None
    except OSError as error:
        raise mistake(str(path), "source file", "a readable file", error.strerror) from None


def _told(texts: Sequence[str], report: Progress) -> Iterator[str]:
    for number, text in enumerate(texts, start=1):
        yield text
        if number % _BATCH == 0 or number == len(texts):
            report("train", number, len(texts))


def _write_tokens(tokenizer: Tokenizer, texts: Sequence[str], prefix: Path, report: Progress) -> int:
    written = 0
    with IndexedWriter(prefix, tokenizer.get_vocab_size()) as writer:
        for start in range(0, len(texts), _BATCH):
            for tokens in encode_documents(tokenizer, texts[start : start + _BATCH]):
                writer.add(tokens)
                written += len(tokens)
            report("encode", min(start + _BATCH, len(texts)), len(texts))
    return written


def _upload(store: Store, objects: dict[str, bytes], report: Progress) -> None:
    for number, (key, data) in enumerate(objects.items(), start=1):
        store.put(key, data)
        report("write", number, len(objects))


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _silent(phase: str, done: int, total: int) -> None:
    """Progress that nobody looks at."""
