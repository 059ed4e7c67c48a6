"""Prices in US dollars, each with its source and date. What nobody could confirm is absent, never guessed."""

from __future__ import annotations

from dataclasses import dataclass

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


_ON_DEMAND = {
    "p4d.24xlarge": 21.957642,
    "p4de.24xlarge": 27.44705,
    "p5.48xlarge": 55.04,
    "p5en.48xlarge": 63.296,
    "p6-b200.48xlarge": 113.9328,
    "p6-b300.48xlarge": 142.416,
    "trn1.32xlarge": 21.50,
    "g6e.48xlarge": 30.13118,
}

_ON_DEMAND_EARLIER = {
    "g6e.8xlarge": 4.52856,
    "g6e.12xlarge": 10.49264,
    "g6e.24xlarge": 15.06559,
    "m7i.large": 0.1008,
    "m7i.2xlarge": 0.4032,
    "c7i.4xlarge": 0.714,
}
"""Read in an earlier generation of the same table (commit 265ee0b)."""

_SPOT_SAVING = {
    ("p4d.24xlarge", "us-east-1"): 0.67,
    ("p4d.24xlarge", "us-east-2"): 0.66,
    ("p4d.24xlarge", "us-west-2"): 0.53,
    ("p4de.24xlarge", "us-east-1"): 0.65,
    ("p4de.24xlarge", "us-west-2"): 0.67,
    ("p5.48xlarge", "us-east-1"): 0.52,
    ("p5.48xlarge", "us-east-2"): 0.61,
    ("p5.48xlarge", "us-west-2"): 0.46,
    ("p5en.48xlarge", "us-east-1"): 0.64,
    ("p5en.48xlarge", "us-east-2"): 0.65,
    ("p5en.48xlarge", "us-west-2"): 0.63,
    ("g6e.48xlarge", "us-east-1"): 0.68,
    ("g6e.48xlarge", "us-east-2"): 0.79,
    ("g6e.48xlarge", "us-west-2"): 0.66,
    ("trn1.32xlarge", "us-east-1"): 0.79,
    ("trn1.32xlarge", "us-east-2"): 0.90,
    ("trn1.32xlarge", "us-west-2"): 0.69,
}

_LUSTRE_PERSISTENT_2 = {
    125: Price(value=0.145, date="undated, read 2026-11", source="c3x.dev aws_fsx_lustre_file_system")
}

_NAT_GATEWAY = Price(value=0.045, date="2026-02", source="cloudburn.io/blog/aws-nat-gateway-pricing, us-east-1")

_INTERFACE_ENDPOINT = Price(
    value=0.01, date="2026-05", source="awsnegotiations.com/privatelink-cost-analysis.html, per zone"
)


def on_demand_price(instance_type: str) -> Price | None:
    """US dollars per instance-hour on demand in us-east-1, or `None` if no source was found."""
    for table, date in ((_ON_DEMAND, "2026-07-20"), (_ON_DEMAND_EARLIER, "2026-02-09")):
        if instance_type in table:
            return Price(value=table[instance_type], date=date, source=_KARPENTER)
    return None


def spot_saving(instance_type: str, region: str) -> Price | None:
    """Share that spot saved against on demand in this region, or `None` if no source was found."""
    value = _SPOT_SAVING.get((instance_type, region))
    return None if value is None else Price(value=value, date="2025-06-28", source=_ADVISOR)


def fsx_lustre_price(throughput_mbps_per_tib: int) -> Price | None:
    """US dollars per GB-month of PERSISTENT_2 SSD in us-east-1, or `None` if no source was found."""
    return _LUSTRE_PERSISTENT_2.get(throughput_mbps_per_tib)


def nat_gateway_price() -> Price:
    """US dollars per NAT-gateway-hour in us-east-1, without data processing."""
    return _NAT_GATEWAY


def interface_endpoint_price() -> Price:
    """US dollars per hour of an interface endpoint in one zone of us-east-1, without data processing."""
    return _INTERFACE_ENDPOINT
