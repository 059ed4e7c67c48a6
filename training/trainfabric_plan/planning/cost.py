"""What an environment costs per hour while all its nodes run. Every part names its source; what has none is `None`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trainfabric_plan.catalog import nat_gateway_price, on_demand_price, spot_saving
from trainfabric_plan.catalog.prices import HOURS_PER_MONTH, interface_endpoint_price
from trainfabric_plan.environment.types import Environment
from trainfabric_plan.lustre import lustre_size
from trainfabric_plan.node_calls import endpoint_calls
from trainfabric_plan.planning.storage_prices import EFS_PER_GB_MONTH, lustre_price

PRICED_REGION = "us-east-1"
"""Region of the list prices; other regions may charge more or less."""

NOT_INCLUDED = "EBS root volumes, data transfer, NAT data processing, S3 requests and storage"
"""What the bill leaves out."""


@dataclass(frozen=True, kw_only=True)
class CostItem:
    """One line of the bill.

    Attributes:
        item: What is paid for.
        usd_per_hour: US dollars per hour, or `None` where no price could be confirmed.
        basis: How it was worked out, with source and date.
    """

    item: str
    usd_per_hour: float | None
    basis: str


@dataclass(frozen=True, kw_only=True)
class CostPerHour:
    """The lines of the bill and their sum."""

    items: tuple[CostItem, ...]

    @property
    def usd_per_hour(self) -> float | None:
        """Sum of all items, or `None` if one of them has no confirmed price."""
        known = [item.usd_per_hour for item in self.items if item.usd_per_hour is not None]
        return round(sum(known), 4) if len(known) == len(self.items) else None

    @property
    def at_least_usd_per_hour(self) -> float:
        """Sum of the items whose price is known."""
        return round(sum(item.usd_per_hour or 0.0 for item in self.items), 4)


def cost_per_hour(environment: Environment) -> CostPerHour:
    """The hourly cost with every node up, by list prices of us-east-1 and Spot Advisor's saving in the region.

    Spares count as nodes. `NOT_INCLUDED` names what is left out.
    """
    items = [*_nodes(environment)]
    if environment.storage.lustre.is_made:
        items.append(_lustre(environment))
    if environment.storage.shared_home:
        items.append(_shared_home(environment.storage.shared_home))
    if environment.network.vpc_id is None:
        items.append(way_out(environment))
    return CostPerHour(items=tuple(items))


def _nodes(environment: Environment) -> Iterator[CostItem]:
    """The coordinator (a fleet's first node, or the head node of a cluster) on demand, the rest as the file says."""
    fleet, region = environment.fleet, environment.region
    on_demand, workers, spares = 1, fleet.nodes - 1 + fleet.spares, fleet.spares
    if environment.orchestrator == "parallelcluster":
        yield _on_demand(environment.parallelcluster.head_node_instance_type, 1, region)
        on_demand, workers = 0, fleet.nodes
    elif fleet.coordinator == "control":
        yield _on_demand(fleet.control_instance_type, 1, region)
        on_demand, workers = 0, fleet.nodes + fleet.spares
    if fleet.workers in ("capacity_block", "reservation"):
        yield _reserved(fleet.workers, fleet.instance_type, on_demand + workers, region)
        return
    if fleet.workers == "on_demand":
        on_demand, workers = on_demand + workers, 0
    if on_demand:
        yield _on_demand(fleet.instance_type, on_demand, region, spares if not workers else 0)
    if workers and fleet.workers == "interruptible_reservation":
        yield _reserved(fleet.workers, fleet.instance_type, workers, region)
    elif workers:
        yield _spot(fleet.instance_type, workers, region, spares)


def _reserved(workers: str, instance_type: str, count: int, region: str) -> CostItem:
    """A block is paid when it is bought, and EC2 bills reserved capacity whether or not nodes run in it."""
    article = "an" if workers.startswith("i") else "a"
    item = f"{count} × {instance_type} of {article} {workers.replace('_', ' ')}"
    if workers == "capacity_block":
        basis = "paid beforehand, when the block was bought; nothing is billed for its nodes by the hour"
        return CostItem(item=item, usd_per_hour=None, basis=basis)
    if workers == "interruptible_reservation":
        basis = "reserved by another team; no source says what its instances are billed at"
        return CostItem(item=item, usd_per_hour=None, basis=basis)
    listed = _on_demand(instance_type, count, region)
    basis = f"{listed.basis}; billed from the reservation's creation to its end, whether or not nodes run"
    return CostItem(item=item, usd_per_hour=listed.usd_per_hour, basis=basis)


def _elsewhere(region: str) -> str:
    return "" if region == PRICED_REGION else f"; price of {PRICED_REGION}, {region} may differ"


def _of_them(spares: int) -> str:
    return f", {spares} of them spare" if spares else ""


def _on_demand(instance_type: str, count: int, region: str, spares: int = 0) -> CostItem:
    price, item = on_demand_price(instance_type), f"{count} × {instance_type} on demand{_of_them(spares)}"
    if price is None:
        return CostItem(item=item, usd_per_hour=None, basis="no confirmed price in the catalog")
    return CostItem(
        item=item, usd_per_hour=count * price.value, basis=f"{price.source}, {price.date}{_elsewhere(region)}"
    )


def _spot(instance_type: str, count: int, region: str, spares: int) -> CostItem:
    price, saving = on_demand_price(instance_type), spot_saving(instance_type, region)
    item = f"{count} × {instance_type} spot{_of_them(spares)}"
    if price is None or saving is None:
        return CostItem(item=item, usd_per_hour=None, basis="no confirmed spot price in the catalog")
    return CostItem(
        item=item,
        usd_per_hour=round(count * price.value * (1 - saving.value), 4),
        basis=f"on demand less {saving.value:.0%} ({saving.source}, {saving.date}); "
        f"spot prices move{_elsewhere(region)}",
    )


def _lustre(environment: Environment) -> CostItem:
    size = lustre_size(environment.storage.lustre.wish)
    item, price = f"FSx for Lustre {size.in_words}", lustre_price(size)
    if price is None or size.capacity_gib is None:
        return CostItem(item=item, usd_per_hour=None, basis="no confirmed price in the catalog")
    hourly = round(size.capacity_gib * price.value / HOURS_PER_MONTH, 4)
    return CostItem(
        item=item, usd_per_hour=hourly, basis=f"{price.source}, {price.date}{_elsewhere(environment.region)}"
    )


def _shared_home(kind: str) -> CostItem:
    if kind == "openzfs":
        basis = "no confirmed price in the catalog"
        return CostItem(item="shared home, FSx for OpenZFS 64 GiB at 64 MB/s", usd_per_hour=None, basis=basis)
    price = EFS_PER_GB_MONTH
    basis = f"nothing while it is empty; {price.value} US dollars per GB-month in it ({price.source}, {price.date})"
    return CostItem(item="shared home, EFS", usd_per_hour=0.0, basis=basis)


def way_out(environment: Environment) -> CostItem:
    """What a network made here costs: its NAT gateway, or its endpoints."""
    if environment.network.egress == "nat":
        return _nat(environment.region)
    price, number = interface_endpoint_price(), len(endpoint_calls(containers=environment.training.image is not None))
    return CostItem(
        item=f"{number} interface endpoints",
        usd_per_hour=round(number * price.value, 4),
        basis=f"{price.source}, {price.date}{_elsewhere(environment.region)}",
    )


def _nat(region: str) -> CostItem:
    price = nat_gateway_price()
    return CostItem(
        item="NAT gateway", usd_per_hour=price.value, basis=f"{price.source}, {price.date}{_elsewhere(region)}"
    )
