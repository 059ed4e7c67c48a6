"""Asks all regions at once where a fleet can be had."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import datetime

from trainfabric_cli.account.answers import Unknown
from trainfabric_cli.account.market import LONGEST_BLOCK_H, Facts, Wanted
from trainfabric_cli.account.region import RegionReader
from trainfabric_cli.account.session import Account
from trainfabric_cli.options import region_mistakes, type_mistakes
from trainfabric_plan.catalog.instances import find_instance_type, nearest_instance_types
from trainfabric_plan.errors import InvalidInput, Mistake, mistake

_AT_ONCE = 16

WHERE = "capacity"

MOST_NODES = 10_000
"""More is taken for a slip of the keyboard."""


def regions_of(text: str | None) -> list[str] | None:
    """The regions between the commas; `None` where none were asked for."""
    return None if text is None else [one.strip() for one in text.split(",") if one.strip()]


def check_wanted(instance_type: str, nodes: int, hours: float, regions: Sequence[str] | None) -> None:
    """Refuse what no account could have, before anybody's credentials are asked for.

    Raises:
        InvalidInput: With every name that cannot be one, and every number that is out of range.
    """
    mistakes = [*type_mistakes(WHERE, "--instance-type", instance_type), *_region_mistakes(regions)]
    if not 1 <= nodes <= MOST_NODES:
        mistakes.append(Mistake(where=WHERE, name="--nodes", rule=f"from 1 to {MOST_NODES}", got=str(nodes)))
    if not 0 < hours <= LONGEST_BLOCK_H:
        rule = f"more than 0 and at most {LONGEST_BLOCK_H} (182 days, the longest Capacity Block)"
        mistakes.append(Mistake(where=WHERE, name="--hours", rule=rule, got=f"{hours:g}"))
    if mistakes:
        raise InvalidInput(mistakes)


def _region_mistakes(regions: Sequence[str] | None) -> Iterator[Mistake]:
    if regions == []:
        remedy = "leave it out to ask all regions of the account"
        yield Mistake(where=WHERE, name="--regions", rule="names separated by commas", got="none", remedy=remedy)
    for region in dict.fromkeys(regions or ()):
        yield from region_mistakes(WHERE, "--regions", region)


def ask_regions(
    account: Account, regions: Iterable[str], wanted: Wanted, now: datetime, told: Callable[[str], None]
) -> list[Facts]:
    """What the regions answer, in the order of their names; `told` is called with each region that has answered.

    Raises:
        InvalidInput: If no region offers the instance type.
    """
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        futures = {pool.submit(RegionReader(account, region).facts, wanted, now): region for region in regions}
        answers = []
        for future in as_completed(futures):
            answers.append(future.result())
            told(futures[future])
    if not any(isinstance(one.zones, Unknown) or one.zones for one in answers):
        raise _offered_nowhere(wanted.instance_type, sorted(futures.values()))
    return sorted(answers, key=lambda one: one.region)


def _offered_nowhere(instance_type: str, regions: list[str]) -> InvalidInput:
    near = nearest_instance_types(instance_type)
    if find_instance_type(instance_type):
        remedy = "leave out --regions to ask all regions of the account"
    else:
        remedy = f"did you mean {' or '.join(near)}?" if near else "trainfabric catalog lists types"
    rule = f"a type that EC2 offers in {', '.join(regions)}"
    return mistake(WHERE, "--instance-type", rule, instance_type, remedy)
