"""What supervisors say in tests."""

from __future__ import annotations

from typing import Any

from trainfabric_node.membership.protocol import Beat, NodeEpoch, Notice, Pins
from trainfabric_plan.contract import Role

TOKEN = "a"
"""Nonce of the run of `tests.node.samples.spec`."""


def beat(number: int = 1, **changes: Any) -> Beat:
    """Of node `i-<number>`; the first is the coordinator."""
    values: dict[str, Any] = {
        "token": TOKEN,
        "sequence": 1,
        "instance_id": f"i-{number}",
        "address": f"10.0.0.{number}",
        "role": Role.COORDINATOR if number == 1 else Role.WORKER,
        "incarnation": f"s-{number}",
        "ready": True,
        "pins": Pins(),
    }
    return Beat(**{**values, **changes})


def notice(kind: str = "spot", detail: str = "terminate at noon") -> Notice:
    return Notice.model_validate({"kind": kind, "detail": detail})


def in_epoch(number: int, state: str = "running", step: int = 0, **more: Any) -> NodeEpoch:
    return NodeEpoch.model_validate({"number": number, "state": state, "step": step, **more})
