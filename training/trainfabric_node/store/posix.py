"""A store in a directory, for Lustre and local disks."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from trainfabric_node.store.protocol import ObjectMissing
from trainfabric_plan.errors import Unreachable

_ATTEMPTS = 10


class PosixStore:
    """Objects as files. A file appears whole by rename or link, after its data and before its folder are synced.

    Files and folders whose names start with a dot are not objects: writes in progress.
    """

    def __init__(self, directory: Path) -> None:
        self._root = directory.absolute()

    @property
    def uri(self) -> str:
        """`file://` and the directory, with a slash at its end."""
        return f"{self._root.as_uri()}/"

    def put(self, key: str, data: bytes) -> None:
        """See `Store.put`."""
        with self._writing(key), _temporary(self._path(key), data) as (temporary, final):
            temporary.replace(final)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """See `Store.put_if_absent`; a hard link is made or refused by the file system in one go."""
        for _ in range(_ATTEMPTS):
            with self._writing(key), _temporary(self._path(key), data) as (temporary, final):
                won = _linked(temporary, final)
            if won:
                return True
            with contextlib.suppress(ObjectMissing):
                return self.get(key) == data
        raise Unreachable(f"{self.uri}: {key} must stay or be absent, got both in turn; stop what else deletes here")

    def get(self, key: str) -> bytes:
        """See `Store.get`."""
        with self._reading(key):
            return self._path(key).read_bytes()

    def get_range(self, key: str, start: int, length: int) -> bytes:
        """See `Store.get_range`."""
        with self._reading(key), self._path(key).open("rb") as file:
            file.seek(start)
            return file.read(length)

    def size(self, key: str) -> int:
        """See `Store.size`."""
        with self._reading(key):
            return self._path(key).stat().st_size

    def list(self, prefix: str) -> list[str]:
        """See `Store.list`."""
        folder = self._root / prefix.rpartition("/")[0]
        found = (path.relative_to(self._root).as_posix() for path in _files(folder))
        return sorted(key for key in found if key.startswith(prefix))

    def delete(self, key: str) -> None:
        """See `Store.delete`."""
        with self._writing(key):
            self._path(key).unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        segments = PurePosixPath(key).parts
        if not key or key != "/".join(segments) or any(segment.startswith(".") for segment in segments):
            raise ValueError(f"not a key of a store: {key!r}")
        return self._root / key

    @contextlib.contextmanager
    def _reading(self, key: str) -> Iterator[None]:
        try:
            yield
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            raise ObjectMissing(self.uri, key) from None
        except PermissionError as error:
            raise Unreachable(f"{self.uri}: {key} must be readable, got {error.strerror}; check its owner") from None

    @contextlib.contextmanager
    def _writing(self, key: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            message = f"{self.uri}: {key} must be writable, got {error.strerror}; check owner, space and mount"
            raise Unreachable(message) from error


@contextlib.contextmanager
def _temporary(final: Path, data: bytes) -> Iterator[tuple[Path, Path]]:
    """A synced file with `data` beside `final`; whatever the body makes of it is synced in the folder after it."""
    _make_folders(final.parent)
    temporary = final.with_name(f".{final.name}.{uuid.uuid4().hex}")
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        yield temporary, final
    finally:
        temporary.unlink(missing_ok=True)
    _sync_folder(final.parent)


def _linked(temporary: Path, final: Path) -> bool:
    try:
        final.hardlink_to(temporary)
    except FileExistsError:
        return False
    return True


def _make_folders(folder: Path) -> None:
    if folder.is_dir():
        return
    _make_folders(folder.parent)
    folder.mkdir(exist_ok=True)
    _sync_folder(folder.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _files(folder: Path) -> Iterator[Path]:
    for directory, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(directory, name) for name in files if not name.startswith("."))
