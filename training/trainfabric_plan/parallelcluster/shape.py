"""Whether a configuration has the shape that ParallelCluster reads: names, kinds, values, and what excludes what."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from trainfabric_plan.parallelcluster.broken import Broken
from trainfabric_plan.parallelcluster.keys import FORMS, Key, Kind, keys_of
from trainfabric_plan.parallelcluster.known import is_settled
from trainfabric_plan.parallelcluster.numbers import as_flag, as_number

_ACTION = {"Script": Kind.TEXT, "Args": Kind.TEXTS}


def shape_mistakes(configuration: object) -> Iterator[Broken]:
    """What in a configuration is no key of ParallelCluster, is missing, or is none of the values that a key takes.

    CloudFormation hands numbers and booleans on as text, so that `"8"` and `"true"` are as good as `8` and `true`.
    Values that are settled at deploy time are not judged.
    """
    if not isinstance(configuration, Mapping):
        yield Broken(at="the configuration", rule="a mapping of keys to values", got=_shown(configuration))
        return
    yield from _section(configuration, "", "")


def _section(given: Mapping[Any, Any], section: str, at: str) -> Iterator[Broken]:
    known = keys_of(section)
    for name, value in given.items():
        where = f"{at}.{name}" if at else str(name)
        if name not in known:
            yield _unknown(where, str(name), known)
        elif value is not None and is_settled(value):
            yield from _value(value, known[name], where)
    for key in known.values():
        if key.required and given.get(key.name) is None:
            yield Broken(at=f"{at}.{key.name}" if at else key.name, rule="given", got="nothing")


def _unknown(where: str, name: str, known: Mapping[str, Key]) -> Broken:
    near = difflib.get_close_matches(name, known, n=2, cutoff=0.6)
    remedy = f"did you mean {' or '.join(near)}?" if near else f"it takes {', '.join(sorted(known))}"
    return Broken(at=where, rule="a key of ParallelCluster 3.16", got=name, remedy=remedy)


def _value(value: Any, key: Key, at: str) -> Iterator[Broken]:
    match key.kind:
        case Kind.SECTION:
            yield from _inner(value, key, at)
        case Kind.SECTIONS:
            for where, one in _items(value, at):
                yield from _inner(one, key, where)
        case Kind.MAP if not isinstance(value, Mapping):
            yield Broken(at=at, rule="a mapping of names to values", got=_shown(value))
        case Kind.MAPS:
            yield from _maps(value, at)
        case Kind.ACTIONS:
            yield from _actions(value, at)
        case Kind.TEXTS:
            yield from _texts(value, key, at)
        case Kind.TEXT | Kind.WHOLE | Kind.NUMBER | Kind.FLAG:
            yield from _single(value, key, at)
    if isinstance(value, list) and key.kind in (Kind.SECTIONS, Kind.TEXTS):
        yield from _within(len(value), key, at, "entries")
    elif key.kind in (Kind.SECTIONS, Kind.TEXTS, Kind.MAPS) and not isinstance(value, list):
        yield Broken(at=at, rule="a list", got=_shown(value))


def _inner(value: Any, key: Key, at: str) -> Iterator[Broken]:
    if isinstance(value, Mapping):
        yield from _section(value, key.path, at)
    elif value is not None:
        yield Broken(at=at, rule=f"a section with {', '.join(sorted(keys_of(key.path)))}", got=_shown(value))


def _items(value: Any, at: str) -> Iterator[tuple[str, Any]]:
    """The entries of a list that are settled, each with where it stands: by its name if it has one."""
    for number, one in enumerate(value if isinstance(value, list) else ()):
        name = one.get("Name") if isinstance(one, Mapping) else None
        if is_settled(one):
            yield f"{at}[{name if isinstance(name, str) and is_settled(name) else number}]", one


def _maps(value: Any, at: str) -> Iterator[Broken]:
    for where, one in _items(value, at):
        if not isinstance(one, Mapping):
            yield Broken(at=where, rule="a mapping of names to values", got=_shown(one))


def _texts(value: Any, key: Key, at: str) -> Iterator[Broken]:
    for where, one in _items(value, at):
        yield from _text(one, key, where)


def _actions(value: Any, at: str) -> Iterator[Broken]:
    if not isinstance(value, Mapping):
        yield Broken(at=at, rule="a Script with its Args, or a Sequence of them", got=_shown(value))
        return
    if "Sequence" in value and ("Script" in value or "Args" in value):
        yield Broken(at=at, rule="either a Script or a Sequence of scripts", got="both", remedy="put it into Sequence")
    if "Sequence" not in value:
        yield from _action(value, at)
        return
    sequence = value["Sequence"]
    if not isinstance(sequence, list):
        yield Broken(at=f"{at}.Sequence", rule="a list", got=_shown(sequence))
    for where, one in _items(sequence, f"{at}.Sequence"):
        if isinstance(one, Mapping):
            yield from _action(one, where)
        else:
            yield Broken(at=where, rule="a Script with its Args", got=_shown(one))


def _action(value: Mapping[Any, Any], at: str) -> Iterator[Broken]:
    for name, one in value.items():
        if name not in (*_ACTION, "Sequence"):
            remedy = "it takes Script and Args, or Sequence"
            yield Broken(at=f"{at}.{name}", rule="a key of ParallelCluster 3.16", got=str(name), remedy=remedy)
        elif name == "Script" and is_settled(one) and not isinstance(one, str):
            yield Broken(at=f"{at}.Script", rule="text", got=_shown(one))
        elif name == "Args" and is_settled(one) and not isinstance(one, list):
            yield Broken(at=f"{at}.Args", rule="a list", got=_shown(one))
    if not value.get("Script") and "Sequence" not in value:
        yield Broken(at=f"{at}.Script", rule="given", got="nothing")


def _single(value: Any, key: Key, at: str) -> Iterator[Broken]:
    match key.kind:
        case Kind.TEXT:
            yield from _text(value, key, at)
        case Kind.FLAG if as_flag(value) is None:
            yield Broken(at=at, rule="true or false", got=_shown(value))
        case Kind.WHOLE | Kind.NUMBER:
            yield from _number(value, key, at)


def _text(value: Any, key: Key, at: str) -> Iterator[Broken]:
    if not isinstance(value, str):
        yield Broken(at=at, rule="text", got=_shown(value))
        return
    if key.values and value not in key.values:
        yield Broken(at=at, rule=f"one of {', '.join(key.values)}", got=value)
    if key.form and not FORMS[key.form][0].fullmatch(value):
        yield Broken(at=at, rule=FORMS[key.form][1], got=value)
    if key.kind is Kind.TEXT:
        yield from _within(len(value), key, at, "letters")


def _number(value: Any, key: Key, at: str) -> Iterator[Broken]:
    read = as_number(value)
    if read is None or (key.kind is Kind.WHOLE and read != int(read)):
        yield Broken(at=at, rule="a whole number" if key.kind is Kind.WHOLE else "a number", got=_shown(value))
    elif key.values and str(int(read)) not in key.values:
        yield Broken(at=at, rule=f"one of {', '.join(key.values)}", got=_shown(value))
    else:
        yield from _within(read, key, at, "")


def _within(size: float, key: Key, at: str, what: str) -> Iterator[Broken]:
    unit = f" {what}" if what else ""
    if key.least is not None and size < key.least:
        yield Broken(at=at, rule=f"at least {key.least:g}{unit}", got=f"{size:g}")
    if key.most is not None and size > key.most:
        yield Broken(at=at, rule=f"at most {key.most:g}{unit}", got=f"{size:g}")


def _shown(value: object) -> str:
    return f"{type(value).__name__} {value!r}"[:80]
