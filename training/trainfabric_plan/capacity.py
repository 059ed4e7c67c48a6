"""How nodes can be bought, and what each way asks of a launch: market, reservation, placement.

One table for every orchestrator. Sources: EC2 API reference (RunInstances: InstanceMarketOptions,
CapacityReservationSpecification), EC2 user guide (placement-groups, capacity-blocks-launch, interruptible capacity
reservations), read 2026-11.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType


class CapacityKind(StrEnum):
    """A way to buy nodes, as the environment file names it."""

    ON_DEMAND = "on_demand"
    SPOT = "spot"
    CAPACITY_BLOCK = "capacity_block"
    RESERVATION = "reservation"
    INTERRUPTIBLE_RESERVATION = "interruptible_reservation"


class PlacementRule(StrEnum):
    """What a kind of capacity says about the placement group of its nodes."""

    CLUSTER = "cluster"
    """A cluster placement group of our own."""
    NONE = "none"
    """No group: a capacity block is placed already, and a launch into a group fails for want of capacity."""
    OF_RESERVATION = "of_reservation"
    """The group that the reservation was made in, by name, or none if it was made in none."""


@dataclass(frozen=True, kw_only=True)
class CapacityRule:
    """What a kind of capacity asks of a launch.

    Attributes:
        market_type: `MarketType` of a launch template's market options; `None` where it must be absent.
        usage_class: EC2's `SupportedUsageClasses` entry that an instance type needs.
        reserved: Whether a capacity reservation is named.
        placement: What it says about placement.
        interruptible: Whether EC2 takes nodes back during the run with two minutes' notice.
    """

    market_type: str | None
    usage_class: str
    reserved: bool
    placement: PlacementRule
    interruptible: bool


CAPACITY_RULES: Mapping[CapacityKind, CapacityRule] = MappingProxyType(
    {
        CapacityKind.ON_DEMAND: CapacityRule(
            market_type=None,
            usage_class="on-demand",
            reserved=False,
            placement=PlacementRule.CLUSTER,
            interruptible=False,
        ),
        CapacityKind.SPOT: CapacityRule(
            market_type="spot",
            usage_class="spot",
            reserved=False,
            placement=PlacementRule.CLUSTER,
            interruptible=True,
        ),
        CapacityKind.CAPACITY_BLOCK: CapacityRule(
            market_type="capacity-block",
            usage_class="capacity-block",
            reserved=True,
            placement=PlacementRule.NONE,
            interruptible=False,
        ),
        CapacityKind.RESERVATION: CapacityRule(
            market_type=None,
            usage_class="on-demand",
            reserved=True,
            placement=PlacementRule.OF_RESERVATION,
            interruptible=False,
        ),
        CapacityKind.INTERRUPTIBLE_RESERVATION: CapacityRule(
            market_type="interruptible-capacity-reservation",
            usage_class="on-demand",
            reserved=True,
            placement=PlacementRule.OF_RESERVATION,
            interruptible=True,
        ),
    }
)
