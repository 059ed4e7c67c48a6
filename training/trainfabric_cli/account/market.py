"""What nodes can be had, judged and ranked. Pure: facts in, offers out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from trainfabric_cli.account.answers import Unknown
from trainfabric_plan.capacity import CapacityKind

HOURS_OF_A_DAY = 24
LONGEST_BLOCK_H = 182 * HOURS_OF_A_DAY
LARGEST_BLOCK = 64
"""Instances of one Capacity Block. Source of this and of the durations: EC2 user guide, Find and purchase Capacity
Blocks (1-day increments up to 14 days, 7-day increments up to 182 days; up to 64 instances), read 2026-11."""

RANKING = "what fits first, then what is unknown; among equals the cheapest run, then the higher spot score"


def block_hours(hours: float) -> int:
    """The shortest duration of a Capacity Block, in hours, that holds a run of so many hours."""
    days = -(-hours // HOURS_OF_A_DAY)
    whole = days if days <= 14 else -(-days // 7) * 7
    return int(whole) * HOURS_OF_A_DAY


class Verdict(StrEnum):
    """Whether a fleet can be had."""

    YES = "yes"
    UNKNOWN = "unknown"
    NO = "no"


@dataclass(frozen=True, kw_only=True)
class SpotPrice:
    """Spot prices of an instance type in a zone, US dollars per hour and node: now, and of the days before."""

    now: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Block:
    """A Capacity Block on offer; `usd` is its whole price."""

    offering: str
    zone: str
    start: datetime
    hours: int
    nodes: int
    usd: float


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What a region answered.

    Attributes:
        region: The region.
        zones: Zone → its id, of the zones that offer the type.
        vcpus: vCPUs of the type.
        quotas: Kind of capacity → vCPUs of the quota that counts it.
        scores: Id of a zone → spot placement score, 1 to 10.
        spot: Zone → spot prices.
        blocks: Capacity Blocks on offer.
        on_demand_usd: List price per hour and node.
    """

    region: str
    zones: Mapping[str, str] | Unknown
    vcpus: int | Unknown
    quotas: Mapping[CapacityKind, float | Unknown]
    scores: Mapping[str, int] | Unknown
    spot: Mapping[str, SpotPrice] | Unknown
    blocks: tuple[Block, ...] | Unknown
    on_demand_usd: float | Unknown


@dataclass(frozen=True, kw_only=True)
class Offer:
    """A way to have the fleet in one zone.

    Attributes:
        kind: How the nodes are bought.
        zone: Availability zone, or the region where the zones are unknown.
        verdict: Whether the fleet can be had.
        reasons: Why not, or what is unknown, or what else matters.
        vcpus_needed: vCPUs that the quota must hold.
        quota: vCPUs that it holds; `None` where no quota counts.
        score: Spot placement score.
        usd_per_hour: US dollars per hour and node.
        usd_per_run: US dollars of the whole run.
        block: The block on offer.
        spot: Spot prices.
    """

    kind: CapacityKind
    zone: str
    verdict: Verdict
    reasons: tuple[str, ...] = ()
    vcpus_needed: int | None = None
    quota: float | Unknown | None = None
    score: int | Unknown | None = None
    usd_per_hour: float | Unknown | None = None
    usd_per_run: float | Unknown | None = None
    block: Block | None = None
    spot: SpotPrice | None = None


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The fleet that is looked for."""

    instance_type: str
    nodes: int
    hours: float
    kinds: tuple[CapacityKind, ...] = field(
        default=(CapacityKind.ON_DEMAND, CapacityKind.SPOT, CapacityKind.CAPACITY_BLOCK)
    )


def ranked(wanted: Wanted, facts: Iterable[Facts]) -> list[Offer]:
    """All offers of all regions, the best first."""
    offers = [offer for one in facts for offer in _offers(wanted, one)]
    return sorted(offers, key=_order)


def _order(offer: Offer) -> tuple[int, float, int, str, str]:
    price = offer.usd_per_run if isinstance(offer.usd_per_run, float) else float("inf")
    score = offer.score if isinstance(offer.score, int) else 0
    return list(Verdict).index(offer.verdict), price, -score, offer.zone, str(offer.kind)


def _offers(wanted: Wanted, facts: Facts) -> list[Offer]:
    if isinstance(facts.zones, Unknown):
        return [
            Offer(kind=kind, zone=facts.region, verdict=Verdict.UNKNOWN, reasons=(f"offered: {facts.zones.why}",))
            for kind in (CapacityKind.ON_DEMAND, CapacityKind.SPOT)
        ] + _blocks(wanted, facts)
    on_demand = [_on_demand(wanted, facts, zone) for zone in facts.zones]
    spot = [_spot(wanted, facts, zone, of) for zone, of in facts.zones.items()]
    return [*on_demand, *spot, *_blocks(wanted, facts)]


def _on_demand(wanted: Wanted, facts: Facts, zone: str) -> Offer:
    verdict, reasons = _within_quota(wanted, facts, CapacityKind.ON_DEMAND)
    return Offer(
        kind=CapacityKind.ON_DEMAND,
        zone=zone,
        verdict=verdict,
        reasons=reasons,
        vcpus_needed=_needed(wanted, facts),
        quota=facts.quotas[CapacityKind.ON_DEMAND],
        usd_per_hour=facts.on_demand_usd,
        usd_per_run=_run(wanted, facts.on_demand_usd),
    )


def _spot(wanted: Wanted, facts: Facts, zone: str, zone_id: str) -> Offer:
    verdict, reasons = _within_quota(wanted, facts, CapacityKind.SPOT)
    prices = facts.spot if isinstance(facts.spot, Unknown) else facts.spot.get(zone)
    if prices is None:
        verdict, reasons = Verdict.NO, ("no spot price: not sold as spot here",)
    price = prices.now if isinstance(prices, SpotPrice) else prices
    return Offer(
        kind=CapacityKind.SPOT,
        zone=zone,
        verdict=verdict,
        reasons=reasons,
        vcpus_needed=_needed(wanted, facts),
        quota=facts.quotas[CapacityKind.SPOT],
        score=facts.scores if isinstance(facts.scores, Unknown) else facts.scores.get(zone_id),
        usd_per_hour=price,
        usd_per_run=_run(wanted, price),
        spot=prices if isinstance(prices, SpotPrice) else None,
    )


def _blocks(wanted: Wanted, facts: Facts) -> list[Offer]:
    if isinstance(facts.blocks, Unknown):
        reasons = (f"blocks: {facts.blocks.why}",)
        return [Offer(kind=CapacityKind.CAPACITY_BLOCK, zone=facts.region, verdict=Verdict.UNKNOWN, reasons=reasons)]
    return [_block(wanted, block) for block in facts.blocks]


def _block(wanted: Wanted, block: Block) -> Offer:
    short = [f"only {block.nodes} nodes"] if block.nodes < wanted.nodes else []
    short += [f"ends after {block.hours} h"] if block.hours < wanted.hours else []
    return Offer(
        kind=CapacityKind.CAPACITY_BLOCK,
        zone=block.zone,
        verdict=Verdict.NO if short else Verdict.YES,
        reasons=tuple(short),
        usd_per_hour=block.usd / (block.nodes * block.hours),
        usd_per_run=block.usd,
        block=block,
    )


def _needed(wanted: Wanted, facts: Facts) -> int | None:
    return None if isinstance(facts.vcpus, Unknown) else facts.vcpus * wanted.nodes


def _within_quota(wanted: Wanted, facts: Facts, kind: CapacityKind) -> tuple[Verdict, tuple[str, ...]]:
    quota, needed = facts.quotas[kind], _needed(wanted, facts)
    if isinstance(quota, Unknown):
        return Verdict.UNKNOWN, (f"quota: {quota.why}",)
    if needed is None:
        return Verdict.UNKNOWN, ("vCPUs of the type are unknown",)
    if quota < needed:
        return Verdict.NO, (f"quota lacks {needed - quota:g} vCPUs",)
    return Verdict.YES, ()


def _run(wanted: Wanted, price: float | Unknown | None) -> float | Unknown | None:
    return price * wanted.nodes * wanted.hours if isinstance(price, float) else price
