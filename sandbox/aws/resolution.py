"""Reads templates: which resources refer to which, and what their properties are once every intrinsic is resolved."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from moto.cloudformation import parsing
from moto.cloudformation.exceptions import ValidationError

from sandbox.aws.rules import service_problems
from sandbox.aws.schema import schema_problems

PSEUDO = "AWS::"
SUBSTITUTION = re.compile(r"\$\{([^!}.]+)[^}]*\}")
Resources = Mapping[str, Mapping[str, Any]]


def unknown_types(resources: Resources) -> list[str]:
    """`Type (LogicalId)` of every resource that neither moto nor the sandbox can make.

    Custom resources are among them: moto would wait for a Lambda function in a container that never answers.
    """
    known = parsing.get_model_map()
    return [f"{item.get('Type')} ({name})" for name, item in resources.items() if item.get("Type") not in known]


def refuse_broken_template(template: Mapping[str, Any]) -> None:
    """Answer 400 ValidationError before anything is made, as CloudFormation does.

    Refused are types that nobody knows, references and DependsOn to what is not in the template, and circles.
    """
    _refuse_unknown_types(template)
    for block in ("Resources", "Outputs"):
        if missing := unresolved(template, block):
            raise ValidationError(
                message=f"Template format error: Unresolved resource dependencies [{', '.join(missing)}] "
                f"in the {block} block of the template"
            )
    dependency_order(template.get("Resources", {}))


def unresolved(template: Mapping[str, Any], block: str) -> list[str]:
    """Names that a block of the template refers to and that are neither resources nor parameters, sorted."""
    known = {*template.get("Resources", {}), *template.get("Parameters", {})}
    named = set(references(template.get(block) or {}))
    return sorted(name for name in named - known if not name.startswith(PSEUDO))


def _refuse_unknown_types(template: Mapping[str, Any]) -> None:
    unknown = unknown_types(template.get("Resources", {}))
    if unknown:
        raise ValidationError(
            message=f"Template format error: Unrecognized resource types: {', '.join(unknown)}; "
            "neither moto nor the sandbox can make them; add a model to sandbox/aws/models"
        )


def dependency_order(resources: Resources) -> list[str]:
    """Logical ids, every one after those that it refers to or depends on."""
    order: dict[str, None] = {}

    def visit(name: str, above: frozenset[str]) -> None:
        if name in order:
            return
        if name in above:
            raise ValidationError(message=f"Circular dependency between resources: [{', '.join(sorted(above))}]")
        for other in references(resources[name]):
            if other in resources and other != name:
                visit(other, above | {name})
        order[name] = None

    for name in resources:
        visit(name, frozenset())
    return list(order)


def references(value: Any) -> Iterator[str]:
    """Every name that Ref, Fn::GetAtt, Fn::Sub or DependsOn mentions, pseudo parameters among them."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _reference(key, item)
            yield from references(item)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


def _reference(key: str, item: Any) -> Iterator[str]:
    if key in ("Ref", "DependsOn") and isinstance(item, str):
        yield item
    elif key == "DependsOn":
        yield from item
    elif key == "Fn::GetAtt":
        yield item[0] if isinstance(item, list) else item.split(".")[0]
    elif key == "Fn::Sub":
        text, own = item if isinstance(item, list) else (item, {})
        yield from (name for name in SUBSTITUTION.findall(text) if name not in own)


def resolved(resource: Mapping[str, Any], resource_map: Any) -> dict[str, Any]:
    """The properties of a resource with every intrinsic resolved; resources that they name are created on the way."""
    properties: dict[str, Any] = parsing.clean_json(resource.get("Properties", {}), resource_map)
    return properties


def refuse_bad_properties(resource_type: str, properties: Mapping[str, Any]) -> None:
    """Fail with 400 ValidationError if resolved properties break their schema, or else the limits of their service."""
    problems = list(schema_problems(resource_type, properties)) or list(service_problems(resource_type, properties))
    if problems:
        raise ValidationError(message="; ".join(problems))
