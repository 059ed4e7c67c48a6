"""`trainfabric capacity`: where a fleet can be had, and what an account lacks for an environment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trainfabric_cli.options import EnvironmentArgument, Json, Profile

if TYPE_CHECKING:
    from rich.table import Table

    from trainfabric_cli.account.checks import Check
    from trainfabric_cli.account.market import Facts, Offer, Wanted

app = typer.Typer(no_args_is_help=True, help="Find capacity, and check an account before a deploy.")


@app.command()
def find(
    instance_type: Annotated[str, typer.Option("--instance-type", "-t", help="EC2 instance type, p5.48xlarge.")],
    nodes: Annotated[int, typer.Option("--nodes", "-n", help="Number of nodes.")],
    hours: Annotated[float, typer.Option("--hours", help="Length of the run in hours.")],
    regions: Annotated[
        str | None,
        typer.Option("--regions", help="Regions, separated by commas; all that the account has enabled if not given."),
    ] = None,
    profile: Profile = None,
    as_json: Json = False,
) -> None:
    """Find where so many nodes can be had for so long: on demand, spot and Capacity Blocks, ranked.

    What may not be asked or does not answer is unknown, and says why; the rest is shown all the same.
    """
    from trainfabric_cli.account.find import ask_regions, check_wanted, regions_of
    from trainfabric_cli.account.market import Wanted, ranked
    from trainfabric_cli.account.session import Account
    from trainfabric_cli.output import print_json

    wanted_regions = regions_of(regions)
    check_wanted(instance_type, nodes, hours, wanted_regions)
    wanted = Wanted(instance_type=instance_type, nodes=nodes, hours=hours)
    account = Account("capacity", profile)
    asked = account.regions(wanted_regions or ())
    now = datetime.now(UTC)
    with _progress(len(asked)) as told:
        facts = ask_regions(account, asked, wanted, now, told)
    offers = ranked(wanted, facts)
    if as_json:
        print_json(_found(wanted, facts, offers, now))
    else:
        _print_offers(wanted, facts, offers, now)


@contextmanager
def _progress(steps: int) -> Iterator[Callable[[str], None]]:
    """A progress bar on standard error, where that is a terminal; it is gone at the end."""
    from rich.console import Console
    from rich.progress import Progress

    err = Console(stderr=True)
    with Progress(console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task("asking AWS", total=steps)
        yield lambda what: progress.update(task, advance=1, description=f"asked {what}")


def _found(wanted: Wanted, facts: list[Facts], offers: list[Offer], now: datetime) -> dict[str, Any]:
    from trainfabric_cli.account.market import RANKING

    return {
        "instance_type": wanted.instance_type,
        "nodes": wanted.nodes,
        "hours": wanted.hours,
        "asked_at": now.isoformat(timespec="seconds"),
        "regions": [one.region for one in facts],
        "ranking": RANKING,
        "offers": [_offer(rank, one) for rank, one in enumerate(offers, 1)],
    }


def _offer(rank: int, offer: Offer) -> dict[str, Any]:
    block, spot = offer.block, offer.spot
    return {
        "rank": rank,
        "kind": str(offer.kind),
        "zone": offer.zone,
        "feasible": str(offer.verdict),
        "reasons": list(offer.reasons),
        "vcpus_needed": offer.vcpus_needed,
        "vcpu_quota": _plain(offer.quota),
        "spot_placement_score": _plain(offer.score),
        "usd_per_node_hour": _plain(offer.usd_per_hour),
        "usd_per_run": _plain(offer.usd_per_run),
        "spot_usd_7_days": None if spot is None else {"low": spot.low, "high": spot.high},
        "block": None
        if block is None
        else {"offering": block.offering, "start": block.start.isoformat(), "hours": block.hours, "nodes": block.nodes},
    }


def _plain(value: object) -> object:
    """A value as it stands in JSON: what is unknown is the text `unknown (why)`."""
    return value if value is None or isinstance(value, int | float) else str(value)


def _print_offers(wanted: Wanted, facts: list[Facts], offers: list[Offer], now: datetime) -> None:
    from trainfabric_cli.account.market import RANKING, block_hours
    from trainfabric_cli.output import console, print_table

    out = console()
    run = f"{wanted.nodes} × {wanted.instance_type} for {wanted.hours:g} h"
    out.print(f"{run}, asked {now:%Y-%m-%d %H:%M} UTC in {', '.join(one.region for one in facts)}\n", style="bold")
    print_table(out, "Offers, the best first", _offers_table(offers))
    out.print(f"Ranked: {RANKING}.")
    out.print("vCPUs/quota: needed, of all that the account may run of the family; what runs takes from it.")
    out.print("Score: 1 to 10. EC2 scores one type alone low: compare zones with it, not against 10.")
    out.print(
        f"USD/h is per node. Spot: the price now; a block: its whole price, asked for {block_hours(wanted.hours)} h; "
        "on demand: the catalog's list price of us-east-1."
    )
    blocks = [f"{rank} is {one.block.offering}" for rank, one in enumerate(offers, 1) if one.block]
    if blocks:
        out.print(f"Blocks to purchase: {', '.join(blocks)}.")
    for why in sorted(_unknowns(offers)):
        out.print(f"• {why}")


def _offers_table(offers: list[Offer]) -> Table:
    from trainfabric_cli.output import table

    numbers = ("#", "score", "USD/h", "USD/run")
    made = table("#", "how", "zone", "fits", "vCPUs/quota", *numbers[1:], "remarks", numbers=numbers)
    for rank, one in enumerate(offers, 1):
        quota = "" if one.quota is None else f"{_short(one.vcpus_needed)}/{_short(one.quota)}"
        how = {"on_demand": "on demand", "capacity_block": "block"}.get(one.kind, str(one.kind))
        prices = (_short(one.usd_per_hour), _short(one.usd_per_run))
        made.add_row(str(rank), how, one.zone, one.verdict, quota, _short(one.score), *prices, _remarks(one))
    return made


def _remarks(offer: Offer) -> str:
    found = list(offer.reasons)
    if offer.block:
        found.append(f"{offer.block.hours} h from {offer.block.start:%m-%d %H:%M}")
    if offer.spot:
        found.append(f"{offer.spot.low:,.2f} to {offer.spot.high:,.2f} in 7 days")
    return "; ".join(found)


def _short(value: object) -> str:
    """A value in a cell; why one is unknown stands below the table."""
    if value is None:
        return ""
    if isinstance(value, float) and value < 1000 and not value.is_integer():
        return f"{value:,.2f}"
    return f"{value:,.0f}" if isinstance(value, int | float) else "unknown"


def _unknowns(offers: list[Offer]) -> set[str]:
    from trainfabric_cli.account.answers import Unknown

    names = {"quota": "quota", "score": "score", "usd_per_hour": "price"}
    values = ((label, getattr(one, name)) for one in offers for name, label in names.items())
    return {f"{label}: {value}" for label, value in values if isinstance(value, Unknown)}


@app.command()
def check(
    environment_file: EnvironmentArgument,
    qualifier: Annotated[str, typer.Option("--qualifier", help="Qualifier of `cdk bootstrap`.")] = "hnb659fds",
    profile: Profile = None,
    as_json: Json = False,
) -> None:
    """Say what the account lacks for an environment, before a deploy. Exit status 1 if something is lacking."""
    from trainfabric_cli.account.check import PARTS, check_account
    from trainfabric_cli.account.checks import lacks_any
    from trainfabric_cli.account.session import Account
    from trainfabric_cli.output import print_json
    from trainfabric_plan.contract import ExitStatus
    from trainfabric_plan.environment.file import read_environment

    environment = read_environment(environment_file)
    account = Account("capacity", profile)
    account.regions([environment.region])
    with _progress(PARTS) as told:
        checks = check_account(account, environment, qualifier, told)
    if as_json:
        print_json(_checked(environment.name, account.identity.account, checks))
    else:
        _print_checks(f"{environment.name}: account {account.identity.account}, {environment.region}", checks)
    raise typer.Exit(ExitStatus.FAILED if lacks_any(checks) else ExitStatus.DONE)


def _checked(name: str, account: str, checks: list[Check]) -> dict[str, Any]:
    from dataclasses import asdict

    return {"environment": name, "account": account, "checks": [asdict(one) for one in checks]}


def _print_checks(title: str, checks: list[Check]) -> None:
    from trainfabric_cli.output import console, table

    made = table("check", "found", "needed", "status")
    for one in checks:
        made.add_row(one.name, one.found, one.needed, one.status)
    out = console()
    out.print(f"{title}\n", style="bold")
    out.print(made)
    remedies = [(one.name, one.remedy) for one in checks if one.remedy]
    for name, remedy in remedies:
        out.print(f"• {name}: {remedy}", soft_wrap=True)
    counts = {status: sum(one.status == status for one in checks) for status in ("ok", "lacks", "unknown")}
    out.print(", ".join(f"{count} {status}" for status, count in counts.items() if count))
