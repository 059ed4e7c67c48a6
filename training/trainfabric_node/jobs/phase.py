"""Where a run is, as its events tell it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from trainfabric_plan.contract import Event


class Phase(StrEnum):
    """What the nodes of a run are at."""

    GATHERING = "gathering"
    """Nodes come up; there was no epoch yet."""
    LOADING = "loading"
    """An epoch is formed; its ranks have not finished a step."""
    TRAINING = "training"
    DRAINING = "draining"
    """All ranks are asked to save and to leave now."""
    BETWEEN = "between"
    """An epoch has ended, and the next one is not formed."""
    WAITING = "waiting"
    """There are too few nodes for the next one."""
    RELEASING = "releasing"
    """The nodes are given back."""


@dataclass(frozen=True, kw_only=True)
class Whereabouts:
    """A phase and what belongs to it.

    Attributes:
        epoch: Number of the newest epoch, 0 before the first.
        first: Whether no epoch of this run came before it.
        nodes: How many nodes it has.
        layout: Its layout in words.
        detail: Why it is so, in words.
        until: End of waiting (ISO 8601), if there is one.
    """

    phase: Phase
    epoch: int = 0
    first: bool = True
    nodes: int = 0
    layout: str = ""
    detail: str = ""
    until: str | None = None


def whereabouts(events: list[dict[str, Any]], stepped: int) -> Whereabouts:
    """Where a run is.

    Args:
        events: Its events, by time.
        stepped: Number of the newest epoch that has finished a step, of this run or an earlier one; 0 if none.
    """
    epochs = [event for event in events if event["event"] == Event.EPOCH]
    decisive = [event for event in events if _phase(event, stepped)]
    last = decisive[-1] if decisive else {}
    phase = _phase(last, stepped) if decisive else None
    if phase is None or (phase is Phase.WAITING and not epochs):
        phase = Phase.GATHERING
    newest = epochs[-1] if epochs else {}
    nodes = newest.get("nodes", 0)
    return Whereabouts(
        phase=phase,
        epoch=newest.get("epoch", 0),
        first=len(epochs) <= 1,
        nodes=len(nodes) if isinstance(nodes, list) else nodes,
        layout=newest.get("layout", ""),
        detail=last.get("detail", ""),
        until=last.get("until"),
    )


def _phase(event: dict[str, Any], stepped: int) -> Phase | None:
    """What an event leads to; `None` if nothing changes by it."""
    match event["event"]:
        case Event.EPOCH:
            return Phase.TRAINING if stepped >= event["epoch"] else Phase.LOADING
        case Event.DRAIN:
            return Phase.DRAINING if event["at"] == "now" else None
        case Event.EPOCH_ENDED:
            return Phase.RELEASING if event["state"] == "done" else Phase.BETWEEN
        case Event.WAIT:
            return Phase.WAITING
        case Event.RELEASE:
            return Phase.RELEASING
        case _:
            return None
