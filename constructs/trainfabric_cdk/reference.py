"""The page about the constructs, from their signatures and docstrings: `python -m trainfabric_cdk.reference FILE`."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import trainfabric_cdk

_SECTION = re.compile(r"(Args|Attributes|Raises|Returns|Yields):")
_ENTRY = re.compile(r"    (?! )(?P<name>[\w.*]+): (?P<text>.+)")
_OWN = "trainfabric_cdk"
_HEAD = """\
# Constructs

Generated from the docstrings in `trainfabric_cdk`; change those, then run `make generate`.

```python
from trainfabric_cdk import {names}
```
"""


def reference_text() -> str:
    """The whole page, in Markdown."""
    names = ", ".join(trainfabric_cdk.__all__[:3]) + " …"
    parts = [_HEAD.format(names=names), *(_of(name) for name in trainfabric_cdk.__all__)]
    return "\n".join(parts)


def sections(docstring: str) -> dict[str, str]:
    """The sections of a docstring in Google's style by name, that before the first as ``."""
    found, name = {"": ""}, ""
    for line in inspect.cleandoc(docstring).splitlines():
        head = _SECTION.fullmatch(line)
        name = head[1] if head else name
        found[name] = found.get(name, "") + ("" if head else f"{line}\n")
    return found


def entries(section: str) -> dict[str, str]:
    """What a section says by name, each on one line."""
    found: dict[str, str] = {}
    for line in section.splitlines():
        entry = _ENTRY.fullmatch(line)
        if entry:
            found[entry["name"]] = entry["text"]
        elif found and line.strip():
            found[list(found)[-1]] += f" {line.strip()}"
    return found


def _of(name: str) -> str:
    made: Any = getattr(trainfabric_cdk, name)
    said = sections(made.__doc__ or "")
    lines = [f"## {name}", "", said[""].strip(), ""]
    if "Args" in said:
        lines += [*_properties(made, entries(said["Args"])), ""]
    if "Attributes" in said:
        lines += [*_table("attribute", entries(said["Attributes"])), ""]
    lines += [line for method in _ways_to_make(made) for line in method]
    if "Raises" in said:
        lines += [f"Raises `{error}`: {text}" for error, text in entries(said["Raises"]).items()] + [""]
    return "\n".join(lines)


def _properties(made: Any, told: dict[str, str]) -> Iterator[str]:
    """Properties with their types and defaults, `scope` and `id` left out."""
    yield "| property | type | default | |"
    yield "|---|---|---|---|"
    is_class = inspect.isclass(made)
    left_out = ("self", "scope", "id") if is_class else ()
    for one in inspect.signature(made.__init__ if is_class else made).parameters.values():
        if one.name in left_out or one.kind is one.VAR_KEYWORD:
            continue
        default = "**needed**" if one.default is one.empty else f"`{_default(one.default)}`"
        yield f"| `{one.name}` | {_type(one.annotation)} | {default} | {told.get(one.name, '')} |"


def _table(what: str, told: dict[str, str]) -> Iterator[str]:
    yield f"| {what} | |"
    yield "|---|---|"
    for name, text in told.items():
        yield f"| `{name}` | {text} |"


def _ways_to_make(made: Any) -> Iterator[list[str]]:
    """Class and static methods of an enum-like class, and of a construct that takes what exists."""
    for name, member in vars(made).items():
        if isinstance(member, classmethod | staticmethod) and not name.startswith("_"):
            signature = str(inspect.signature(getattr(made, name))).partition(" -> ")[0].replace("'", "")
            summary = sections(inspect.getdoc(member.__func__) or "")[""].strip().replace("\n", " ")
            yield [f"- `{made.__name__}.{name}{signature}`: {summary}", ""]


def _type(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    return f"`{text}`".replace("|", "\\|")


def _default(value: Any) -> str:
    return repr(value) if isinstance(value, str | int | float | bool | tuple | None) else type(value).__name__


def main(arguments: list[str]) -> None:
    """Writes the page."""
    (target,) = arguments
    Path(target).write_text(reference_text())


if __name__ == "__main__":
    main(sys.argv[1:])
