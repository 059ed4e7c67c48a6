"""Change sets by stack and name, and their execution; the default way of `cdk deploy` and `cdk diff`.

moto looks change sets up by name alone, though the CDK gives the sets of all stacks one name, and executes them
past the code that creates and updates stacks (no outputs, no exports).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moto.cloudformation.exceptions import CloudFormationError
from moto.cloudformation.models import CloudFormationBackend, Stack
from moto.cloudformation.responses import CloudFormationResponse

from sandbox.aws import stacks
from sandbox.aws.exports import register_exports
from sandbox.aws.resolution import refuse_broken_template

Method = Callable[..., Any]


class ChangeSetNotFound(CloudFormationError):  # type: ignore[misc]  # moto is untyped here
    """As CloudFormation answers."""

    code = "ChangeSetNotFound"


def install(wrap: Callable[[Any, str, Callable[[Method], Any]], None]) -> None:
    """Change moto; `wrap` is that of `sandbox.aws.moto_patches`."""
    wrap(CloudFormationResponse, "describe_change_set", _by_arn)
    wrap(CloudFormationResponse, "execute_change_set", _by_arn)
    wrap(CloudFormationResponse, "delete_change_set", _by_arn)
    wrap(CloudFormationBackend, "create_change_set", _creating)
    wrap(CloudFormationBackend, "describe_change_set", lambda _: _describe)
    wrap(CloudFormationBackend, "delete_change_set", lambda _: _delete)
    wrap(CloudFormationBackend, "execute_change_set", lambda _: _execute)


def _by_arn(answer: Method) -> Method:
    """Let the request name the change set by its ARN, whatever the client called it."""

    def answered(response: Any) -> Any:
        name, stack_name = response._get_param("ChangeSetName"), response._get_param("StackName")
        for arn, found in response.cloudformation_backend.change_sets.items():
            if found.change_set_name == name and stack_name in (found.stack_name, found.stack_id):
                response.params["ChangeSetName"] = arn
        return answer(response)

    return answered


def _creating(create: Method) -> Method:
    def create_change_set(backend: Any, *, template: str, **rest: Any) -> Any:
        refuse_broken_template(Stack.parse_template(template))
        return create(backend, template=template, **rest)

    return create_change_set


def _describe(backend: Any, change_set_name: str) -> Any:
    if change_set_name not in backend.change_sets:  # the CDK waits for this answer after it has deleted one
        raise ChangeSetNotFound(f"ChangeSet [{change_set_name}] does not exist")
    return backend.change_sets[change_set_name]


def _delete(backend: Any, change_set_name: str) -> None:
    backend.change_sets.pop(change_set_name, None)


def _execute(backend: Any, change_set_name: str, stack_name: str | None = None) -> None:
    change_set = _describe(backend, change_set_name)
    stack = backend.stacks[change_set.stack_id]
    if change_set.change_set_type == "CREATE":
        _create(backend, stack, change_set)
    else:
        parameters = [{"ParameterKey": key, "ParameterValue": value} for key, value in change_set.parameters.items()]
        backend.update_stack(
            name=stack.name, template=change_set.template, role_arn=None, parameters=parameters, tags=change_set.tags
        )
    change_set.execution_status = "EXECUTE_COMPLETE"


def _create(backend: Any, stack: Any, change_set: Any) -> None:
    stack._add_stack_event("CREATE_IN_PROGRESS", resource_status_reason="User Initiated")
    try:
        _fill(backend, stack, change_set)
    except Exception as error:
        failure = stacks.client_error(error)
        stacks.roll_back(backend, stack)
        stack.status = "ROLLBACK_COMPLETE"
        stack._add_stack_event("ROLLBACK_COMPLETE", resource_status_reason=str(failure))
        raise failure from error


def _fill(backend: Any, stack: Any, change_set: Any) -> None:
    stack.template = change_set.template
    stack.parameters = change_set.parameters
    stack.cross_stack_resources = backend.exports
    stack._parse_template()
    stack.resource_map = stack._create_resource_map()
    stack.output_map = stack._create_output_map()
    backend._validate_export_uniqueness(stack)
    register_exports(backend, stack)
    stack.create_resources()
