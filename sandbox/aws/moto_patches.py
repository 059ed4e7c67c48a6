"""Every place where the sandbox changes moto, and why; pinned to the one version that was read.

1. `parsing.parse_and_create_resource`, `ResourceMap.update`, `ResourceMap.delete`: see `sandbox.aws.stacks`.
2. `CloudFormationBackend.create_stack`: unknown types are refused before anything is made (moto skips them), any error
   is a 4xx, and a stack that failed is rolled back and forgotten (moto keeps it, and says AlreadyExists next time).
3. `CloudFormationBackend.update_stack`: errors likewise; exports follow the new template (moto keeps the old ones).
   `delete_stack`: refused while another stack imports from it; one that failed is there still, as DELETE_FAILED.
4. `CloudFormationBackend._resolve_update_parameters`: a previous value that was a default is no KeyError.
5. `Stack.mark_creation_complete`: not before every output is evaluated; see `sandbox.aws.exports`.
   `Stack.delete`: outputs of a deleted stack are empty (describing them made moto create the resources again).
6. Change sets: see `sandbox.aws.change_sets`.
7. `Stack.parse_template`: JSON is read as JSON (the YAML reader takes a second for what the CDK writes).
8. `parsing.clean_json`: AWS::NoValue in a list takes the item away (moto leaves null).
9. Models of single services: see `sandbox.aws.model_fixes`.
10. Versions of launch templates: see `sandbox.aws.launch_templates`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

from moto.cloudformation import parsing
from moto.cloudformation.models import CloudFormationBackend, Stack
from moto.cloudformation.parsing import OutputMap, ResourceMap

from sandbox.aws import change_sets, launch_templates, model_fixes, stacks
from sandbox.aws.exports import forget_exports, refuse_bad_outputs, refuse_used_exports, register_exports
from sandbox.aws.resolution import refuse_broken_template
from trainfabric_plan.errors import mistake

MOTO_VERSION = "5.2.5"
Method = Callable[..., Any]


def install() -> None:
    """Change moto in this process.

    Raises:
        InvalidInput: Another version of moto is installed, or one of the places is not there.
    """
    if (found := version("moto")) != MOTO_VERSION:
        raise mistake("sandbox", "moto", f"version {MOTO_VERSION}", found, "install the versions in requirements.txt")
    wrap(parsing, "clean_json", _without_no_value)
    wrap(parsing, "parse_and_create_resource", stacks.creating)
    wrap(ResourceMap, "update", lambda _: stacks.update_resources)
    wrap(ResourceMap, "delete", lambda _: stacks.delete_resources)
    wrap(CloudFormationBackend, "create_stack", _creating_stack)
    wrap(CloudFormationBackend, "update_stack", _updating_stack)
    wrap(CloudFormationBackend, "_resolve_update_parameters", lambda _: _update_parameters)
    wrap(CloudFormationBackend, "delete_stack", lambda _: _delete_stack)
    wrap(Stack, "mark_creation_complete", _completing_stack)
    wrap(Stack, "delete", _deleting_stack)
    wrap(Stack, "parse_template", lambda parse: staticmethod(_parsing_template(parse)))
    model_fixes.install(wrap)
    launch_templates.install(wrap)
    change_sets.install(wrap)


def wrap(owner: Any, name: str, wrapper: Callable[[Method], Any]) -> None:
    """Put `wrapper(original)` in the place of `owner.name`, which must exist."""
    if not hasattr(owner, name):
        raise mistake("sandbox", f"moto's {owner.__name__}.{name}", "there to be changed", remedy="read moto again")
    setattr(owner, name, wrapper(getattr(owner, name)))


def _without_no_value(clean: Method) -> Method:
    def clean_json(resource_json: Any, resources_map: Any) -> Any:
        cleaned = clean(resource_json, resources_map)  # moto's function calls this one for what lies below
        return [item for item in cleaned if item is not None] if isinstance(cleaned, list) else cleaned

    return clean_json


def _creating_stack(create: Method) -> Method:
    def create_stack(backend: Any, name: str, template: str, **rest: Any) -> Any:
        refuse_broken_template(Stack.parse_template(template))
        known = set(backend.stacks)
        try:
            return create(backend, name=name, template=template, **rest)
        except Exception as error:
            for stack_id in set(backend.stacks) - known:
                stacks.roll_back(backend, backend.stacks.pop(stack_id))
            raise stacks.client_error(error) from error

    return create_stack


def _completing_stack(complete: Method) -> Method:
    def mark_creation_complete(stack: Any) -> None:
        refuse_bad_outputs(stack.output_map)
        complete(stack)

    return mark_creation_complete


def _updating_stack(update: Method) -> Method:
    def update_stack(backend: Any, name: str, template: str, **rest: Any) -> Any:
        stack = backend.get_stack(name)
        before = stack.template
        stack.resource_map.cross_stack_resources = backend.exports  # moto gives the first stack a map of its own
        try:
            update(backend, name=name, template=template, **rest)
        except Exception as error:
            stack.template = before
            stack._parse_template()
            stack.status = "UPDATE_ROLLBACK_COMPLETE"
            stack._add_stack_event("UPDATE_ROLLBACK_COMPLETE", resource_status_reason=str(error))
            raise stacks.client_error(error) from error
        register_exports(backend, stack)
        return stack

    return update_stack


def _update_parameters(backend: Any, instance: Any, incoming_params: list[dict[str, Any]]) -> dict[str, Any]:
    given = {item["ParameterKey"]: item["ParameterValue"] for item in incoming_params if "ParameterValue" in item}
    kept = [item["ParameterKey"] for item in incoming_params if item.get("UsePreviousValue")]
    return {**given, **{key: instance.parameters[key] for key in kept if key in instance.parameters}}


def _delete_stack(backend: Any, name_or_stack_id: str) -> None:
    for stack in list(backend.stacks.values()):
        if name_or_stack_id in (stack.name, stack.stack_id):
            refuse_used_exports(backend, stack)
            stack.delete()
            forget_exports(backend, stack)
            backend.deleted_stacks[stack.stack_id] = backend.stacks.pop(stack.stack_id)


def _deleting_stack(delete: Method) -> Method:
    def delete_stack(stack: Any) -> None:
        try:
            delete(stack)
        except Exception as error:
            stack.status = "DELETE_FAILED"
            stack._add_stack_event("DELETE_FAILED", resource_status_reason=str(error))
            raise stacks.client_error(error) from error
        stack.output_map = OutputMap(stack.resource_map, {}, stack.stack_id)

    return delete_stack


def _parsing_template(parse: Method) -> Method:
    def parse_template(template: str) -> Any:
        try:
            return json.loads(template)
        except ValueError:
            return parse(template)

    return parse_template
