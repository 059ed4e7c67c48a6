"""Nodes that the fleet runs, and bills, but that have never said a word: their boot has failed or hangs."""

from __future__ import annotations

from collections.abc import Iterable

MOST = 3
"""Nodes that one controller gives back for it: an image that does not boot would otherwise be launched for ever."""


class Unheard:
    """Since when each node of the fleet is there, as far as this controller has looked.

    Args:
        patience_s: How long a node may take from its launch to its first beat.
    """

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._since: dict[str, float] = {}
        self._told: set[str] = set()

    def overdue(self, there: Iterable[str], heard: Iterable[str], now: float) -> list[str]:
        """Nodes to give back now; each is named once."""
        silent = set(there) - set(heard)
        self._since = {name: self._since.get(name, now) for name in silent}
        late = sorted(name for name in silent - self._told if now - self._since[name] > self._patience_s)
        found = late[: max(0, MOST - len(self._told))]
        self._told.update(found)
        return found
