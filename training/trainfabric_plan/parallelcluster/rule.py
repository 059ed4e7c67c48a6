"""A rule over ParallelCluster's configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from trainfabric_plan.parallelcluster.broken import Broken, Severity
from trainfabric_plan.parallelcluster.view import Cluster

VALIDATORS = "aws-parallelcluster 3.16.1, pcluster/validators, read 2026-12-01"
SCHEMA = "aws-parallelcluster 3.16.1, pcluster/schemas/cluster_schema.py, read 2026-12-01"


@dataclass(frozen=True, kw_only=True)
class ClusterRule:
    """A rule.

    Attributes:
        id: What it is called.
        severity: Whether ParallelCluster or EC2 refuses it.
        title: What it asks for, in one line.
        why: What a user would meet.
        source: Where that stands.
        check: Yields what breaks it.
    """

    id: str
    severity: Severity
    title: str
    why: str
    source: str
    check: Callable[[Cluster], Iterator[Broken]]


Check = Callable[[Cluster], Iterator[Broken]]


def error(id: str, check: Check, *, title: str, why: str, source: str = VALIDATORS) -> ClusterRule:
    """A rule whose breach is refused."""
    return ClusterRule(id=id, severity=Severity.ERROR, title=title, why=why, source=source, check=check)


def warning(id: str, check: Check, *, title: str, why: str, source: str) -> ClusterRule:
    """A rule whose breach works, and hurts."""
    return ClusterRule(id=id, severity=Severity.WARNING, title=title, why=why, source=source, check=check)
