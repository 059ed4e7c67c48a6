"""What commands print: JSON for programs, tables for people."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_WIDTH_OF_A_PIPE = 132
"""Columns where standard output is no terminal, so that tables in logs keep their rows whole."""


def print_json(value: Any) -> None:
    """Print one JSON document on standard output."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def console() -> Console:
    """Standard output for tables, as wide as the terminal; brackets in texts are texts, not markup."""
    from rich.console import Console

    return Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else _WIDTH_OF_A_PIPE)


def print_table(out: Console, title: str, made: Table) -> None:
    """Print a table under its title."""
    out.print(title, style="bold")
    out.print(made)


def table(*columns: str, numbers: tuple[str, ...] = ()) -> Table:
    """A table whose `numbers` columns are flush right and never wrapped."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    made = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        if column in numbers:
            made.add_column(column, justify="right", no_wrap=True)
        else:
            made.add_column(column, overflow="fold")
    return made


def usd(value: float | None) -> str:
    """US dollars with two decimals, or that the price is unknown."""
    return "unknown" if value is None else f"{value:,.2f}"


def binary_size(count: int) -> str:
    """A number of bytes in the largest binary unit of which there is at least one."""
    size, unit = float(count), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            break
        size /= 1024
    return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"
