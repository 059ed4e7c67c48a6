"""How nodes can be bought, and what each way asks of a launch: market, reservation, placement.

One table for every orchestrator. Sources, read 2026-11-30: EC2 API (botocore 1.44.8: `MarketType`,
`LaunchTemplateCapacityReservationSpecificationRequest`, `UsageClassType`), EC2 user guide (placement-groups,
capacity-blocks-launch, cr-cpg, capacity-consumer-procedures), EC2 Auto Scaling user guide
(launch-template-capacity-blocks, target-capacity-reservations), AWS PCS user guide (capacity-reservations-iodcr).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from trainfabric_plan.catalog import InstanceType

RESERVATION_ID = re.compile(r"cr-[0-9a-f]{8,17}")
"""Id of a capacity reservation of any kind, a Capacity Block among them."""

RESOURCE_GROUP = re.compile(r"arn:aws[a-z-]*:resource-groups:[a-z0-9-]+:\d{12}:group/.+")
"""ARN of a resource group of capacity reservations."""

PLACEMENT_GROUP_PATTERN = r"^[ -~]{1,255}$"
"""Name of a placement group: up to 255 ASCII characters (EC2 API, CreatePlacementGroup: GroupName, botocore 1.44.8);
those that can be printed."""

MOST_NODES_OF_A_BLOCK = 64
"""Instances of one Capacity Block (EC2 API, DescribeCapacityBlockOfferings: InstanceCount, botocore 1.44.8)."""


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
        usage_class: Entry of EC2's `SupportedUsageClasses` that a type needs. EC2 knows none for interruptible
            reservations, which lend instances of an On-Demand one.
        reserved: Whether a capacity reservation is named.
        groups: Whether a resource group of reservations may stand for one. A launch takes a single market, and a group
            may mix them (EC2 user guide, cr-groups-launch); about interruptible ones in groups AWS's guides disagree
            (EC2: yes; PCS: no), so that only their id is taken.
        placement: What it says about placement.
        interruptible: Whether EC2 takes nodes back during the run with two minutes' notice.
    """

    market_type: str | None
    usage_class: str
    reserved: bool
    placement: PlacementRule
    interruptible: bool
    groups: bool = False


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
            groups=True,
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


def reservation_rule(kind: CapacityKind) -> str:
    """What names the reservation of a kind, in words."""
    group = ", or the ARN of a resource group of them" if CAPACITY_RULES[kind].groups else ""
    return f"the id of a capacity reservation, such as cr-0123456789abcdef0{group}"


def names_reservation(kind: CapacityKind, text: str) -> bool:
    """Whether a text names a reservation that this kind takes."""
    of_group = CAPACITY_RULES[kind].groups and RESOURCE_GROUP.fullmatch(text)
    return bool(of_group or RESERVATION_ID.fullmatch(text))


def are_too_many_for_a_block(instance: InstanceType, nodes: int) -> bool:
    """Whether one Capacity Block cannot hold the nodes: the limit is one of instances, and where a block counts
    UltraServers, or may do so, none is documented (EC2 API, DescribeCapacityBlockOfferings: UltraserverCount)."""
    return instance.ultraserver_nodes == () and nodes > MOST_NODES_OF_A_BLOCK


def partial_ultraserver(instance: InstanceType, nodes: int) -> str | None:
    """What is wasted where the nodes of a block do not fill UltraServers, in words; `None` where they fill them.

    A block is paid for whole, and a part of it is of use: 16 of 18 nodes are a power of two, two are spare.
    """
    sizes = instance.ultraserver_nodes
    if not sizes or nodes % sizes[0] == 0:
        return None
    whole, kinds = -(-nodes // sizes[0]) * sizes[0], " or ".join(map(str, sizes))
    return (
        f"{instance.name} comes in UltraServers of {kinds} nodes, and {nodes} nodes leave {whole - nodes} of them "
        f"idle, which are paid for: use {whole} nodes or spares, if the block has them"
    )
