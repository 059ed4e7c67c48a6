"""Outputs and exports of stacks: they must resolve before a deploy succeeds, and hold while another stack imports them.

moto evaluates outputs when somebody describes the stack, and answers 500 from then on; it lets a stack take away or
change what another stack imports, which CloudFormation refuses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from moto.cloudformation import parsing
from moto.cloudformation.exceptions import ValidationError
from moto.cloudformation.models import CloudFormationBackend, cloudformation_backends
from moto.cloudformation.parsing import OutputMap

NOT_DEPLOYED = {"REVIEW_IN_PROGRESS", "ROLLBACK_COMPLETE", "DELETE_COMPLETE"}


def refuse_bad_outputs(output_map: Any) -> None:
    """Evaluate every output and export.

    Raises:
        ValidationError: An output cannot be resolved, or is not text.
    """
    for name, declared in (output_map._output_json_map or {}).items():
        try:
            output = output_map[name]
        except Exception as error:
            reason = getattr(error, "message", None) or f"{type(error).__name__}: {error}"
            raise ValidationError(message=f"Output {name}: {reason}") from error
        if output is None and not _left_out(output_map, declared):
            raise ValidationError(message=f"Output {name}: its Value must be there; it is of no deployed resource")
        if output is not None and isinstance(output.value, Mapping | list):
            raise ValidationError(message=f"Output {name}: its Value must evaluate to a string, got {output.value}")


def _left_out(output_map: Any, declared: Mapping[str, Any]) -> bool:
    return "Condition" in declared and not output_map._resource_map.lazy_condition_map[declared["Condition"]]


def refuse_dropped_exports(resource_map: Any, template: Mapping[str, Any]) -> None:
    """Refuse a template that no longer exports what another stack imports."""
    backend = _backend(resource_map)
    kept = {
        parsing.clean_json(output["Export"]["Name"], resource_map)
        for output in (template.get("Outputs") or {}).values()
        if "Export" in output
    }
    for name in exported(backend, resource_map.stack_id):
        if name not in kept and (users := importers(backend, name)):
            raise ValidationError(message=f"Export {name} cannot be deleted as it is in use by {', '.join(users)}")


def refuse_bad_update(resource_map: Any, template: dict[str, Any]) -> None:
    """Refuse outputs that do not resolve, exports of another stack's name, and new values of what is imported."""
    outputs = OutputMap(resource_map, template, resource_map.stack_id)
    refuse_bad_outputs(outputs)
    backend = _backend(resource_map)
    for export in outputs.exports:
        before = backend.exports.get(export.name)
        if before is None:
            continue
        if before.exporting_stack_id != export.exporting_stack_id:
            owner = backend.get_stack(before.exporting_stack_id).name
            raise ValidationError(message=f"Export with name {export.name} is already exported by stack {owner}")
        if before.value != export.value and (users := importers(backend, export.name)):
            raise ValidationError(
                message=f"Export {export.name} cannot be updated as it is in use by {', '.join(users)}"
            )


def refuse_used_exports(backend: Any, stack: Any) -> None:
    """Refuse to delete a stack that another one imports from."""
    for name in exported(backend, stack.stack_id):
        if users := importers(backend, name):
            raise ValidationError(
                message=f"Delete canceled. Cannot delete export {name} as it is in use by {', '.join(users)}."
            )


def exported(backend: Any, stack_id: str) -> list[str]:
    """Names that a stack exports now."""
    return [name for name, export in backend.exports.items() if export.exporting_stack_id == stack_id]


def importers(backend: Any, name: str) -> list[str]:
    """Names of the deployed stacks that import an export."""
    return [
        stack.name
        for stack in backend.stacks.values()
        if stack.status not in NOT_DEPLOYED and name in set(_imports(stack.template_dict, stack.resource_map))
    ]


def _imports(value: Any, resource_map: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key == "Fn::ImportValue":
                yield parsing.clean_json(item, resource_map)
            yield from _imports(item, resource_map)
    elif isinstance(value, list):
        for item in value:
            yield from _imports(item, resource_map)


def register_exports(backend: Any, stack: Any) -> None:
    """Put the exports of a stack in the place of those that it had."""
    forget_exports(backend, stack)
    backend.exports.update({export.name: export for export in stack.exports})


def forget_exports(backend: Any, stack: Any) -> None:
    """Drop the exports of a stack."""
    for name in exported(backend, stack.stack_id):
        del backend.exports[name]


def _backend(resource_map: Any) -> CloudFormationBackend:
    return cloudformation_backends[resource_map._account_id][resource_map._region_name]
