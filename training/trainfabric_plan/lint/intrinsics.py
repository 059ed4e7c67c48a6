"""Intrinsic functions of CloudFormation, worked out as far as the templates say."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from trainfabric_plan.lint.conditions import condition
from trainfabric_plan.lint.values import UNKNOWN, Reference, Template

if TYPE_CHECKING:
    from trainfabric_plan.lint.assembly import Assembly

_VARIABLE = re.compile(r"\$\{(!?)([^}]*)\}")


def resolve(assembly: Assembly, raw: Any, template: Template) -> Any:
    """A plain value, a list or mapping of raw values, a `Reference`, `UNKNOWN` or `MISSING`."""
    if not isinstance(raw, Mapping):
        return raw
    name = next((key for key in raw if key == "Ref" or str(key).startswith("Fn::")), None)
    if name is None:
        return raw
    function = _FUNCTIONS.get(name)
    return function(assembly, raw[name], template) if function and len(raw) == 1 else UNKNOWN


def text_parts(assembly: Assembly, raw: Any, template: Template) -> list[Any]:
    """Texts of a `Fn::Join`, `Fn::Sub` or `Fn::Base64` in their order, and between them raw values that are unknown."""
    if isinstance(raw, Mapping) and len(raw) == 1:
        ((name, given),) = raw.items()
        if name == "Fn::Base64":
            return text_parts(assembly, given, template)
        if name == "Fn::Join":
            return _parts_of_join(assembly, given, template)
        if name == "Fn::Sub":
            return _parts_of_sub(assembly, given, template)
    known = resolve(assembly, raw, template)
    return [str(known)] if isinstance(known, str | int | float) and not isinstance(known, bool) else [raw]


def _parts_of_join(assembly: Assembly, given: Any, template: Template) -> list[Any]:
    if not (isinstance(given, list) and len(given) == 2 and isinstance(given[0], str)):
        return [{"Fn::Join": given}]
    values = resolve(assembly, given[1], template)
    if not isinstance(values, list):
        return [{"Fn::Join": given}]
    parts: list[Any] = []
    for index, value in enumerate(values):
        parts += [given[0]] if index else []
        parts += text_parts(assembly, value, template)
    return parts


def _parts_of_sub(assembly: Assembly, given: Any, template: Template) -> list[Any]:
    pattern, variables = given if isinstance(given, list) and len(given) == 2 else (given, {})
    if not isinstance(pattern, str) or not isinstance(variables, Mapping):
        return [{"Fn::Sub": given}]
    parts: list[Any] = []
    end = 0
    for match in _VARIABLE.finditer(pattern):
        parts.append(pattern[end : match.start()])
        end = match.end()
        parts += _variable(assembly, match, variables, template)
    return [*parts, pattern[end:]]


def _variable(assembly: Assembly, match: re.Match[str], variables: Mapping[str, Any], template: Template) -> list[Any]:
    literal, name = match.groups()
    if literal:
        return [f"${{{name}}}"]
    if name in variables:
        return text_parts(assembly, variables[name], template)
    if "." in name:
        return text_parts(assembly, {"Fn::GetAtt": name.split(".", 1)}, template)
    return text_parts(assembly, {"Ref": name}, template)


def _joined(parts: list[Any], assembly: Assembly, template: Template) -> Any:
    given = [part for part in parts if part != ""]
    if all(isinstance(part, str) for part in given):
        return "".join(given)
    if len(given) == 1 and isinstance(given[0], Mapping) and not ({"Fn::Join", "Fn::Sub"} & given[0].keys()):
        return assembly.resolve(given[0], template)
    return UNKNOWN


def _ref(assembly: Assembly, given: Any, template: Template) -> Any:
    return assembly.ref(given, template) if isinstance(given, str) else UNKNOWN


def _attribute(assembly: Assembly, given: Any, template: Template) -> Any:
    parts = given.split(".", 1) if isinstance(given, str) else given
    if isinstance(parts, list) and len(parts) == 2 and all(isinstance(part, str) for part in parts):
        return assembly.attribute(parts[0], parts[1], template)
    return UNKNOWN


def _import(assembly: Assembly, given: Any, template: Template) -> Any:
    name = assembly.resolve(given, template)
    return assembly.imported(name) if isinstance(name, str) else UNKNOWN


def _join(assembly: Assembly, given: Any, template: Template) -> Any:
    return _joined(_parts_of_join(assembly, given, template), assembly, template)


def _sub(assembly: Assembly, given: Any, template: Template) -> Any:
    return _joined(_parts_of_sub(assembly, given, template), assembly, template)


def _select(assembly: Assembly, given: Any, template: Template) -> Any:
    if not (isinstance(given, list) and len(given) == 2):
        return UNKNOWN
    index, values = assembly.resolve(given[0], template), assembly.resolve(given[1], template)
    if not (isinstance(values, list) and str(index).isdigit() and int(index) < len(values)):
        return UNKNOWN
    return assembly.resolve(values[int(index)], template)


def _find_in_map(assembly: Assembly, given: Any, template: Template) -> Any:
    if not isinstance(given, list) or len(given) != 3:
        return UNKNOWN
    found: Any = template.section("Mappings")
    for key in (assembly.resolve(one, template) for one in given):
        if not isinstance(found, Mapping) or not isinstance(key, str) or key not in found:
            return UNKNOWN
        found = found[key]
    return found


def _split(assembly: Assembly, given: Any, template: Template) -> Any:
    if not (isinstance(given, list) and len(given) == 2 and isinstance(given[0], str)):
        return UNKNOWN
    text = assembly.resolve(given[1], template)
    return text.split(given[0]) if isinstance(text, str) else UNKNOWN


def _if(assembly: Assembly, given: Any, template: Template) -> Any:
    """The branch of a condition that is known; otherwise both, if they are the same."""
    if not (isinstance(given, list) and len(given) == 3):
        return UNKNOWN
    held = condition(assembly, given[0], template)
    if held is not None:
        return assembly.resolve(given[1 if held else 2], template)
    yes, no = assembly.resolve(given[1], template), assembly.resolve(given[2], template)
    return yes if yes == no and not isinstance(yes, Reference | Mapping | list) else UNKNOWN


_FUNCTIONS: dict[str, Callable[[Assembly, Any, Template], Any]] = {
    "Ref": _ref,
    "Fn::GetAtt": _attribute,
    "Fn::ImportValue": _import,
    "Fn::Join": _join,
    "Fn::Sub": _sub,
    "Fn::Select": _select,
    "Fn::FindInMap": _find_in_map,
    "Fn::Split": _split,
    "Fn::If": _if,
}
