"""AWS partitions by region."""

from __future__ import annotations

_PREFIXES = (
    ("cn-", "aws-cn"),
    ("us-gov-", "aws-us-gov"),
    ("us-isob-", "aws-iso-b"),
    ("us-isof-", "aws-iso-f"),
    ("us-iso-", "aws-iso"),
    ("eu-isoe-", "aws-iso-e"),
    ("eusc-", "aws-eusc"),
)
"""Source: botocore 1.44.8, data/partitions.json, 2026-11."""


def partition_of(region: str) -> str:
    """The partition of a region, the second part of every ARN in it; `aws` if no other is known for its name."""
    return next((partition for prefix, partition in _PREFIXES if region.startswith(prefix)), "aws")
