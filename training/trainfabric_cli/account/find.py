"""Asks all regions at once where a fleet can be had."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import datetime

from trainfabric_cli.account.answers import Unknown
from trainfabric_cli.account.market import LONGEST_BLOCK_H, Facts, Wanted
from trainfabric_cli.account.region import RegionReader
from trainfabric_cli.account.session import Account
from trainfabric_plan.catalog.instances import find_instance_type, nearest_instance_types
from trainfabric_plan.errors import InvalidInput, Mistake, mistake

_AT_ONCE = 16

MOST_NODES = 10_000
"""More is taken for a slip of the keyboard."""


def check_wanted(nodes: int, hours: float) -> None:
    """Refuse numbers that no fleet has.

    Raises:
        InvalidInput: With every number that is out of range.
    """
    mistakes = []
    if not 1 <= nodes <= MOST_NODES:
        mistakes.append(Mistake(where="capacity", name="--nodes", rule=f"from 1 to {MOST_NODES}", got=str(nodes)))
    if not 0 < hours <= LONGEST_BLOCK_H:
        rule = f"more than 0 and at most {LONGEST_BLOCK_H} (182 days, the longest Capacity Block)"
        mistakes.append(Mistake(where="capacity", name="--hours", rule=rule, got=f"{hours:g}"))
    if mistakes:
        raise InvalidInput(mistakes)


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
    return mistake("capacity", "--instance-type", rule, instance_type, remedy)
