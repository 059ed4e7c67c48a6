"""How nodes are bought, as every orchestrator's launch template says it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from aws_cdk import Tokenization
from aws_cdk import aws_ec2 as ec2

from trainfabric_cdk.errors import is_known, is_number
from trainfabric_plan.capacity import (
    CAPACITY_RULES,
    PLACEMENT_GROUP_PATTERN,
    RESOURCE_GROUP,
    CapacityKind,
    CapacityRule,
    PlacementRule,
    names_reservation,
    reservation_rule,
)
from trainfabric_plan.errors import mistake

_Launch = ec2.CfnLaunchTemplate
_GROUP_NAME = re.compile(PLACEMENT_GROUP_PATTERN)


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
            reservation: Its id, `cr-…`. A token is not judged.

        Raises:
            InvalidInput: If it is no id of a capacity reservation.
        """
        kind = CapacityKind.CAPACITY_BLOCK
        return cls(kind=kind, reservation_id=_checked_reservation("block", kind, reservation))

    @classmethod
    def reservation(cls, reservation: str, *, placement_group_name: str | None = None) -> Capacity:
        """An On-Demand Capacity Reservation, or a resource group of them.

        Nodes launch into reserved capacity alone. A launch that names a reservation fails when it is full, and one that
        names a group is told not to go on demand instead, as it would (EC2 user guide, cr-groups-launch).

        Args:
            reservation: Its id `cr-…`, or the ARN of a resource group. A token stands for an id; for the ARN of a group
                that is made in the app, use `Capacity.reservation_group`.
            placement_group_name: The cluster placement group that it was made in, if it was made in one.

        Raises:
            InvalidInput: If it is neither, or the name is none of a placement group.
        """
        kind = CapacityKind.RESERVATION
        checked = _checked_reservation("reservation", kind, reservation)
        group = _checked_group("reservation", placement_group_name)
        if is_known(checked) and RESOURCE_GROUP.fullmatch(checked):
            return cls.reservation_group(checked, placement_group_name=group)
        return cls(kind=kind, reservation_id=checked, placement_group_name=group)

    @classmethod
    def reservation_group(cls, arn: str, *, placement_group_name: str | None = None) -> Capacity:
        """A resource group of On-Demand Capacity Reservations.

        Args:
            arn: ARN of the group. A token is not judged.
            placement_group_name: The cluster placement group that the reservations were made in, if in one.

        Raises:
            InvalidInput: If it is no ARN of a resource group, or the name is none of a placement group.
        """
        if not isinstance(arn, str) or (is_known(arn) and not RESOURCE_GROUP.fullmatch(arn)):
            raise mistake("Capacity.reservation_group", "arn", "the ARN of a resource group", repr(arn))
        group = _checked_group("reservation_group", placement_group_name)
        return cls(kind=CapacityKind.RESERVATION, resource_group=arn, placement_group_name=group)

    @classmethod
    def interruptible_reservation(cls, reservation: str, *, placement_group_name: str | None = None) -> Capacity:
        """An interruptible Capacity Reservation: what another team has reserved and does not use now, taken back with
        two minutes' notice.

        Args:
            reservation: Its id, `cr-…`. A token is not judged.
            placement_group_name: The cluster placement group that it was made in, if it was made in one.

        Raises:
            InvalidInput: If it is no id of a capacity reservation, or the name is none of a placement group.
        """
        kind = CapacityKind.INTERRUPTIBLE_RESERVATION
        checked = _checked_reservation("interruptible_reservation", kind, reservation)
        group = _checked_group("interruptible_reservation", placement_group_name)
        return cls(kind=kind, reservation_id=checked, placement_group_name=group)

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
            # Without it EC2 launches on demand, and bills it, what a group has no room for.
            capacity_reservation_preference="capacity-reservations-only" if self.resource_group else None,
            capacity_reservation_target=_Launch.CapacityReservationTargetProperty(
                capacity_reservation_id=self.reservation_id,
                capacity_reservation_resource_group_arn=self.resource_group,
            ),
        )


def _checked_reservation(name: str, kind: CapacityKind, reservation: object) -> str:
    if not isinstance(reservation, str) or (is_known(reservation) and not names_reservation(kind, reservation)):
        raise mistake(f"Capacity.{name}", "reservation", reservation_rule(kind), repr(reservation))
    return reservation


def _checked_group(name: str, group: object) -> str | None:
    if group is None or (isinstance(group, str) and (not is_known(group) or _GROUP_NAME.fullmatch(group))):
        return group
    rule = "the name of a placement group: 1 to 255 ASCII characters"
    raise mistake(f"Capacity.{name}", "placement_group_name", rule, repr(group), "leave it out if there is none")


def _is_price(value: object) -> bool:
    return is_number(value) and math.isfinite(value) and value > 0


def _text(price: float) -> str:
    """A token stays one: the text of its placeholder would be a price of its own."""
    return str(price) if is_known(price) else Tokenization.stringify_number(price)
