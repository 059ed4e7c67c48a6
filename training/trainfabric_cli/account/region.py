"""What one region says about an instance type."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from trainfabric_cli.account.answers import Unknown, ask, pages
from trainfabric_cli.account.market import LARGEST_BLOCK, Block, Facts, SpotPrice, Wanted, block_hours
from trainfabric_cli.account.quotas import Quota, vcpu_quota
from trainfabric_cli.account.session import Account
from trainfabric_plan.capacity import CapacityKind
from trainfabric_plan.catalog import find_instance_type, on_demand_price

_HISTORY = timedelta(days=7)
_PRICED_REGION = "us-east-1"
"""The one region whose on-demand prices the catalog has."""


class RegionReader:
    """Asks one region; each answer is a value or why it is unknown."""

    def __init__(self, account: Account, region: str) -> None:
        self.region = region
        self._account = account
        self._ec2 = account.client("ec2", region)

    def facts(self, wanted: Wanted, now: datetime) -> Facts:
        """Everything that a fleet of `wanted` turns on; a region that does not offer the type is asked no further."""
        zones = self.zones(wanted.instance_type)
        if isinstance(zones, Unknown) or zones:
            return Facts(
                region=self.region,
                zones=zones,
                vcpus=self.vcpus(wanted.instance_type),
                quotas={
                    CapacityKind.ON_DEMAND: self.vcpu_quota(wanted.instance_type, spot=False),
                    CapacityKind.SPOT: self.vcpu_quota(wanted.instance_type, spot=True),
                },
                scores=self.scores(wanted),
                spot=self.spot_prices(wanted.instance_type, now),
                blocks=self.blocks(wanted),
                on_demand_usd=_list_price(wanted.instance_type, self.region),
            )
        return _nothing(self.region)

    def zones(self, instance_type: str) -> Mapping[str, str] | Unknown:
        """Zones that offer the type → their ids."""

        def read() -> dict[str, str]:
            filters = [{"Name": "instance-type", "Values": [instance_type]}]
            kind = "availability-zone"
            offered = pages(
                self._ec2,
                "describe_instance_type_offerings",
                "InstanceTypeOfferings",
                LocationType=kind,
                Filters=filters,
            )
            names = sorted(one["Location"] for one in offered)
            if not names:
                return {}
            zones = self._ec2.describe_availability_zones(ZoneNames=names)["AvailabilityZones"]
            ids = {one["ZoneName"]: one["ZoneId"] for one in zones}
            return {name: ids.get(name, "") for name in names}

        return ask("ec2:DescribeInstanceTypeOfferings", read)

    def vcpus(self, instance_type: str) -> int | Unknown:
        """vCPUs of the type: from the catalog, or else from EC2."""
        known = find_instance_type(instance_type)
        if known is not None:
            return known.vcpus

        def read() -> int:
            (found,) = self._ec2.describe_instance_types(InstanceTypes=[instance_type])["InstanceTypes"]
            return int(found["VCpuInfo"]["DefaultVCpus"])

        return ask("ec2:DescribeInstanceTypes", read)

    def vcpu_quota(self, instance_type: str, *, spot: bool) -> float | Unknown:
        """vCPUs of the quota that counts the type."""
        quota = vcpu_quota(instance_type, spot=spot)
        return Unknown("no source names the quota of this family") if quota is None else self.quota(quota)

    def quota(self, quota: Quota) -> float | Unknown:
        """Value of a quota: the account's, or AWS's default where none was ever asked for."""
        client = self._account.client("service-quotas", self.region)
        code = {"ServiceCode": quota.service, "QuotaCode": quota.code}

        def read() -> float:
            try:
                return float(client.get_service_quota(**code)["Quota"]["Value"])
            except client.exceptions.NoSuchResourceException:
                return float(client.get_aws_default_service_quota(**code)["Quota"]["Value"])

        return ask("servicequotas:GetServiceQuota", read)

    def scores(self, wanted: Wanted) -> Mapping[str, int] | Unknown:
        """Id of a zone → spot placement score of the fleet there."""

        def read() -> dict[str, int]:
            found = pages(
                self._ec2,
                "get_spot_placement_scores",
                "SpotPlacementScores",
                InstanceTypes=[wanted.instance_type],
                TargetCapacity=wanted.nodes,
                SingleAvailabilityZone=True,
                RegionNames=[self.region],
            )
            return {one["AvailabilityZoneId"]: one["Score"] for one in found if one.get("AvailabilityZoneId")}

        return ask("ec2:GetSpotPlacementScores", read)

    def spot_prices(self, instance_type: str, now: datetime) -> Mapping[str, SpotPrice] | Unknown:
        """Zone → spot prices of the last seven days."""

        def read() -> dict[str, SpotPrice]:
            history = pages(
                self._ec2,
                "describe_spot_price_history",
                "SpotPriceHistory",
                InstanceTypes=[instance_type],
                ProductDescriptions=["Linux/UNIX"],
                StartTime=now - _HISTORY,
            )
            return _by_zone(history)

        return ask("ec2:DescribeSpotPriceHistory", read)

    def blocks(self, wanted: Wanted) -> tuple[Block, ...] | Unknown:
        """Capacity Blocks on offer for the fleet; a type that the catalog knows not to be sold so is not asked for."""
        known = find_instance_type(wanted.instance_type)
        if known is not None and known.usage_classes is not None and "capacity-block" not in known.usage_classes:
            return ()
        if wanted.nodes > LARGEST_BLOCK:
            return Unknown(f"one block has at most {LARGEST_BLOCK} instances")

        def read() -> tuple[Block, ...]:
            found = pages(
                self._ec2,
                "describe_capacity_block_offerings",
                "CapacityBlockOfferings",
                InstanceType=wanted.instance_type,
                InstanceCount=wanted.nodes,
                CapacityDurationHours=block_hours(wanted.hours),
            )
            return tuple(_block(one) for one in found)

        return ask("ec2:DescribeCapacityBlockOfferings", read)


def _nothing(region: str) -> Facts:
    nobody = Unknown("not offered here")
    quotas = {CapacityKind.ON_DEMAND: nobody, CapacityKind.SPOT: nobody}
    return Facts(
        region=region, zones={}, vcpus=nobody, quotas=quotas, scores={}, spot={}, blocks=(), on_demand_usd=nobody
    )


def _list_price(instance_type: str, region: str) -> float | Unknown:
    price = on_demand_price(instance_type)
    if price is None or region != _PRICED_REGION:
        return Unknown(f"no source for the price in {region}")
    return price.value


def _by_zone(history: list[dict[str, Any]]) -> dict[str, SpotPrice]:
    zones: dict[str, list[dict[str, Any]]] = {}
    for one in history:
        zones.setdefault(one["AvailabilityZone"], []).append(one)
    return {zone: _prices(entries) for zone, entries in zones.items()}


def _prices(entries: list[dict[str, Any]]) -> SpotPrice:
    latest = max(entries, key=lambda one: one["Timestamp"])
    prices = [float(one["SpotPrice"]) for one in entries]
    return SpotPrice(now=float(latest["SpotPrice"]), low=min(prices), high=max(prices))


def _block(offering: dict[str, Any]) -> Block:
    start = offering["StartDate"]
    return Block(
        offering=offering["CapacityBlockOfferingId"],
        zone=offering["AvailabilityZone"],
        start=start if start.tzinfo else start.replace(tzinfo=UTC),
        hours=offering["CapacityBlockDurationHours"],
        nodes=offering["InstanceCount"],
        usd=float(offering["UpfrontFee"]),
    )
