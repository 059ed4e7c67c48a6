"""How nodes are bought, as every orchestrator's launch template says it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from aws_cdk import Tokenization
from aws_cdk import aws_ec2 as ec2

from trainfabric_cdk.errors import is_known, is_number
from trainfabric_plan.capacity import CAPACITY_RULES, CapacityKind, CapacityRule, PlacementRule
from trainfabric_plan.errors import mistake

_RESERVATION = re.compile(r"cr-[0-9a-f]{8,17}")
_RESOURCE_GROUP = re.compile(r"arn:aws[a-z-]*:resource-groups:[a-z0-9-]+:\d{12}:group/.+")

_Launch = ec2.CfnLaunchTemplate


@dataclass(frozen=True, kw_only=True)
class Capacity:
    """How nodes are bought: made by `Capacity.on_demand()`, `.spot()`, `.block(…)`, `.reservation(…)` and
    `.interruptible_reservation(…)`, each of which yields what EC2 accepts together.

    Attributes:
        kind: The way.
        max_price: Most US dollars per instance-hour for spot; the on-demand price if `None`.
        reservation_id: Id of a capacity reservation or block.
        resource_group: ARN of a resource group of capacity reservations, instead of one reservation.
        placement_group_name: The cluster placement group that a reservation was made in; `None` if it was in none.
    """

    kind: CapacityKind
    max_price: float | None = None
    reservation_id: str | None = None
    resource_group: str | None = None
    placement_group_name: str | None = None

    @classmethod
    def on_demand(cls) -> Capacity:
        """At list price, kept until given back."""
        return cls(kind=CapacityKind.ON_DEMAND)

    @classmethod
    def spot(cls, max_price: float | None = None) -> Capacity:
        """Spare capacity that EC2 takes back with two minutes' notice.

        Args:
            max_price: Most US dollars per instance-hour; the on-demand price if not given. A token is not judged.

        Raises:
            InvalidInput: If `max_price` is no finite number above zero.
        """
        if max_price is not None and is_known(max_price) and not _is_price(max_price):
            raise mistake("Capacity.spot", "max_price", "a number of more than 0 US dollars per hour", repr(max_price))
        return cls(kind=CapacityKind.SPOT, max_price=max_price)

    @classmethod
    def block(cls, reservation: str) -> Capacity:
        """A Capacity Block for ML, bought beforehand for some days; never in a placement group.

        Args:
            reservation: Its id, `cr-…`.

        Raises:
            InvalidInput: If it is no id of a capacity reservation.
        """
        return cls(kind=CapacityKind.CAPACITY_BLOCK, reservation_id=_checked_reservation("block", reservation))

    @classmethod
    def reservation(cls, reservation: str, *, placement_group_name: str | None = None) -> Capacity:
        """An On-Demand Capacity Reservation, or a resource group of them.

        Args:
            reservation: Its id `cr-…`, or the ARN of a resource group.
            placement_group_name: The cluster placement group that it was made in, if it was made in one.

        Raises:
            InvalidInput: If it is neither.
        """
        return cls._reserved("reservation", CapacityKind.RESERVATION, reservation, placement_group_name)

    @classmethod
    def interruptible_reservation(cls, reservation: str, *, placement_group_name: str | None = None) -> Capacity:
        """An interruptible Capacity Reservation: another account's spare one, taken back with two minutes' notice.

        Args:
            reservation: Its id `cr-…`, or the ARN of a resource group.
            placement_group_name: The cluster placement group that it was made in, if it was made in one.

        Raises:
            InvalidInput: If it is neither.
        """
        kind = CapacityKind.INTERRUPTIBLE_RESERVATION
        return cls._reserved("interruptible_reservation", kind, reservation, placement_group_name)

    @classmethod
    def _reserved(cls, name: str, kind: CapacityKind, reservation: str, group: str | None) -> Capacity:
        if is_known(reservation) and isinstance(reservation, str) and _RESOURCE_GROUP.fullmatch(reservation):
            return cls(kind=kind, resource_group=reservation, placement_group_name=group)
        return cls(kind=kind, reservation_id=_checked_reservation(name, reservation), placement_group_name=group)

    @property
    def rule(self) -> CapacityRule:
        """What the kind asks of a launch."""
        return CAPACITY_RULES[self.kind]

    @property
    def is_spot(self) -> bool:
        """Whether it is bought as spot."""
        return self.kind is CapacityKind.SPOT

    @property
    def placement(self) -> PlacementRule:
        """What it says about placement."""
        return self.rule.placement

    def market_options(self) -> ec2.CfnLaunchTemplate.InstanceMarketOptionsProperty | None:
        """What the launch template says: interrupted nodes terminate, since a stopped one holds its placement group."""
        if not self.is_spot:
            market = self.rule.market_type
            return _Launch.InstanceMarketOptionsProperty(market_type=market) if market else None
        return _Launch.InstanceMarketOptionsProperty(
            market_type="spot",
            spot_options=_Launch.SpotOptionsProperty(
                spot_instance_type="one-time",
                instance_interruption_behavior="terminate",
                max_price=None if self.max_price is None else _text(self.max_price),
            ),
        )

    def reservation_specification(self) -> ec2.CfnLaunchTemplate.CapacityReservationSpecificationProperty | None:
        """The reservation that a launch is bound to; `None` without one."""
        if not self.rule.reserved:
            return None
        return _Launch.CapacityReservationSpecificationProperty(
            capacity_reservation_target=_Launch.CapacityReservationTargetProperty(
                capacity_reservation_id=self.reservation_id,
                capacity_reservation_resource_group_arn=self.resource_group,
            )
        )


def _checked_reservation(name: str, reservation: object) -> str:
    if not isinstance(reservation, str) or (is_known(reservation) and not _RESERVATION.fullmatch(reservation)):
        rule = "the id of a capacity reservation, such as cr-0123456789abcdef0"
        if name != "block":
            rule += ", or the ARN of a resource group of them"
        raise mistake(f"Capacity.{name}", "reservation", rule, repr(reservation))
    return reservation


def _is_price(value: object) -> bool:
    return is_number(value) and math.isfinite(value) and value > 0


def _text(price: float) -> str:
    """A token stays one: the text of its placeholder would be a price of its own."""
    return str(price) if is_known(price) else Tokenization.stringify_number(price)
