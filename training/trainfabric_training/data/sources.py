"""Which files a corpus is made of."""

from __future__ import annotations

import sysconfig
from collections.abc import Iterator
from pathlib import Path

from trainfabric_plan.errors import NotFound

_NOT_THE_LIBRARY = {"site-packages", "dist-packages", "test", "tests", "idle_test", "lib2to3", "__pycache__"}


def find_sources(directory: Path, pattern: str) -> list[Path]:
    """Files below a directory whose name matches a glob pattern, sorted by path; hidden folders are left out.

    Raises:
        NotFound: If there are none.
    """
    found = sorted(path for path in directory.rglob(pattern) if path.is_file() and not _hidden(path, directory))
    if not found:
        raise NotFound(
            f"{directory}: source files must match {pattern}, got none; correct the directory or the pattern"
        )
    return found


def standard_library_sources() -> list[Path]:
    """The sources of this Python's standard library without its tests: about ten megabytes that any machine has."""
    directory = Path(sysconfig.get_path("stdlib"))
    return list(_library(directory, find_sources(directory, "*.py")))


def _hidden(path: Path, directory: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(directory).parts)


def _library(directory: Path, found: list[Path]) -> Iterator[Path]:
    for path in found:
        folders = path.relative_to(directory).parts[:-1]
        if not _NOT_THE_LIBRARY.intersection(folders):
            yield path
