"""AWS partitions by region, and whether an ARN is of a region."""

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


def is_of_region(arn: str, region: str) -> bool:
    """Whether an ARN names something in a region: its partition and its region are those; the account may be any."""
    _, partition, _, named, _ = arn.split(":", 4)
    return (partition, named) == (partition_of(region), region)


def region_rule(what: str, region: str) -> str:
    """What an ARN must be that is not of the region, in words."""
    return f"{what} in {region} of partition {partition_of(region)}"


KEY_OF_REGION = "a KMS key"
"""S3, EBS, FSx and EFS use keys of their own region alone (KMS developer guide, "Using AWS KMS with AWS services", and
the S3 user guide, UsingKMSEncryption: key and bucket are in one region; read 2026-12-01)."""

GROUP_OF_REGION = "a resource group"
"""Capacity reservations, and the groups of them, are of a region (EC2 user guide, capacity-reservations-using)."""
