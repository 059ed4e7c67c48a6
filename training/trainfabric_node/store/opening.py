"""From an address to a store."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from trainfabric_node.store.posix import PosixStore
from trainfabric_node.store.protocol import Store
from trainfabric_node.store.s3 import S3Store
from trainfabric_plan.errors import mistake


def open_store(uri: str) -> Store:
    """The store at `s3://bucket/prefix/`, `file:///directory` or a path. Nothing is read or made yet.

    Raises:
        InvalidInput: If the address is neither.
    """
    if "://" not in uri and uri:
        return PosixStore(Path(uri))
    parts = urlsplit(uri)
    if parts.scheme == "s3" and parts.netloc:
        return S3Store(parts.netloc, parts.path.lstrip("/"))
    if parts.scheme == "file" and not parts.netloc and parts.path:
        return PosixStore(Path(unquote(parts.path)))
    raise mistake(repr(uri), "store address", "s3://bucket/prefix/, file:///directory or a path", repr(uri))
