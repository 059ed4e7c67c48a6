"""One line of what an account has against what an environment needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from trainfabric_cli.account.answers import Unknown

T = TypeVar("T")


class Status(StrEnum):
    """How a check ended."""

    OK = "ok"
    LACKS = "lacks"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True)
class Check:
    """One thing that a deploy needs.

    Attributes:
        name: What was looked at.
        found: What the account has, or why that is unknown.
        needed: What the environment needs.
        status: How they compare.
        remedy: What to do, where it lacks.
    """

    name: str
    found: str
    needed: str
    status: Status
    remedy: str | None = None


def judged(
    name: str,
    answer: T | Unknown,
    needed: str,
    *,
    fits: Callable[[T], bool],
    shown: Callable[[T], str] = str,
    remedy: str | None = None,
) -> Check:
    """The check of an answer: unknown where AWS did not give one, and lacking where it does not fit."""
    if isinstance(answer, Unknown):
        return Check(name=name, found=answer.why, needed=needed, status=Status.UNKNOWN)
    if fits(answer):
        return Check(name=name, found=shown(answer), needed=needed, status=Status.OK)
    return Check(name=name, found=shown(answer), needed=needed, status=Status.LACKS, remedy=remedy)


def lacks_any(checks: Iterable[Check]) -> bool:
    """Whether something is lacking; what is unknown does not count."""
    return any(check.status is Status.LACKS for check in checks)
