"""What every store can do."""

from __future__ import annotations

from typing import Protocol

from trainfabric_plan.errors import NotFound


class ObjectMissing(NotFound):
    """No object has this key."""

    def __init__(self, uri: str, key: str) -> None:
        self.uri = uri
        self.key = key
        super().__init__(f"{uri}: {key} must be an existing object, got none; check the address and what wrote it")


class Store(Protocol):
    """Objects by key below one prefix. A put is whole or not there, and durable when the call returns.

    Keys are relative to the prefix, with `/` between segments. All methods raise `Unreachable` if the service does not
    answer or does not accept the credentials, and `NotFound` if the bucket itself is missing. Safe to share by threads.
    """

    @property
    def uri(self) -> str:
        """Address of the prefix, `s3://bucket/prefix/` or `file:///directory/`; ends with a slash."""
        ...

    def put(self, key: str, data: bytes) -> None:
        """Writes an object, over what was there."""
        ...

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Writes an object unless the key is taken; `False` if it holds other data.

        A retry of one's own put may find that the first try landed: the same data counts as success. Whoever races
        for a key therefore puts something of its own, such as a nonce, into the data.
        """
        ...

    def get(self, key: str) -> bytes:
        """The whole object; raises `ObjectMissing`."""
        ...

    def get_range(self, key: str, start: int, length: int) -> bytes:
        """`length` bytes from `start`, fewer if the object ends before; raises `ObjectMissing`."""
        ...

    def size(self, key: str) -> int:
        """Size of the object in bytes; raises `ObjectMissing`."""
        ...

    def list(self, prefix: str) -> list[str]:
        """Keys that start with `prefix`, sorted, relative to the store's own prefix."""
        ...

    def delete(self, key: str) -> None:
        """Removes an object; nothing happens if there is none."""
        ...
