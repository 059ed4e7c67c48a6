"""The JSON Schema of the environment file, for completion and checks in editors.

`python -m trainfabric_plan.environment.schema PATH` writes it; a test holds the committed file against it.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import json
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trainfabric_plan.environment.types import Environment
from trainfabric_plan.model import Strict


def environment_schema() -> dict[str, Any]:
    """The schema, with the text below each field of the types as its description.

    pydantic would read those texts from the source each time that anybody imports the types, which takes longer than
    all else that it does.
    """
    schema = Environment.model_json_schema()
    described = {one.__name__: one for one in _models(Environment)}
    for name, definition in {Environment.__name__: schema, **schema["$defs"]}.items():
        if name in described:
            _describe(definition["properties"], described[name])
    return schema


def _models(model: type[Strict]) -> Iterator[type[Strict]]:
    yield model
    for one in Strict.__subclasses__():
        yield from (one, *one.__subclasses__())


def _describe(properties: dict[str, Any], model: type[Strict]) -> None:
    for name, text in _field_texts(model).items():
        given = {**properties[name], "description": text}
        properties[name] = {key: given[key] for key in sorted(given)}


def _field_texts(model: type[Strict]) -> dict[str, str]:
    """Fields of a model, each with the text that stands below it."""
    (found,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    assert isinstance(found, ast.ClassDef)
    return {
        one.target.id: inspect.cleandoc(below.value.value)
        for one, below in itertools.pairwise(found.body)
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) and isinstance(below.value.value, str)
    }


def schema_text() -> str:
    """The schema as JSON, with a trailing newline."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **environment_schema()}
    return json.dumps(schema, indent=2) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(schema_text(), encoding="utf-8")
