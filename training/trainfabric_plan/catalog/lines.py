"""Reads the tables that lie beside this module."""

from __future__ import annotations

import csv
from pathlib import Path


def read_lines(file: str) -> list[dict[str, str]]:
    """The lines of a CSV file of this package, each by the names of its columns.

    Raises:
        ValueError: If a line has more or fewer cells than there are columns, which is an error of ours.
    """
    text = Path(__file__).with_name(file).read_text(encoding="utf-8")
    header, *lines = csv.reader(text.splitlines(), strict=True)
    for line in lines:
        if len(line) != len(header):
            raise ValueError(f"{file}: a line must have {len(header)} cells, got {line}")
    return [dict(zip(header, line, strict=True)) for line in lines]
