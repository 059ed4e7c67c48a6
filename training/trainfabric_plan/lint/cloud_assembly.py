"""Reading what `cdk synth` wrote."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trainfabric_plan.errors import mistake
from trainfabric_plan.lint.assembly import Assembly
from trainfabric_plan.lint.values import Template

_SUFFIX = ".template.json"
_NESTED = ".nested.template.json"


def read_cloud_assembly(directory: Path) -> Assembly:
    """All templates of a `cdk.out` directory, those of stages and nested stacks among them.

    Raises:
        InvalidInput: If it holds no templates, or one that cannot be read.
    """
    files = sorted(directory.rglob(f"*{_SUFFIX}"))
    if not files:
        rule, remedy = "one with *.template.json files", "run cdk synth or name a template"
        raise mistake(str(directory), "the directory", rule, "none", remedy)
    nested = {file.name: _read(file) for file in files if file.name.endswith(_NESTED)}
    return Assembly((_read(file) for file in files if not file.name.endswith(_NESTED)), nested=nested)


def _read(file: Path) -> Template:
    try:
        body = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise mistake(str(file), "the template", "valid JSON", " ".join(str(error).split())) from None
    empty = isinstance(body, dict) and "Resources" not in body  # a stack of which nothing is left
    return template_from({**body, "Resources": {}} if empty else body, str(file))


def template_from(body: Any, name: str, **given: Any) -> Template:
    """A template of a parsed file.

    Raises:
        InvalidInput: If it is no CloudFormation template.
    """
    problems = list(_problems(body))
    if problems:
        raise mistake(name, "the template", *problems[0])
    return Template(name=name, body=body, **given)


def _problems(body: Any) -> Iterator[tuple[str, str | None, str | None]]:
    if not isinstance(body, dict):
        yield "a mapping with Resources", type(body).__name__, None
        return
    if not isinstance(body.get("Resources"), dict):
        yield "one with a mapping Resources", "none", "name a CloudFormation template"
