"""Events as controllers and ranks write them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from trainfabric_node.jobs import RunRecords

BEGIN = datetime(2026, 7, 1, 19, 2, 0, tzinfo=UTC)


def event(kind: str, second: float = 0, **fields: Any) -> dict[str, Any]:
    time = (BEGIN + timedelta(seconds=second)).isoformat(timespec="milliseconds")
    return {"event": kind, "time": time, **fields}


def epoch(number: int, second: float = 0, nodes: int = 4, layout: str = "data 4", detail: str = "") -> dict[str, Any]:
    names = [f"i-{index}" for index in range(nodes)]
    return event("epoch", second, epoch=number, nodes=names, layout=layout, ranks=2 * nodes, detail=detail)


def ended(number: int, state: str, second: float = 0, detail: str = "") -> dict[str, Any]:
    return event("epoch_ended", second, epoch=number, state=state, detail=detail)


def drain(number: int, second: float = 0, at: str = "now", detail: str = "") -> dict[str, Any]:
    return event("drain", second, epoch=number, at=at, detail=detail)


def publish(records: RunRecords, *events: dict[str, Any]) -> None:
    records.publish_events("c", "".join(f"{json.dumps(one)}\n" for one in events).encode())
