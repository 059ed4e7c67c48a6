"""Whether the nodes of an environment can be launched: zone, quotas, reservation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainfabric_cli.account.answers import Unknown, ask, pages
from trainfabric_cli.account.checks import Check, Status, judged
from trainfabric_cli.account.needs import QuotaNeed, nodes_of, quota_needs
from trainfabric_cli.account.quotas import Quota
from trainfabric_cli.account.region import RegionReader
from trainfabric_cli.account.session import Account
from trainfabric_plan.contract import Tag
from trainfabric_plan.environment import Environment

_VPCS = Quota(code="L-F678F1CE", name="VPCs per Region", service="vpc")
_ADDRESSES = Quota(code="L-0263D0A3", name="EC2-VPC Elastic IPs")
"""Source of both: VPC and EC2 user guides, quotas; moto 5.2.5 default_quotas/vpc.py for the first, read 2026-11."""


def capacity_checks(account: Account, environment: Environment) -> list[Check]:
    """Checks of everything that a launch turns on."""
    reader = RegionReader(account, environment.region)
    types = dict.fromkeys(nodes.instance_type for nodes in nodes_of(environment))
    return [
        *(_offered(reader, one, environment.availability_zone) for one in types),
        *(_quota(reader, need) for need in quota_needs(environment)),
        *_reservation(account, environment),
        *_network_quotas(account, reader, environment),
    ]


def _offered(reader: RegionReader, instance_type: str, zone: str) -> Check:
    zones = reader.zones(instance_type)
    elsewhere = [] if isinstance(zones, Unknown) else list(zones)
    remedy = f"take {' or '.join(elsewhere)}" if elsewhere else "trainfabric capacity find shows where it is"
    return judged(
        f"{instance_type} in the zone",
        zones,
        zone,
        fits=lambda found: zone in found,
        shown=lambda found: ", ".join(found) or "nowhere in the region",
        remedy=remedy,
    )


def _quota(reader: RegionReader, need: QuotaNeed) -> Check:
    instances = " + ".join(f"{one.count} × {one.instance_type}" for one in need.nodes)
    if need.quota is None:
        why = "no source names the quota of this family"
        return Check(name="vCPU quota", found=why, needed=instances, status=Status.UNKNOWN)
    each = [(one.count, reader.vcpus(one.instance_type)) for one in need.nodes]
    missing = next((vcpus for _, vcpus in each if isinstance(vcpus, Unknown)), None)
    if missing is not None:
        return Check(name=need.quota.name, found=missing.why, needed=instances, status=Status.UNKNOWN)
    total = sum(count * vcpus for count, vcpus in each if isinstance(vcpus, int))
    return judged(
        need.quota.name,
        reader.quota(need.quota),
        f"{total} vCPUs ({instances})",
        fits=lambda found: found >= total,
        shown=lambda found: f"{found:g} vCPUs",
        remedy=_increase(need.quota, total, reader.region),
    )


def _increase(quota: Quota, wanted: int, region: str) -> str:
    return (
        f"aws service-quotas request-service-quota-increase --region {region} --service-code {quota.service} "
        f"--quota-code {quota.code} --desired-value {wanted}"
    )


def _network_quotas(account: Account, reader: RegionReader, environment: Environment) -> list[Check]:
    if environment.network.vpc_id:
        return []
    ec2 = account.client("ec2", environment.region)
    vpcs = ask("ec2:DescribeVpcs", lambda: _others(pages(ec2, "describe_vpcs", "Vpcs"), environment))
    checks = [_one_more(reader, _VPCS, vpcs)]
    if environment.network.egress == "nat":
        addresses = ask("ec2:DescribeAddresses", lambda: _others(ec2.describe_addresses()["Addresses"], environment))
        checks.append(_one_more(reader, _ADDRESSES, addresses))
    return checks


def _others(found: list[Mapping[str, Any]], environment: Environment) -> int:
    """How many of them are not of this environment, which may be deployed already."""
    own = {"Key": Tag.ENVIRONMENT, "Value": environment.name}
    return sum(own not in one.get("Tags", []) for one in found)


def _one_more(reader: RegionReader, quota: Quota, used: int | Unknown) -> Check:
    """Room for one more than others have."""
    limit = reader.quota(quota)
    if isinstance(used, Unknown) or isinstance(limit, Unknown):
        why = used.why if isinstance(used, Unknown) else str(getattr(limit, "why", ""))
        return Check(name=quota.name, found=why, needed="1 more", status=Status.UNKNOWN)
    return judged(
        quota.name,
        limit,
        "1 more",
        fits=lambda most: most >= used + 1,
        shown=lambda most: f"{used} of {most:g} in use by others",
        remedy=_increase(quota, used + 1, reader.region),
    )


def _reservation(account: Account, environment: Environment) -> list[Check]:
    identifier = environment.fleet.reservation
    if identifier is None:
        return []
    if not identifier.startswith("cr-"):
        why = "a resource group: look at its reservations yourself"
        return [Check(name="reservation", found=why, needed=identifier, status=Status.UNKNOWN)]
    ec2 = account.client("ec2", environment.region)
    answer = ask(
        "ec2:DescribeCapacityReservations",
        lambda: ec2.describe_capacity_reservations(CapacityReservationIds=[identifier])["CapacityReservations"],
    )
    if isinstance(answer, Unknown) and "NotFound" in answer.why:
        answer = []
    return [
        judged(
            f"reservation {identifier}",
            answer,
            _reserved(environment),
            fits=lambda found: bool(found) and not _differences(found[0], environment),
            shown=lambda found: _described(found[0], environment) if found else "none in the region",
            remedy="name another in fleet.reservation, or change the fleet to match it",
        )
    ]


def _places(environment: Environment) -> int:
    reserved = {"capacity_block", "reservation", "interruptible_reservation"}
    return sum(nodes.count for nodes in nodes_of(environment) if nodes.kind in reserved)


def _reserved(environment: Environment) -> str:
    fleet = environment.fleet
    return (
        f"{_places(environment)} × {fleet.instance_type}, Linux/UNIX, {environment.availability_zone}, {fleet.workers}"
    )


def _differences(found: Mapping[str, Any], environment: Environment) -> list[str]:
    """How a reservation differs from what the fleet needs of it."""
    block = environment.fleet.workers == "capacity_block"
    states = ("active", "scheduled", "payment-pending") if block else ("active",)
    facts = {
        f"is of {found.get('InstanceType')}": found.get("InstanceType") == environment.fleet.instance_type,
        f"lies in {found.get('AvailabilityZone')}": found.get("AvailabilityZone") == environment.availability_zone,
        f"is for {found.get('InstancePlatform')}": found.get("InstancePlatform") == "Linux/UNIX",
        f"is {found.get('State')}": found.get("State") in states,
        f"has {found.get('TotalInstanceCount')} instances": found.get("TotalInstanceCount", 0) >= _places(environment),
        "is no Capacity Block" if block else "is a Capacity Block": (found.get("ReservationType") == "capacity-block")
        == block,
        "is not interruptible": bool(found.get("Interruptible"))
        or environment.fleet.workers != "interruptible_reservation",
    }
    return [text for text, right in facts.items() if not right]


def _described(found: Mapping[str, Any], environment: Environment) -> str:
    wrong = _differences(found, environment)
    if wrong:
        return "it " + ", ".join(wrong)
    start, end = found.get("StartDate"), found.get("EndDate")
    text = f"{found['State']}, {found.get('AvailableInstanceCount', 0)} of {found['TotalInstanceCount']} free"
    text += f", from {start:%Y-%m-%d %H:%M}" if start and found["State"] != "active" else ""
    return text + (f", until {end:%Y-%m-%d %H:%M} UTC" if end else "")
