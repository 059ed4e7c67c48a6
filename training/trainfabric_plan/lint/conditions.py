"""Conditions of a template, as far as the values that they compare are known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from trainfabric_plan.lint.values import MISSING, UNKNOWN, Reference, Template

if TYPE_CHECKING:
    from trainfabric_plan.lint.assembly import Assembly


def condition(assembly: Assembly, name: object, template: Template) -> bool | None:
    """Whether a condition of a template holds; `None` where only a deployment would tell."""
    if not isinstance(name, str):
        return None
    return _holds(assembly, template.section("Conditions").get(name), template, (name,))


def _holds(assembly: Assembly, raw: Any, template: Template, seen: tuple[str, ...]) -> bool | None:
    if not isinstance(raw, Mapping) or len(raw) != 1:
        return None
    ((function, given),) = raw.items()
    if function == "Condition" and isinstance(given, str) and given not in seen:
        return _holds(assembly, template.section("Conditions").get(given), template, (*seen, given))
    if not isinstance(given, list):
        return None
    if function == "Fn::Equals" and len(given) == 2:
        return _equal(*(assembly.resolve(one, template) for one in given))
    inner = (_holds(assembly, one, template, seen) for one in given)
    return _combined(function, inner)


def _equal(one: Any, other: Any) -> bool | None:
    if any(value in (UNKNOWN, MISSING) or isinstance(value, Reference | Mapping | list) for value in (one, other)):
        return None
    return _text(one) == _text(other)


def _text(value: Any) -> str:
    """CloudFormation compares texts: `true` in YAML is the text `true`."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _combined(function: str, inner: Iterator[bool | None]) -> bool | None:
    held = list(inner)
    if function == "Fn::Not" and len(held) == 1:
        return None if held[0] is None else not held[0]
    decided, otherwise = {"Fn::And": (False, True), "Fn::Or": (True, False)}.get(function, (None, None))
    if decided is None or not held:
        return None
    if decided in held:
        return decided
    return None if None in held else otherwise
