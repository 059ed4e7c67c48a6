"""Reading what `cdk synth` wrote."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from trainfabric_plan.errors import InvalidInput, mistake, unreadable
from trainfabric_plan.lint.assembly import Assembly
from trainfabric_plan.lint.values import Template

MOST_LEVELS = 100
"""Levels of a template beyond which it is refused: what reads it goes down them by recursion. Templates of the CDK have
about 15."""

_SUFFIX = ".template.json"
_NESTED = ".nested.template.json"


def read_cloud_assembly(directory: Path, parameters: Mapping[str, str] | None = None) -> Assembly:
    """All templates of a `cdk.out` directory, those of stages and nested stacks among them.

    Args:
        directory: What `cdk synth` wrote.
        parameters: Values of parameters of the stacks.

    Raises:
        InvalidInput: If it holds no templates, or one that cannot be read.
    """
    files = sorted(directory.rglob(f"*{_SUFFIX}"))
    if not files:
        rule, remedy = "one with *.template.json files", "run cdk synth or name a template"
        raise mistake(str(directory), "the directory", rule, "none", remedy)
    nested = {file.name: _read(file) for file in files if file.name.endswith(_NESTED)}
    stacks = (_read(file, parameters) for file in files if not file.name.endswith(_NESTED))
    return Assembly(stacks, nested=nested)


def _read(file: Path, parameters: Mapping[str, str] | None = None) -> Template:
    try:
        body = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable(file, "the template", error) from None
    except RecursionError:
        raise too_deep(str(file)) from None
    except ValueError as error:
        raise mistake(str(file), "the template", "valid JSON", " ".join(str(error).split())) from None
    empty = isinstance(body, dict) and "Resources" not in body  # a stack of which nothing is left
    return template_from({**body, "Resources": {}} if empty else body, str(file), parameters=dict(parameters or {}))


def template_from(body: Any, name: str, **given: Any) -> Template:
    """A template of a parsed file.

    Raises:
        InvalidInput: If it is no CloudFormation template.
    """
    problems = list(_problems(body))
    if problems:
        raise mistake(name, "the template", *problems[0])
    if _depth_exceeds(body, MOST_LEVELS):
        raise too_deep(name)
    return Template(name=name, body=body, **given)


def too_deep(name: str) -> InvalidInput:
    """The error about a template that nests more than any that people write."""
    return mistake(name, "the template", f"nested at most {MOST_LEVELS} levels deep", "more")


def _depth_exceeds(value: Any, levels: int) -> bool:
    """Whether mappings and lists are nested deeper than so many levels; looked at level by level, not by recursion."""
    inside = [value]
    for _ in range(levels + 1):
        containers = [one for one in inside if isinstance(one, dict | list)]
        inside = [one for each in containers for one in (each.values() if isinstance(each, dict) else each)]
        if not inside:
            return False
    return True


def _problems(body: Any) -> Iterator[tuple[str, str | None, str | None]]:
    if not isinstance(body, dict):
        yield "a mapping with Resources", type(body).__name__, None
        return
    if not isinstance(body.get("Resources"), dict):
        yield "one with a mapping Resources", "none", "name a CloudFormation template"
