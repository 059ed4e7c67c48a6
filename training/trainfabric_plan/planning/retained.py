"""What `cdk destroy` leaves of an environment in the account, and what that costs per month."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trainfabric_plan.catalog.prices import HOURS_PER_MONTH, Price
from trainfabric_plan.environment.types import Environment
from trainfabric_plan.lustre import lustre_size
from trainfabric_plan.planning.cost import way_out
from trainfabric_plan.planning.storage_prices import EFS_PER_GB_MONTH, S3_PER_GB_MONTH, lustre_price


@dataclass(frozen=True, kw_only=True)
class Retained:
    """One thing that stays.

    Attributes:
        what: The thing.
        why: Why it stays.
        usd_per_month: US dollars per month while it stays, `None` where that is not known; see `basis`.
        basis: How the cost was worked out, with source and date, or what it depends on.
    """

    what: str
    why: str
    usd_per_month: float | None
    basis: str


def retained(environment: Environment) -> tuple[Retained, ...]:
    """What `cdk destroy` keeps when it is run as the environment is deployed, without further context."""
    files = (*_file_system(environment), *_shared_home(environment))
    return (*files, *_network(environment), *_buckets(environment))


def _file_system(environment: Environment) -> Iterator[Retained]:
    """It stays whatever `retain` says: deleting it takes the second key, which stands in no file."""
    lustre = environment.storage.lustre
    if not lustre.is_made:
        what, why = f"file system {lustre.file_system_id}", "it was there before and is not of these stacks"
        yield Retained(what=what, why=why, usd_per_month=None, basis="its size is not in the environment file")
        return
    size = lustre_size(lustre.wish)
    price = lustre_price(size)
    why = (
        "storage.retain"
        if environment.storage.retain
        else "the second key: -c trainfabric:deleteContents was not given"
    )
    cost, basis = (None, "no confirmed price in the catalog")
    if price is not None and size.capacity_gib is not None:
        cost, basis = round(size.capacity_gib * price.value, 2), _source(price)
    yield Retained(what=f"FSx for Lustre {size.in_words}", why=why, usd_per_month=cost, basis=basis)
    yield Retained(
        what="its security group and rules",
        why="a file system without them is cut off",
        usd_per_month=0.0,
        basis="EC2 takes nothing for security groups",
    )


def _shared_home(environment: Environment) -> Iterator[Retained]:
    """It stays whatever `retain` says, like the file system."""
    kind = environment.storage.shared_home
    if kind is None:
        return
    second_key = "the second key: -c trainfabric:deleteContents was not given"
    why = "storage.retain" if environment.storage.retain else second_key
    if kind == "efs":
        per_gb = f"{EFS_PER_GB_MONTH.value} US dollars per GB that lies in it ({_source(EFS_PER_GB_MONTH)})"
        yield Retained(what="shared home on EFS", why=why, usd_per_month=None, basis=per_gb)
    else:
        what, basis = "shared home on FSx for OpenZFS, with its security group", "no confirmed price in the catalog"
        yield Retained(what=what, why=why, usd_per_month=None, basis=basis)


def _network(environment: Environment) -> Iterator[Retained]:
    """A kept file system of FSx holds the subnet with its interface; of a kept EFS the mount target goes."""
    storage = environment.storage
    holding = ["Lustre"] if storage.lustre.is_made else []
    if storage.shared_home == "openzfs":
        holding.append("the shared home")
    if environment.network.vpc_id is not None or not holding:
        return
    until = f"{' and '.join(holding)} {'is' if len(holding) == 1 else 'are'} deleted"
    cost = way_out(environment)
    monthly = None if cost.usd_per_hour is None else round(cost.usd_per_hour * HOURS_PER_MONTH, 2)
    yield Retained(
        what=f"stack {environment.name}-Network, until {until}",
        why="an interface of the file system stands in its subnet",
        usd_per_month=monthly,
        basis=f"{cost.item}, {cost.basis}",
    )


def _buckets(environment: Environment) -> Iterator[Retained]:
    storage = environment.storage
    for name, given in (("data bucket", storage.data_bucket), ("checkpoint bucket", storage.checkpoint_bucket)):
        if given:
            why = "it was there before and is not of these stacks"
        elif storage.retain:
            why = "storage.retain"
        else:
            why = "only an empty bucket is deleted"
        per_gb = f"{S3_PER_GB_MONTH.value} US dollars per GB that lies in it ({_source(S3_PER_GB_MONTH)})"
        what = f"{name} {given.name}" if given else name
        yield Retained(what=what, why=why, usd_per_month=None, basis=per_gb)


def _source(price: Price) -> str:
    return f"{price.source}, {price.date}"
