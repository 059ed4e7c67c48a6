"""Capacity blocks and capacity reservations."""

from __future__ import annotations

from collections.abc import Iterator

from trainfabric_plan.capacity import CAPACITY_RULES
from trainfabric_plan.lint.assembly import Assembly
from trainfabric_plan.lint.launches import PCS_NODE_GROUP, Launch, known_type, launches
from trainfabric_plan.lint.model import Broken, Rule, Severity
from trainfabric_plan.lint.values import Value

_RESERVATION = "AWS::EC2::CapacityReservation"
_BLOCK = "capacity-block"
_MARKETS_OF_RESERVATIONS = {
    rule.market_type for rule in CAPACITY_RULES.values() if rule.reserved and rule.market_type is not None
}
_LAUNCH = "EC2 user guide, capacity-blocks-launch, read 2026-11"
_TARGETS = "Auto Scaling user guide, target-capacity-reservations, read 2026-11"


def _market(launch: Launch) -> Value:
    return launch.data.at("InstanceMarketOptions", "MarketType")


def _target(launch: Launch) -> Value:
    return launch.data.at("CapacityReservationSpecification", "CapacityReservationTarget")


def _has_target(launch: Launch) -> bool:
    """Whether a reservation is named, or may be: in the launch template, or at the group that launches from it."""
    named = [launch.data.at("CapacityReservationSpecification"), _target(launch)]
    named += [user.properties("CapacityReservationSpecification", "CapacityReservationTarget") for user in launch.users]
    return any(place.is_unknown for place in named) or any(not place.is_missing for place in named[1:])


def _block_in_group(assembly: Assembly) -> Iterator[Broken]:
    for launch in launches(assembly):
        if _market(launch).text != _BLOCK:
            continue
        named = [launch.placement("GroupName"), launch.placement("GroupId")]
        named += [user.properties("PlacementGroup") for user in launch.users]
        named += [user.properties("ComputeResources", "PlacementGroup") for user in launch.users]
        for place in named:
            if not place.is_missing and not place.is_unknown:
                yield Broken(
                    at=place,
                    must="absent with a capacity block, which is placed already",
                    remedy="remove the placement group: a launch into one finds no capacity",
                )


def _no_target(assembly: Assembly) -> Iterator[Broken]:
    for launch in launches(assembly):
        market = _market(launch)
        if market.text in _MARKETS_OF_RESERVATIONS and not _has_target(launch):
            yield Broken(
                at=market,
                must=f"given together with a capacity reservation, as {market.text} needs one",
                got="none",
                remedy="name it in CapacityReservationSpecification.CapacityReservationTarget",
            )


def _market_of_a_reservation(assembly: Assembly) -> Iterator[Broken]:
    for launch in launches(assembly):
        market, target = _market(launch), _target(launch)
        reservation = target.at("CapacityReservationId").resource(_RESERVATION)
        if market.text is None or reservation is None or market.text not in (_BLOCK, "spot"):
            continue
        yield Broken(
            at=market,
            must=f"absent for {reservation.id}, an on-demand capacity reservation",
            got=market.text,
            remedy="remove InstanceMarketOptions: the reservation's nodes are on-demand",
        )


def _spot_with_target(assembly: Assembly) -> Iterator[Broken]:
    for launch in launches(assembly):
        target = _target(launch)
        is_resource = target.at("CapacityReservationId").resource(_RESERVATION) is not None
        if _market(launch).text == "spot" and not target.is_missing and not target.is_unknown and not is_resource:
            yield Broken(
                at=target,
                must="absent for spot nodes, which no reservation holds",
                remedy="remove the target, or the market type spot",
            )


def _target_with_preference(assembly: Assembly) -> Iterator[Broken]:
    for launch in launches(assembly):
        preference = launch.data.at("CapacityReservationSpecification", "CapacityReservationPreference")
        if _market(launch).text == _BLOCK and preference.text in ("open", "none"):
            yield Broken(
                at=preference,
                must="absent with a capacity block, which must be named as target",
                got=preference.text,
                remedy="name the block in CapacityReservationTarget.CapacityReservationId",
            )


def _not_sold_so(assembly: Assembly) -> Iterator[Broken]:
    for launch in launches(assembly):
        market = _market(launch)
        rules = [rule for rule in CAPACITY_RULES.values() if rule.market_type == market.text]
        if market.text is None or not rules:
            continue
        for name in dict.fromkeys(name for name, _ in launch.instance_types):
            row = known_type(name)
            classes = row.usage_classes if row is not None else None
            if classes and rules[0].usage_class not in classes:
                yield Broken(
                    at=market,
                    must=f"a market that {name} is sold on: {', '.join(sorted(classes))}",
                    got=market.text,
                    remedy="take another type, or another way to buy it",
                )


def _pcs_purchase(assembly: Assembly) -> Iterator[Broken]:
    for launch in launches(assembly):
        for user in launch.users:
            option = user.properties("PurchaseOption")
            other = option.is_missing or option.text in ("ONDEMAND", "SPOT")
            if user.type == PCS_NODE_GROUP and _market(launch).text == _BLOCK and other:
                yield Broken(
                    at=option,
                    must="CAPACITY_BLOCK, as the market type of the launch template says",
                    got=option.text or "none, which is ONDEMAND",
                    remedy="set it to CAPACITY_BLOCK",
                )


RULES = (
    Rule(
        id="capacity-block-placement-group",
        severity=Severity.ERROR,
        title="No placement group with a capacity block",
        why="A block is placed already; a launch into a placement group ends with InsufficientInstanceCapacity.",
        source="https://github.com/terraform-aws-modules/terraform-aws-eks/pull/3730, "
        "https://github.com/awslabs/awsome-distributed-ai/issues/353, read 2026-11",
        check=_block_in_group,
    ),
    Rule(
        id="reservation-without-target",
        severity=Severity.ERROR,
        title="A market of reserved nodes names its reservation",
        why="EC2 launches into a capacity block or an interruptible reservation only when told into which.",
        source=f"{_LAUNCH}; {_TARGETS}",
        check=_no_target,
    ),
    Rule(
        id="reservation-market-type",
        severity=Severity.ERROR,
        title="No market type for an on-demand capacity reservation",
        why="A targeted reservation is unusable with the market type of a capacity block or of spot.",
        source="https://github.com/awslabs/awsome-distributed-ai/issues/1263, read 2026-11",
        check=_market_of_a_reservation,
    ),
    Rule(
        id="spot-with-reservation",
        severity=Severity.ERROR,
        title="Spot nodes name no capacity reservation",
        why="Spot nodes never run in a capacity reservation; EC2 refuses the launch.",
        source="EC2 user guide, instance-purchasing-options and capacity-reservations, read 2026-11",
        check=_spot_with_target,
    ),
    Rule(
        id="capacity-block-preference",
        severity=Severity.ERROR,
        title="A capacity block is a target, not a preference",
        why="A preference of open or none never launches into a capacity block.",
        source=_LAUNCH,
        check=_target_with_preference,
    ),
    Rule(
        id="market-not-offered",
        severity=Severity.ERROR,
        title="The instance type is sold on the market that is asked for",
        why="EC2 refuses the launch: not every type is sold as spot or as capacity block.",
        source="EC2 API, DescribeInstanceTypes.SupportedUsageClasses, as in the catalog of trainfabric",
        check=_not_sold_so,
    ),
    Rule(
        id="pcs-purchase-option",
        severity=Severity.ERROR,
        title="A PCS node group buys as its launch template does",
        why="PCS takes a capacity block only if the node group and its launch template both say so.",
        source="AWS PCS user guide, capacity-blocks-configure-cng, read 2026-11",
        check=_pcs_purchase,
    ),
)
