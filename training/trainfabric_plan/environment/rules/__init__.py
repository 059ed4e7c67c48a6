"""Rules over several values of an environment, each a function that yields the mistakes it finds.

A rule gets sections that are valid in themselves, so that one broken section does not hide what is wrong in another.
Each module of this package ends in its `RULES`.
"""

from __future__ import annotations

from trainfabric_plan.environment.rules import capacity, cluster, fleet, network, storage, training
from trainfabric_plan.environment.rules.sections import Sections
from trainfabric_plan.errors import Mistake

__all__ = ["Sections", "mistakes_across"]

_RULES = (*network.RULES, *fleet.RULES, *capacity.RULES, *storage.RULES, *training.RULES, *cluster.RULES)


def mistakes_across(where: str, given: Sections) -> list[Mistake]:
    """Every mistake that shows only when several values are looked at together."""
    return [Mistake(where=where, **broken) for rule in _RULES for broken in rule(given)]
