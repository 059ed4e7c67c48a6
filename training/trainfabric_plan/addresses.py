"""How many addresses of a subnet there are, and how many nodes take."""

from __future__ import annotations

import ipaddress

RESERVED_BY_AWS = 5
"""Addresses of every subnet that AWS keeps: the first four and the last (VPC user guide, subnet-sizing, 2026-11)."""


def free_addresses(cidr: str) -> int:
    """Addresses of a subnet with this range that interfaces can take.

    Raises:
        ValueError: If it is no range.
    """
    return ipaddress.IPv4Network(cidr).num_addresses - RESERVED_BY_AWS
