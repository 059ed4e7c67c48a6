"""What a rule is, and what it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from trainfabric_plan.errors import Mistake
from trainfabric_plan.lint.assembly import Assembly
from trainfabric_plan.lint.values import Value


class Severity(StrEnum):
    """How bad a finding is."""

    ERROR = "error"
    """AWS refuses it, or it does not do what it is there for."""
    WARNING = "warning"
    """It works, but is slower, less safe or dearer than it need be."""


@dataclass(frozen=True, kw_only=True)
class Broken:
    """One place where a rule is broken.

    Attributes:
        at: The value that breaks it; its path is the place.
        must: Completes "must be …", as in `trainfabric_plan.errors.Mistake`.
        got: The offending value as text, or `None` where there is none to show.
        remedy: What to do about it.
    """

    at: Value
    must: str
    got: object = None
    remedy: str


Check = Callable[[Assembly], Iterable[Broken]]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One rule over CloudFormation templates.

    Attributes:
        id: Stable name, for `--select`, `--ignore` and suppressions.
        severity: How bad a finding is.
        title: What the rule asks for, in one line.
        why: What happens otherwise.
        source: Where that is documented or was reported, with the date of reading.
        check: Yields every place of an assembly where the rule is broken.
    """

    id: str
    severity: Severity
    title: str
    why: str
    source: str
    check: Check

    def findings(self, assembly: Assembly) -> list[Finding]:
        """Every place of an assembly where the rule is broken, once each."""
        found = dict.fromkeys(Finding.of(self, broken) for broken in self.check(assembly))
        return list(found)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A rule that is broken in a template.

    Attributes:
        rule: The rule's id.
        severity: How bad it is.
        template: Name of the template, as a file path or a stack.
        line: Line in that file, where it is known.
        logical_id: The resource; empty for a file that is no template.
        path: Property inside the resource, such as `Properties.LaunchTemplateData.UserData`.
        must: Completes "must be …".
        got: The offending value, or `None`.
        remedy: What to do about it.
    """

    rule: str
    severity: Severity
    template: str
    line: int | None
    logical_id: str
    path: str
    must: str
    got: str | None
    remedy: str

    @classmethod
    def of(cls, rule: Rule, broken: Broken) -> Finding:
        """The finding of a broken rule."""
        place = broken.at.place
        return cls(
            rule=rule.id,
            severity=rule.severity,
            template=place.template.name,
            line=place.line,
            logical_id="" if place.template.root else place.logical_id,
            path=place.path,
            must=broken.must,
            got=None if broken.got is None else str(broken.got),
            remedy=broken.remedy,
        )

    @property
    def message(self) -> str:
        """The finding in one line, in the words of every other error of trainfabric."""
        where = self.template if self.line is None else f"{self.template}:{self.line}"
        name = ".".join(part for part in (self.logical_id, self.path) if part)
        return str(Mistake(where=where, name=name, rule=self.must, got=self.got, remedy=self.remedy))
