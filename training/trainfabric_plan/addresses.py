"""Ranges of networks: which a VPC of nodes can have, and how many addresses of a subnet there are and are taken."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

RESERVED_BY_AWS = 5
"""Addresses of every subnet that AWS keeps: the first four and the last (VPC user guide, subnet-sizing, 2026-11)."""

LEAST_OF_LUSTRE = 2
"""Addresses that a Lustre file system takes at least. How many network interfaces FSx makes is published nowhere, and
grows with its servers; for Lustre it "can have more than one", where Windows has one (FSx API reference, FileSystem:
NetworkInterfaceIds, read 2026-12-01). Two is the least that this can mean."""

OF_A_HOME = 1
"""Addresses of a shared home in one zone: one mount target of EFS, or one interface of a Single-AZ OpenZFS (EFS API,
CreateMountTarget; FSx API, FileSystem: NetworkInterfaceIds; read 2026-12-01)."""

DOCKER_BRIDGE = ipaddress.IPv4Network("172.17.0.0/16")
"""Range of docker0, Docker's bridge, if nobody configures another: a host routes these addresses to its containers, so
that it reaches no peer that has one (AWS Cloud9 user guide, troubleshooting, "VPC IP addresses used by Docker", as
quoted on qiita.com/suo-takefumi, read 2026-12-01). The Deep Learning images run Docker."""


SOURCE_RULE = "a range of IPv4 addresses that begins at its first, such as 10.20.0.0/16, or a prefix list (pl-…)"
"""What `is_source` asks for, in words."""

_RANGE, _PREFIX_LIST = re.compile(r"[0-9.]+/[0-9]{1,2}"), re.compile(r"pl-([0-9a-f]{8}|[0-9a-f]{17})")


def is_source(text: str) -> bool:
    """Whether traffic may come from there: a range of IPv4 addresses, or one of EC2's prefix lists.

    aws-parallelcluster 3.16.1 takes these for SSH (`is_cidr_or_prefix_list`), and EC2 for rules of security groups.
    """
    if _PREFIX_LIST.fullmatch(text):
        return True
    try:
        ipaddress.IPv4Network(text)
    except ValueError:
        return False
    return _RANGE.fullmatch(text) is not None


@dataclass(frozen=True, kw_only=True)
class RangeProblem:
    """Why no VPC of nodes can have a range.

    Attributes:
        rule: What the range must be.
        remedy: What to do.
    """

    rule: str
    remedy: str


def range_problem(cidr: str) -> RangeProblem | None:
    """What is wrong with the range of a VPC, or `None`.

    Raises:
        ValueError: If it is no range.
    """
    network = ipaddress.IPv4Network(cidr)
    if _is_of_no_host(network):
        rule = "a range whose addresses hosts can have: no loopback, link-local, multicast or reserved one"
        return RangeProblem(rule=rule, remedy="use a private range such as 10.20.0.0/16")
    if network.overlaps(DOCKER_BRIDGE):
        rule = f"outside {DOCKER_BRIDGE}, which Docker routes to its own containers on every node"
        return RangeProblem(rule=rule, remedy="use another private range such as 10.20.0.0/16")
    return None


def _is_of_no_host(network: ipaddress.IPv4Network) -> bool:
    """RFC 1122 (0.0.0.0/8, 127.0.0.0/8), RFC 3927 (169.254.0.0/16), RFC 5771 (224.0.0.0/4), RFC 1112 (240.0.0.0/4)."""
    first = network.network_address
    of_this_network = first in ipaddress.IPv4Network("0.0.0.0/8")
    return of_this_network or first.is_loopback or first.is_link_local or first.is_multicast or first.is_reserved


def free_addresses(cidr: str) -> int:
    """Addresses of a subnet with this range that interfaces can take.

    Raises:
        ValueError: If it is no range.
    """
    return ipaddress.IPv4Network(cidr).num_addresses - RESERVED_BY_AWS
