"""What the fleet has against what it should: nodes that never come up are given back, and missing ones asked for."""

from __future__ import annotations

from collections.abc import Iterable

MOST = 3
"""Nodes that one controller gives back for it, and times that it asks for missing ones: an image that does not boot
would otherwise be launched for ever."""


MISSING_S = 60.0
"""That nodes are missing before they are asked for; each time that this was in vain, five times as long."""


class Unheard:
    """Since when each node of the fleet is there, as far as this controller has looked.

    Args:
        patience_s: How long a node may take from its launch until it is warm.
    """

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._since: dict[str, float] = {}
        self._told: set[str] = set()

    def overdue(self, there: Iterable[str], ready: Iterable[str], now: float) -> list[str]:
        """Nodes to give back now, of those that are there and were never warm; each is named once."""
        silent = set(there) - set(ready)
        self._since = {name: self._since.get(name, now) for name in silent}
        late = sorted(name for name in silent - self._told if now - self._since[name] > self._patience_s)
        found = late[: max(0, MOST - len(self._told))]
        self._told.update(found)
        return found


class Missing:
    """Whether the fleet is to be asked for its size again: a node whose boot fails makes it smaller.

    Args:
        nodes: How many the job was started with, spares included.
    """

    def __init__(self, nodes: int) -> None:
        self._nodes = nodes
        self._since: float | None = None
        self._asked = 0

    def is_due(self, there: int, now: float) -> bool:
        """Whether to ask now; at most `MOST` times, as an image that does not boot would be launched for ever."""
        if there >= self._nodes:
            self._since = None
            return False
        if self._since is None:
            self._since = now
        if self._asked >= MOST or now - self._since < MISSING_S * 5**self._asked:
            return False
        self._since, self._asked = now, self._asked + 1
        return True
