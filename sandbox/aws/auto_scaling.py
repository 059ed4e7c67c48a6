"""Auto Scaling groups and their instances, as AWS keeps them and moto does not.

1. Launching: an instance has the AMI behind `resolve:ssm:`, is spot if the template says so, and keeps the template
   version that it was launched from, which DescribeAutoScalingGroups shows (moto shows the default of the moment).
2. `AutoScalingBackend.set_desired_capacity`: within MinSize and MaxSize, of an existing group.
3. `AutoScalingBackend.notify_terminate_instances`: a terminated instance is replaced only as far as the desired
   capacity asks for it (moto replaces each).
4. `AutoScalingBackend.set_instance_protection`: an instance that loses its protection while there are too many is
   terminated (moto waits for the next change of the desired capacity).
5. `AutoScalingBackend.terminate_instance`: an unknown instance is a ValidationError (moto answers 500).
6. `SimpleSystemManagerBackend.get_parameter`: AWS's public parameters of Deep Learning images exist.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from moto.autoscaling.exceptions import ValidationError
from moto.autoscaling.models import AutoScalingBackend, FakeAutoScalingGroup, InstanceState
from moto.ssm.models import Parameter, SimpleSystemManagerBackend, ssm_backends

Method = Callable[..., Any]
RESOLVED = "resolve:ssm:"
DEEP_LEARNING_IMAGES = "/aws/service/deeplearning/ami/"
DEEP_LEARNING_IMAGE = "ami-0dee91ea2211da7a0"
"""moto has no Deep Learning image; all of them are this one."""


def install(wrap: Callable[[Any, str, Callable[[Method], Any]], None]) -> None:
    """Change moto; `wrap` is that of `sandbox.aws.moto_patches`."""
    wrap(FakeAutoScalingGroup, "replace_autoscaling_group_instances", _launching)
    wrap(InstanceState, "launch_template", lambda _: property(_launched_from))
    wrap(AutoScalingBackend, "set_desired_capacity", _within_bounds)
    wrap(AutoScalingBackend, "notify_terminate_instances", lambda _: _replace_terminated)
    wrap(AutoScalingBackend, "set_instance_protection", _scaling_in)
    wrap(AutoScalingBackend, "terminate_instance", _of_a_member)
    wrap(SimpleSystemManagerBackend, "get_parameter", _with_images)


def _launching(launch: Method) -> Method:
    def launch_instances(group: Any, *arguments: Any, **more: Any) -> None:
        before = {state.instance.id for state in group.instance_states}
        launch(group, *arguments, **more)
        if group.ec2_launch_template is None:
            return
        version = group.ec2_launch_template.get_version(group.launch_template_version)
        for state in group.instance_states:
            if state.instance.id not in before:
                _remember(group, state.instance, version)

    return launch_instances


def _remember(group: Any, instance: Any, version: Any) -> None:
    template = group.ec2_launch_template
    instance.lifecycle = version.data.get("InstanceMarketOptions", {}).get("MarketType")
    instance.image_id = _resolved(group, instance.image_id)
    instance.launched_from = {
        "LaunchTemplateId": template.id,
        "LaunchTemplateName": template.name,
        "Version": str(version.number),
    }


def _resolved(group: Any, image_id: str) -> str:
    if not image_id.startswith(RESOLVED):
        return image_id
    name = image_id.removeprefix(RESOLVED)
    parameter = ssm_backends[group.account_id][group.region].get_parameter(name)
    if parameter is None:
        raise ValidationError(f"You must use a valid fully-formed launch template. The parameter {name} does not exist")
    return str(parameter.value)


def _launched_from(state: Any) -> dict[str, Any] | None:
    return getattr(state.instance, "launched_from", None)


def _within_bounds(change: Method) -> Method:
    def set_desired_capacity(backend: Any, group_name: str, desired_capacity: int | None) -> None:
        group = backend.autoscaling_groups.get(group_name)
        if group is None:
            raise ValidationError("AutoScalingGroup name not found - AutoScalingGroup not found")
        wanted = int(desired_capacity or 0)
        for above, name, bound in ((True, "max", group.max_size), (False, "min", group.min_size)):
            if (wanted > int(bound)) if above else (wanted < int(bound)):
                word = "above" if above else "below"
                raise ValidationError(
                    f"New SetDesiredCapacity value {wanted} is {word} {name} value {bound} for the AutoScalingGroup."
                )
        change(backend, group_name, wanted)

    return set_desired_capacity


def _replace_terminated(backend: Any, instance_ids: Sequence[str]) -> None:
    for group in backend.autoscaling_groups.values():
        left = [state for state in group.instance_states if state.instance.id not in instance_ids]
        if len(left) < len(group.instance_states):
            group.instance_states = left
            group.set_desired_capacity(group.desired_capacity)


def _scaling_in(change: Method) -> Method:
    def set_instance_protection(
        backend: Any, group_name: str, instance_ids: Sequence[str], protected_from_scale_in: bool | None
    ) -> None:
        change(backend, group_name, instance_ids, protected_from_scale_in)
        group = backend.autoscaling_groups[group_name]
        if not protected_from_scale_in and len(group.active_instances()) > int(group.desired_capacity or 0):
            group.set_desired_capacity(group.desired_capacity)

    return set_instance_protection


def _of_a_member(terminate: Method) -> Method:
    def terminate_instance(backend: Any, instance_id: str, should_decrement: bool) -> Any:
        members = (state for group in backend.autoscaling_groups.values() for state in group.instance_states)
        if not any(state.instance.id == instance_id for state in members):
            raise ValidationError(f"Instance Id not found - No managed instance found for instance ID: {instance_id}")
        return terminate(backend, instance_id, should_decrement)

    return terminate_instance


def _with_images(get: Method) -> Method:
    def get_parameter(backend: Any, name: str) -> Any:
        if name.startswith(DEEP_LEARNING_IMAGES) and name.endswith("/latest/ami-id"):
            return _image_parameter(backend, name)
        return get(backend, name)

    return get_parameter


def _image_parameter(backend: Any, name: str) -> Parameter:
    return Parameter(
        account_id=backend.account_id,
        name=name,
        value=DEEP_LEARNING_IMAGE,
        parameter_type="String",
        description=None,
        allowed_pattern=None,
        keyid=None,
        last_modified_date=datetime.now(UTC),
        version=1,
        data_type="aws:ec2:image",
    )
