"""Prices of storage in us-east-1, each with source and date; what nobody could confirm is `None`."""

from __future__ import annotations

from trainfabric_plan.catalog.prices import Price, fsx_lustre_price
from trainfabric_plan.lustre import LustreSize

_APPROXIMATE = "learning-aws.readthedocs.io resources/pricing (approximate there)"

SCRATCH_PER_GB_MONTH = Price(value=0.14, date="undated, read 2026-11", source=_APPROXIMATE)
"""US dollars per GB-month of SCRATCH_2."""

S3_PER_GB_MONTH = Price(value=0.023, date="undated, read 2026-11", source=_APPROXIMATE)
"""US dollars per GB-month of S3 Standard."""

EFS_PER_GB_MONTH = Price(value=0.30, date="2026-03-03", source="cloudburn.io/blog/amazon-efs-pricing")
"""US dollars per GB-month of EFS Standard; what is stored is what is paid."""


def lustre_price(size: LustreSize) -> Price | None:
    """US dollars per GB-month of a file system's capacity, or `None` if no source was found for all of its price.

    None was found for Intelligent-Tiering, for the faster tiers of SSD, and for metadata operations that are asked for.
    """
    if size.capacity_gib is None or size.metadata_iops is not None:
        return None
    if size.throughput_mbps_per_tib is None:
        return SCRATCH_PER_GB_MONTH
    return fsx_lustre_price(size.throughput_mbps_per_tib)
