"""The option tables of the environment file, for people.

`python -m trainfabric_plan.environment.reference PATH` writes them as Markdown; a test holds the committed file
against it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trainfabric_plan.environment.schema import environment_schema

_HEADER = """\
# The environment file

Generated from `trainfabric_plan.environment.types`; change the types, then run
`python -m trainfabric_plan.environment.reference docs/environment-file.md`.

An environment is one YAML file. Unknown keys, keys given twice and values of another kind are refused, all of them at
once, each with its line. A first line `# yaml-language-server: $schema=environment.schema.json` gives editors
completion.
"""

Schema = dict[str, Any]


def reference_text() -> str:
    """The tables as Markdown, one for the file and one for each section, with a trailing newline."""
    schema = environment_schema()
    parts = [_HEADER]
    for name, section in _sections(schema, schema["$defs"], ""):
        title = f"`{name}`" if name else "Top level"
        parts.append(f"## {title}\n\n{section['description']}\n\n{_table(section, schema['$defs'])}")
    return "\n".join(parts)


def _sections(schema: Schema, definitions: Schema, path: str) -> Iterator[tuple[str, Schema]]:
    """Every section with the dotted path of its key, outer before inner."""
    yield path, schema
    for key, value in schema["properties"].items():
        inner = _reference(value)
        if inner:
            yield from _sections(definitions[inner], definitions, f"{path}.{key}".lstrip("."))


def _reference(value: Schema) -> str | None:
    """Name of the section that a key holds, `None` for plain values."""
    candidates = (value, *value.get("anyOf", ()), *value.get("allOf", ()))
    found = next((one["$ref"] for one in candidates if "$ref" in one), None)
    return None if found is None else str(found).rpartition("/")[2]


def _table(section: Schema, definitions: Schema) -> str:
    required = section.get("required", [])
    rows = ["| key | type | default | meaning |", "|---|---|---|---|"]
    for key, value in section["properties"].items():
        default = "required" if key in required else _default(value)
        rows.append(f"| `{key}` | {_type(value)} | {default} | {_meaning(value, definitions)} |")
    return "\n".join(rows) + "\n"


def _default(value: Schema) -> str:
    default = value.get("default")
    if _reference(value) and default is not None:
        return "as below"
    return "none" if default is None else f"`{json.dumps(default)}`"


def _type(value: Schema) -> str:
    if _reference(value):
        return "section"
    options = [one for one in value.get("anyOf", [value]) if one.get("type") != "null"]
    return _kind(options[0])


def _kind(value: Schema) -> str:
    if "enum" in value:
        return " or ".join(f"`{one}`" for one in value["enum"])
    kind = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}
    name = kind.get(value["type"], "keys and texts")
    limits = {"minimum": "at least", "exclusiveMinimum": "more than", "maximum": "at most", "pattern": "matches"}
    for limit, words in limits.items():
        if limit in value:
            shown = f"`{value[limit]}`".replace("|", "\\|") if limit == "pattern" else value[limit]
            name += f", {words} {shown}"
    return name


def _meaning(value: Schema, definitions: Schema) -> str:
    inner = _reference(value)
    text = value.get("description") or (definitions[inner]["description"] if inner else "")
    return " ".join(str(text).replace("|", "\\|").split())


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(reference_text(), encoding="utf-8")
