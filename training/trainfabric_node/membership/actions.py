"""What the core of a controller asks to be done; it does nothing itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from trainfabric_node.membership.protocol import EpochNode
from trainfabric_plan.contract import Event
from trainfabric_plan.planning import AnyPlan


@dataclass(frozen=True, kw_only=True)
class Say:
    """An event to tell.

    Attributes:
        event: What has happened.
        fields: What belongs to it. `until` of a wait is a time of the core's clock, or `None`.
    """

    event: Event
    fields: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Form:
    """A membership to claim.

    Attributes:
        nodes: In the order of their node ranks.
        plan: The layout on them.
        detail: Why there is a new epoch.
    """

    nodes: tuple[EpochNode, ...]
    plan: AnyPlan
    detail: str


@dataclass(frozen=True, kw_only=True)
class Replace:
    """A node to be given back.

    Attributes:
        instance_id: Of the node.
        detail: Why, in words.
        another: Whether the fleet is to launch another; else it is one node smaller.
    """

    instance_id: str
    detail: str
    another: bool = True


@dataclass(frozen=True, kw_only=True)
class Conclude:
    """The run is over: the nodes are to be released, and the outcome to be told."""

    state: Literal["done", "stopped", "failed"]
    detail: str = ""


Action = Say | Form | Replace | Conclude
