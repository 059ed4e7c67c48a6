"""Holds a resource's properties against CloudFormation's resource schemas and botocore's parameter models.

The resource schemas are those that cfn-lint ships (patched by its authors where AWS's own are wrong), checked with
cfn-lint's validator: types, required, additionalProperties, enum, pattern, and its own rules such as requiredXor.
CloudFormation reads "1200" as a number where a number is asked; so does `coerced`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from botocore.session import Session
from botocore.validate import ParamValidator
from cfnlint.jsonschema import CfnTemplateValidator
from cfnlint.schema import ResourceNotFoundError
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

SCHEMA_REGION = "us-east-1"
LOOKED_UP = "resolve:"
SHOWN_VALUES = 20
BOOLEANS = {"true": True, "false": False}


@lru_cache(maxsize=512)
def resource_schema(resource_type: str) -> dict[str, Any] | None:
    """The CloudFormation resource schema of a type; `None` where cfn-lint ships none."""
    try:
        schema: dict[str, Any] = PROVIDER_SCHEMA_MANAGER.get_resource_schema(SCHEMA_REGION, resource_type).schema
    except ResourceNotFoundError:
        return None
    return schema


def schema_problems(resource_type: str, properties: Mapping[str, Any]) -> Iterator[str]:
    """Every rule of the resource schema that these properties (no intrinsics left) break."""
    schema = resource_schema(resource_type)
    if schema is None:
        return
    writable = coerced(dict(properties), schema)
    for error in CfnTemplateValidator(schema).iter_errors(writable):
        path = ".".join(str(part) for part in error.path) or "Properties"
        yield f"property {path} breaks the rule {error.validator} of the CloudFormation schema: {error.message}"


def coerced(value: Any, schema: Mapping[str, Any]) -> Any:
    """`value` with the scalars that CloudFormation would convert turned into what the schema asks."""
    return _coerced(value, schema, schema)


def _coerced(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    schema = _resolved(schema, root)
    if isinstance(value, dict):
        members = schema.get("properties", {})
        return {key: _coerced(item, members.get(key, {}), root) for key, item in value.items()}
    if isinstance(value, list):
        items = schema.get("items", {})
        return [_coerced(item, items if isinstance(items, dict) else {}, root) for item in value]
    return _coerced_scalar(value, schema.get("type"))


def _resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    while "$ref" in schema:
        target: Any = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        schema = target
    return schema


def _coerced_scalar(value: Any, wanted: Any) -> Any:
    if wanted in ("integer", "number") and isinstance(value, str):
        try:
            return int(value) if wanted == "integer" else float(value)
        except ValueError:
            return value
    if wanted == "boolean" and isinstance(value, str):
        return BOOLEANS.get(value.lower(), value)
    if wanted == "string" and isinstance(value, bool):
        return str(value).lower()
    if wanted == "string" and isinstance(value, int | float):
        return str(value)
    return value


@lru_cache(maxsize=64)
def _service_model(service: str) -> Any:
    return Session().get_service_model(service)


def api_problems(service: str, operation: str, parameters: Mapping[str, Any]) -> Iterator[str]:
    """Every rule of botocore's parameter model of an API call that these parameters break, its enumerations too."""
    shape = _service_model(service).operation_model(operation).input_shape
    report = ParamValidator().validate(dict(parameters), shape)
    if report.has_errors():
        for line in report.generate_report().splitlines():
            yield f"{service}:{operation} would refuse it: {line.strip()}"
        return
    for problem in _enumeration_problems(shape, parameters, ""):
        yield f"{service}:{operation} would refuse it: {problem}"


def _enumeration_problems(shape: Any, value: Any, path: str) -> Iterator[str]:
    """ParamValidator leaves enumerations to the service."""
    if shape.type_name == "structure":
        for name, item in value.items():
            yield from _enumeration_problems(shape.members[name], item, f"{path}.{name}")
    elif shape.type_name == "list":
        for number, item in enumerate(value):
            yield from _enumeration_problems(shape.member, item, f"{path}.{number}")
    elif getattr(shape, "enum", None) and value not in shape.enum and not value.startswith(LOOKED_UP):
        known = f"one of {', '.join(shape.enum)}" if len(shape.enum) <= SHOWN_VALUES else f"a known {shape.name}"
        yield f"{path.removeprefix('.')} must be {known}, got {value}"
