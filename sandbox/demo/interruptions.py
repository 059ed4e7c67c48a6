"""What interruptions cost a run, from its steps and events alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from trainfabric_plan.contract import Event

Line = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Change:
    """From one epoch to the next.

    Attributes:
        epoch: Number of the one that ended.
        planned: Whether it ended at a checkpoint to take nodes in, and not because one was taken away or lost.
        why: In words, as the controller said it.
        after_step: The last step of the epoch that ended.
        steps_lost: Steps that the next epoch trains again.
        seconds: From the end of the last step before to the end of the first step that is new.
        ranks: Before and after.
    """

    epoch: int
    planned: bool
    why: str
    after_step: int
    steps_lost: int
    seconds: float
    ranks: tuple[int, int]


def changes(steps: list[Line], events: list[Line]) -> list[Change]:
    """Every change of epoch in a run.

    Args:
        steps: Lines of `steps.jsonl` of all epochs, each with its `epoch`.
        events: Lines of `events.jsonl`.
    """
    trained = {number: [s for s in steps if s["epoch"] == number] for number in sorted({s["epoch"] for s in steps})}
    described = {event["epoch"]: event for event in events if event["event"] == Event.EPOCH}
    drains = {event["epoch"]: event for event in events if event["event"] == Event.DRAIN}
    return [
        Change(
            epoch=before,
            planned=drains.get(before, {}).get("at") == "checkpoint",
            why=str(described[after]["detail"]),
            after_step=trained[before][-1]["step"],
            steps_lost=sum(s["step"] <= trained[before][-1]["step"] for s in trained[after]),
            seconds=_gap(trained[before], trained[after]),
            ranks=(described[before]["ranks"], described[after]["ranks"]),
        )
        for before, after in pairwise(trained)
    ]


def steps_trained_twice(steps: list[Line]) -> int:
    """How many steps were computed more than once, whichever epochs did."""
    return sum(count - 1 for count in Counter(line["step"] for line in steps).values())


def _gap(before: list[Line], after: list[Line]) -> float:
    last = before[-1]
    new = next(_beyond(after, last["step"]), after[-1])
    return (datetime.fromisoformat(new["time"]) - datetime.fromisoformat(last["time"])).total_seconds()


def _beyond(lines: list[Line], step: int) -> Iterator[Line]:
    return (line for line in lines if line["step"] > step)
