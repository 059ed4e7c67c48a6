"""Running the rules."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from trainfabric_plan.errors import InvalidInput, Mistake
from trainfabric_plan.lint.assembly import Assembly
from trainfabric_plan.lint.model import Finding, Rule, Severity
from trainfabric_plan.lint.rules import RULES


def lint(assembly: Assembly, rules: Iterable[Rule] = tuple(RULES.values())) -> list[Finding]:
    """Every finding in an assembly, errors first, then in the order of the templates."""
    order = {template.name: index for index, template in enumerate(assembly.templates)}
    found = [finding for rule in rules for finding in rule.findings(assembly)]
    return sorted(found, key=lambda one: (one.severity is Severity.WARNING, order[one.template], one.logical_id))


def chosen_rules(select: Sequence[str] = (), ignore: Sequence[str] = ()) -> tuple[Rule, ...]:
    """The rules with these ids, or all; without the ignored ones.

    Raises:
        InvalidInput: With every id that no rule has.
    """
    unknown = [(option, name) for option, ids in (("select", select), ("ignore", ignore)) for name in ids]
    mistakes = [_unknown(option, name) for option, name in unknown if name not in RULES]
    if mistakes:
        raise InvalidInput(mistakes)
    return tuple(rule for rule in RULES.values() if (not select or rule.id in select) and rule.id not in ignore)


def _unknown(option: str, name: str) -> Mistake:
    near = difflib.get_close_matches(name, RULES, n=2, cutoff=0.5)
    remedy = f"did you mean {' or '.join(near)}?" if near else "docs/lint-rules.md lists them"
    return Mistake(where="lint", name=option, rule="the id of a rule", got=name, remedy=remedy)
