"""How the sandbox creates, updates and deletes the resources of a stack on moto's `ResourceMap`.

moto skips what it does not know, replaces what it should change, forgets what depends on a change, and answers
unexpected errors with a 500 that an SDK retries for 50 seconds. Here every failure is a 400 ValidationError that names
the resource; properties are held against their schema after resolution; an update touches exactly the resources
whose *resolved* properties differ, so a new launch template version reaches the Auto Scaling group that names it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from moto.cloudformation import parsing
from moto.cloudformation.exceptions import ValidationError
from moto.cloudformation.parsing import OutputMap
from moto.core.exceptions import ServiceException

from sandbox.aws.exports import forget_exports, refuse_bad_update, refuse_dropped_exports
from sandbox.aws.models import Resource
from sandbox.aws.resolution import dependency_order, refuse_bad_properties, refuse_broken_template, resolved

DELETE_PASSES = 3
KEPT = {"Retain", "RetainExceptOnCreate"}


class ResourceFailed(ValidationError):  # type: ignore[misc]  # moto is untyped here
    """A failure that names its resource."""


def client_error(error: Exception) -> Exception:
    """The error as something that moto answers with a 4xx, which no SDK retries."""
    known = isinstance(error, ServiceException)
    failure: Exception = error if known else ValidationError(message=f"{type(error).__name__}: {error}")
    return failure


@contextmanager
def naming(logical_id: str, resource_type: str) -> Iterator[None]:
    """Say which resource a failure belongs to."""
    try:
        yield
    except ResourceFailed:
        raise
    except Exception as error:
        reason = str(getattr(error, "message", None) or client_error(error))
        raise ResourceFailed(message=f"Resource {logical_id} ({resource_type}): {reason}") from error


def creating(create: Callable[..., Any]) -> Callable[..., Any]:
    """moto's `parse_and_create_resource` with checks before it and a memory of the properties after it."""

    def checked(logical_id: str, resource_json: dict[str, Any], resources_map: Any, **where: str) -> Any:
        condition = resource_json.get("Condition")
        if condition and not resources_map.lazy_condition_map[condition]:
            return None
        with naming(logical_id, resource_json["Type"]):
            properties = resolved(resource_json, resources_map)
            refuse_bad_properties(resource_json["Type"], properties)
            resource = create(logical_id, resource_json, resources_map, **where)
        _deployed(resources_map)[logical_id] = copy.deepcopy(properties)
        return resource

    return checked


def update_resources(resource_map: Any, template: dict[str, Any], parameters: dict[str, Any] | None = None) -> None:
    """Bring a stack's resources to a new template; in place of `ResourceMap.update`.

    Raises:
        ValidationError: What failed, by name. The map then speaks of the old template again, so that the next update
            starts from what was asked last with success; changes made before the failure stay.
    """
    refuse_broken_template(template)
    before = dict(resource_map.__dict__)
    gone = _removed(resource_map._resource_json_map, template["Resources"])
    try:
        _adopt(resource_map, template, parameters)
        refuse_dropped_exports(resource_map, template)
        for name in dependency_order(template["Resources"]):
            _create_or_update(resource_map, name)
        refuse_bad_update(resource_map, template)
    except Exception:
        resource_map.__dict__.update({key: before[key] for key in _TEMPLATE_STATE if key in before})
        raise
    _delete(resource_map, gone)


_TEMPLATE_STATE = ("_template", "_resource_json_map", "input_parameters", "resolved_parameters", "lazy_condition_map")


def _adopt(resource_map: Any, template: dict[str, Any], parameters: dict[str, Any] | None) -> None:
    resource_map._template = template
    resource_map._resource_json_map = template["Resources"]
    resource_map.resolved_parameters = {}
    if parameters:
        resource_map.input_parameters = parameters
    resource_map.load_mapping()
    resource_map.load_parameters()
    resource_map.load_conditions()


def _removed(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    for name in old.keys() & new.keys():
        if old[name]["Type"] != new[name]["Type"]:
            raise ValidationError(message=f"Update of resource type is not permitted: {name}")
    return {name: item for name, item in old.items() if name not in new}


def _create_or_update(resource_map: Any, name: str) -> None:
    if name not in resource_map._parsed_resources:
        resource_map[name]
        return
    item = resource_map._resource_json_map[name]
    with naming(name, item["Type"]):
        properties = resolved(item, resource_map)
        if properties != _deployed(resource_map).get(name):
            refuse_bad_properties(item["Type"], properties)
            resource_map._parsed_resources[name] = _updated(resource_map, name, item["Type"], properties)
            _deployed(resource_map)[name] = properties


def _updated(resource_map: Any, name: str, resource_type: str, properties: dict[str, Any]) -> Any:
    model = parsing.resource_class_from_type(resource_type)
    if hasattr(model.update_from_cloudformation_json, "__isabstractmethod__"):
        raise ValidationError(message="moto cannot update this type; start the sandbox anew and deploy again")
    original = resource_map._parsed_resources[name]
    resource = model.update_from_cloudformation_json(
        original_resource=original,
        new_resource_name=_new_name(resource_map, name, resource_type, original, properties),
        cloudformation_json={"Type": resource_type, "Properties": copy.deepcopy(properties)},
        account_id=resource_map._account_id,
        region_name=resource_map._region_name,
    )
    resource.cf_resource_type = resource_type
    resource.logical_resource_id = name
    return resource


def _new_name(resource_map: Any, name: str, resource_type: str, original: Any, properties: dict[str, Any]) -> str:
    given = properties.get(parsing.resource_name_property_from_type(resource_type) or "")
    if given:
        return str(given)
    if isinstance(original, Resource):
        return str(parsing.generate_resource_name(resource_type, resource_map["AWS::StackName"], name))
    return str(original.physical_resource_id)


def roll_back(backend: Any, stack: Any) -> None:
    """Take away what a stack that could not be created left, as far as moto can."""
    forget_exports(backend, stack)
    stack.output_map = OutputMap(stack.resource_map, {}, stack.stack_id)
    try:
        delete_resources(stack.resource_map)
    except Exception as error:  # the first failure is the one to report
        stack._add_stack_event("ROLLBACK_FAILED", resource_status_reason=str(error))


def delete_resources(resource_map: Any) -> None:
    """Delete what no policy keeps, dependants first; in place of `ResourceMap.delete`."""
    _delete(resource_map, resource_map._resource_json_map)


def _delete(resource_map: Any, resources: Mapping[str, Any]) -> None:
    parsed = resource_map._parsed_resources
    pending = [name for name in reversed(dependency_order(resources)) if parsed.get(name) is not None]
    failures: dict[str, Exception] = {}
    for _ in range(DELETE_PASSES):
        failures = {}
        for name in pending:
            try:
                _delete_one(resource_map, parsed[name], resources[name])
            except Exception as error:
                failures[name] = error
            else:
                parsed.pop(name)
                _deployed(resource_map).pop(name, None)
        pending = list(failures)
    for name, failure in failures.items():
        with naming(name, resources[name]["Type"]):
            raise failure


def _delete_one(resource_map: Any, resource: Any, item: Mapping[str, Any]) -> None:
    if item.get("DeletionPolicy") not in KEPT:
        resource_map._delete_resource(resource, item)


def _deployed(resource_map: Any) -> dict[str, Any]:
    """Resolved properties by logical id, as they were deployed last."""
    deployed: dict[str, Any] = resource_map.__dict__.setdefault("_trainfabric_properties", {})
    return deployed
