"""All checks of an account for an environment."""

from __future__ import annotations

from collections.abc import Callable

from trainfabric_cli.account.check_access import access_checks
from trainfabric_cli.account.check_capacity import capacity_checks
from trainfabric_cli.account.check_resources import resource_checks
from trainfabric_cli.account.checks import Check
from trainfabric_cli.account.session import Account
from trainfabric_plan.environment import Environment

PARTS = 3
"""Steps of progress."""


def check_account(
    account: Account, environment: Environment, qualifier: str, told: Callable[[str], None]
) -> list[Check]:
    """What the account has against what the environment needs; `told` is called with each part that is done."""
    access = access_checks(account, environment, qualifier)
    told("who deploys")
    capacity = capacity_checks(account, environment)
    told("capacity")
    resources = resource_checks(account, environment)
    told("what the file names")
    return [*access, *capacity, *resources]
