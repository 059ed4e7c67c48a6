"""Prices in US dollars, each with its source and date. What nobody could confirm is absent, never guessed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from trainfabric_plan.catalog.lines import read_lines

HOURS_PER_MONTH = 730.0
"""Hours in a month, the convention of AWS's price pages."""

_KARPENTER = "github.com/aws/karpenter-provider-aws zz_generated.pricing_aws.go, us-east-1 on-demand Linux"
_ADVISOR = "Spot Advisor data in github.com/alexei-led/spotinfo at 5eedf20"


@dataclass(frozen=True, kw_only=True)
class Price:
    """A price or a share, with where and when it was read.

    Attributes:
        value: US dollars in the unit of the function that returned it, or a share between 0 and 1.
        date: Date of the source.
        source: Where it was read.
    """

    value: float
    date: str
    source: str


_LUSTRE_PERSISTENT_2 = {
    125: Price(value=0.145, date="undated, read 2026-11", source="c3x.dev aws_fsx_lustre_file_system")
}

_NAT_GATEWAY = Price(value=0.045, date="2026-02", source="cloudburn.io/blog/aws-nat-gateway-pricing, us-east-1")

_INTERFACE_ENDPOINT = Price(
    value=0.01, date="2026-05", source="awsnegotiations.com/privatelink-cost-analysis.html, per zone"
)


@cache
def _on_demand() -> dict[str, Price]:
    """Of each type the newest generation of Karpenter's table that could be read."""
    return {
        line["instance_type"]: Price(value=float(line["usd_per_hour"]), date=line["date"], source=_KARPENTER)
        for line in read_lines("prices.csv")
    }


@cache
def _spot_savings() -> dict[tuple[str, str], Price]:
    return {
        (line["instance_type"], line["region"]): Price(
            value=int(line["percent"]) / 100, date="2025-06-28", source=_ADVISOR
        )
        for line in read_lines("spot_savings.csv")
    }


def on_demand_price(instance_type: str) -> Price | None:
    """US dollars per instance-hour on demand in us-east-1, or `None` if no source was found."""
    return _on_demand().get(instance_type)


def spot_saving(instance_type: str, region: str) -> Price | None:
    """Share that spot saved against on demand in this region, or `None` if no source was found.

    Places where the advisor shows no saving at all are left out: the price then was compared with another one.
    """
    return _spot_savings().get((instance_type, region))


def spot_saving_regions(instance_type: str) -> list[str]:
    """Regions whose spot saving is known for this type."""
    return [region for known, region in _spot_savings() if known == instance_type]


def fsx_lustre_price(throughput_mbps_per_tib: int) -> Price | None:
    """US dollars per GB-month of PERSISTENT_2 SSD in us-east-1, or `None` if no source was found."""
    return _LUSTRE_PERSISTENT_2.get(throughput_mbps_per_tib)


def nat_gateway_price() -> Price:
    """US dollars per NAT-gateway-hour in us-east-1, without data processing."""
    return _NAT_GATEWAY


def interface_endpoint_price() -> Price:
    """US dollars per hour of an interface endpoint in one zone of us-east-1, without data processing."""
    return _INTERFACE_ENDPOINT
