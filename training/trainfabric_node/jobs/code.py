"""The code folder of somebody else's command: packed where the job is started, unpacked on the nodes."""

from __future__ import annotations

import hashlib
import io
import shutil
import stat
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from trainfabric_node.store import Store
from trainfabric_plan.contract import own_code_key
from trainfabric_plan.errors import InvalidInput, Mistake, Unreachable, mistake
from trainfabric_plan.own_command import CodePin

LIMIT_BYTES = 256 * 1024 * 1024
"""Most bytes of a code folder before packing: every node fetches it; data belongs into the data bucket."""

LIMIT_FILES = 20_000
"""Most files."""

LEFT_OUT = (".git", ".venv", "venv", "node_modules", "__pycache__")
"""Folders that are not packed, wherever they lie."""

_EPOCH = (1980, 1, 1, 0, 0, 0)
_NAME = "training.code"


@dataclass(frozen=True, kw_only=True)
class CodeArchive:
    """A code folder as one archive, the same bytes wherever and whenever it is packed.

    Attributes:
        data: A zip.
        sha256: Of it.
    """

    data: bytes
    sha256: str


def pack(folder: Path, where: str, limit_bytes: int = LIMIT_BYTES) -> CodeArchive:
    """A folder as an archive, without `LEFT_OUT`.

    Raises:
        InvalidInput: With everything that is wrong: no such folder, nothing in it, too large, links that lead out.
    """
    if not folder.is_dir():
        raise mistake(where, _NAME, "an existing folder", str(folder), "it is relative to the environment file")
    files = list(_files(folder))
    problems = [found for file in files if (found := _problem(folder, file, where))]
    if problems:
        raise InvalidInput(problems)
    size = sum(file.stat().st_size for file in files)
    if not files:
        raise mistake(where, _NAME, "a folder with files", f"none in {folder}")
    if size > limit_bytes or len(files) > LIMIT_FILES:
        rule = f"at most {limit_bytes // 1024**2} MiB and {LIMIT_FILES} files"
        got = f"{size / 1024**2:.1f} MiB in {len(files)} files"
        raise mistake(where, _NAME, rule, got, "put data into the data bucket, and large programs into an image")
    data = _zip(folder, files)
    return CodeArchive(data=data, sha256=hashlib.sha256(data).hexdigest())


def keep(store: Store, job: str, archive: CodeArchive) -> CodePin:
    """Puts the archive where the job's nodes fetch it; `store` is the checkpoint bucket. Raises `Unreachable`."""
    key = own_code_key(job, archive.sha256)
    store.put_if_absent(key, archive.data)
    return CodePin(key=key, sha256=archive.sha256)


def unpacked(store: Store, pin: CodePin, into: Path) -> Path:
    """The folder of an archive below `into`, fetched if it is not there yet.

    Raises:
        Unreachable: If the bucket does not answer, or gives another archive.
        ObjectMissing: If there is none.
    """
    folder = into / pin.sha256
    if folder.is_dir():
        return folder
    data = store.get(pin.key)
    if hashlib.sha256(data).hexdigest() != pin.sha256:
        raise Unreachable(f"{store.uri}{pin.key}: the code must have sha256 {pin.sha256}, got another; start again")
    into.mkdir(parents=True, exist_ok=True)
    whole = Path(tempfile.mkdtemp(dir=into, prefix="."))
    try:
        _unzip(data, whole)
        whole.rename(folder)
    finally:
        shutil.rmtree(whole, ignore_errors=True)
    return folder


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*"), key=lambda path: path.relative_to(folder).as_posix()):
        if not any(part in LEFT_OUT for part in path.relative_to(folder).parts) and (
            path.is_symlink() or not path.is_dir()
        ):
            yield path


def _problem(folder: Path, file: Path, where: str) -> Mistake | None:
    """Why a file cannot be packed."""
    name, target = file.relative_to(folder), file.resolve()
    if file.is_symlink() and not target.is_relative_to(folder.resolve()):
        rule, got = "without links that lead out of it", f"{name} to {target}"
    elif file.is_symlink() and not target.is_file():
        rule, got = "without links to what is no file", f"{name} to {target}"
    elif not target.is_file():
        rule, got = "a folder of files", f"{name}, which is none"
    else:
        return None
    return Mistake(where=where, name=_NAME, rule=rule, got=got, remedy="put a copy in its place, or remove it")


def _zip(folder: Path, files: list[Path]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:  # deflated bytes depend on the version of zlib
        for file in files:
            entry = zipfile.ZipInfo(file.relative_to(folder).as_posix(), _EPOCH)
            entry.create_system = 3  # Unix, whose permissions are in the upper half of the attributes
            executable = file.stat().st_mode & stat.S_IXUSR
            entry.external_attr = (stat.S_IFREG | (0o755 if executable else 0o644)) << 16
            archive.writestr(entry, file.read_bytes())
    return buffer.getvalue()


def _unzip(data: bytes, into: Path) -> None:
    into.chmod(0o755)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for entry in archive.infolist():
            file = Path(archive.extract(entry, into))
            file.chmod(entry.external_attr >> 16 & 0o777)
