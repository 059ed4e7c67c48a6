"""A node's copies of corpora in buckets, one per content, shared by its ranks."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from trainfabric_node.store import ObjectMissing, Store, open_store
from trainfabric_plan.errors import NotFound, mistake
from trainfabric_training.data.facts import CorpusFacts, read_facts

_PIECE = 32 * 1024 * 1024
_NAME = "corpus"


def split_prefix(uri_prefix: str) -> tuple[str, str]:
    """A corpus's address as its folder and the name that its files begin with.

    Raises:
        InvalidInput: If the address names a folder only.
    """
    folder, _, name = uri_prefix.rpartition("/")
    if not name or folder.endswith(":/"):
        rule = "the folder and the beginning of the files' names, such as s3://bucket/data/name"
        raise mistake(repr(uri_prefix), "corpus address", rule, repr(uri_prefix))
    return folder or ("/" if uri_prefix.startswith("/") else "."), name


def local_copy(uri_prefix: str, cache: Path) -> tuple[Path, CorpusFacts]:
    """Path prefix of the corpus on this node, and its facts; downloads what lies in a bucket and is not here yet."""
    folder, name = split_prefix(uri_prefix)
    store = open_store(folder)
    facts = _facts(store, name)
    if "://" not in folder:
        return Path(folder) / name, facts
    target = cache / "corpora" / facts.identity
    with _locked(target.with_name(f"{target.name}.lock")):
        if not target.exists():
            _download(store, name, facts, target)
    return target / _NAME, facts


def _facts(store: Store, name: str) -> CorpusFacts:
    try:
        return read_facts(store.get(f"{name}.json"), f"{store.uri}{name}.json")
    except ObjectMissing:
        remedy = f"write it with python -m trainfabric_training.data prepare --output {store.uri}{name}"
        raise NotFound(f"{store.uri}{name}.json: corpus must be a prepared one, got none; {remedy}") from None


def _download(store: Store, name: str, facts: CorpusFacts, target: Path) -> None:
    unfinished = target.with_name(f"{target.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    _fetch(store, f"{name}.bin", unfinished / f"{_NAME}.bin", facts.bin_sha256)
    _fetch(store, f"{name}.idx", unfinished / f"{_NAME}.idx", facts.idx_sha256)
    unfinished.rename(target)


def _fetch(store: Store, key: str, path: Path, sha256: str) -> None:
    digest, start, size = hashlib.sha256(), 0, store.size(key)
    with path.open("wb") as file:
        while start < size:
            piece = store.get_range(key, start, _PIECE)
            if not piece:
                break
            digest.update(piece)
            file.write(piece)
            start += len(piece)
    if digest.hexdigest() != sha256:
        remedy = "the object is damaged or being replaced: prepare the corpus again"
        raise mistake(f"{store.uri}{key}", "sha256", f"{sha256}, as its facts say", digest.hexdigest(), remedy)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
