"""What is wrong with a configuration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trainfabric_plan.parallelcluster.broken import Broken, Severity
from trainfabric_plan.parallelcluster.rules import RULES
from trainfabric_plan.parallelcluster.shape import shape_mistakes
from trainfabric_plan.parallelcluster.view import cluster_of

SHAPE = "pcluster-shape"


@dataclass(frozen=True, kw_only=True)
class Found:
    """A broken rule.

    Attributes:
        rule: Its id; `pcluster-shape` for what is no configuration at all.
        severity: Of the rule.
        broken: What is wrong, and where.
    """

    rule: str
    severity: Severity
    broken: Broken


def check(configuration: Any) -> Iterator[Found]:
    """Everything that is wrong with a configuration, as far as its values stand in it: its shape, then the rules."""
    for broken in shape_mistakes(configuration):
        yield Found(rule=SHAPE, severity=Severity.ERROR, broken=broken)
    if not isinstance(configuration, Mapping):
        return
    cluster = cluster_of(configuration)
    for rule in RULES.values():
        for broken in rule.check(cluster):
            yield Found(rule=rule.id, severity=rule.severity, broken=broken)
