"""A part of a store as a store."""

from __future__ import annotations

from trainfabric_node.store import Store


class PrefixedStore:
    """The objects of another store whose keys begin with a prefix, without it; shares that store's connections."""

    def __init__(self, store: Store, prefix: str) -> None:
        self._store = store
        self._prefix = prefix

    @property
    def uri(self) -> str:
        """See `Store.uri`."""
        return self._store.uri + self._prefix

    def put(self, key: str, data: bytes) -> None:
        """See `Store.put`."""
        self._store.put(self._prefix + key, data)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """See `Store.put_if_absent`."""
        return self._store.put_if_absent(self._prefix + key, data)

    def get(self, key: str) -> bytes:
        """See `Store.get`."""
        return self._store.get(self._prefix + key)

    def get_range(self, key: str, start: int, length: int) -> bytes:
        """See `Store.get_range`."""
        return self._store.get_range(self._prefix + key, start, length)

    def size(self, key: str) -> int:
        """See `Store.size`."""
        return self._store.size(self._prefix + key)

    def list(self, prefix: str) -> list[str]:
        """See `Store.list`."""
        return [key.removeprefix(self._prefix) for key in self._store.list(self._prefix + prefix)]

    def delete(self, key: str) -> None:
        """See `Store.delete`."""
        self._store.delete(self._prefix + key)
