"""What is wrong with a configuration, at one of its keys."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from trainfabric_plan.errors import Mistake


class Severity(StrEnum):
    """Whether ParallelCluster or EC2 refuses it, or takes it and users regret it."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, kw_only=True)
class Broken:
    """One broken rule.

    Attributes:
        at: Path of the key, entries of lists by their names.
        rule: Completes "must be …".
        got: The offending value.
        remedy: What to do about it.
    """

    at: str
    rule: str
    got: str | None = None
    remedy: str | None = None

    def mistake(self, where: str) -> Mistake:
        """As a mistake of a file or a construct."""
        return Mistake(where=where, name=self.at, rule=self.rule, got=self.got, remedy=self.remedy)
