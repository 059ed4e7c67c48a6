"""Where moto's models of single services cannot deploy, update or delete what our templates contain.

1. `AutoScalingGroup`: updated in place (moto terminates the nodes and makes a new group); more of it in
   `sandbox.aws.auto_scaling`.
2. `RouteTable`: can be deleted by CloudFormation (moto leaves it, and then the VPC "has dependencies").
3. `FakeBucket.get_permission`: statements of a bucket policy with a condition are not enforced (moto ignores the
   condition, so "deny without TLS" denies everything).
4. `kms.Key`, `ssm.Parameter`: tags in CloudFormation's form (moto takes those of the API).
5. `FakeBucket`: versioning and the block of public access are set (moto leaves them out), and a bucket that
   CloudFormation named can be updated; one with objects is not deleted (moto keeps it in silence). Life cycle rules
   stay in the template alone.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

from moto.autoscaling.models import FakeAutoScalingGroup
from moto.cloudformation.exceptions import ValidationError
from moto.ec2.models import ec2_backends
from moto.ec2.models.route_tables import RouteTable
from moto.kms.models import Key
from moto.s3.models import FakeBucket, s3_backends
from moto.ssm.models import Parameter

from sandbox.aws import auto_scaling

Method = Callable[..., Any]
CREATE = "create_from_cloudformation_json"
UPDATE = "update_from_cloudformation_json"
DELETE = "delete_from_cloudformation_json"


def install(wrap: Callable[[Any, str, Callable[[Method], Any]], None]) -> None:
    """Change moto; `wrap` is that of `sandbox.aws.moto_patches`."""
    wrap(FakeAutoScalingGroup, UPDATE, lambda _: classmethod(_update_group))
    auto_scaling.install(wrap)
    wrap(RouteTable, DELETE, lambda _: classmethod(_delete_route_table))
    wrap(FakeBucket, "get_permission", _unconditional)
    wrap(Key, CREATE, lambda create: _with_properties(create, _key_tags))
    wrap(Parameter, CREATE, lambda create: _with_properties(create, _parameter_tags))
    wrap(FakeBucket, CREATE, _creating_bucket)
    wrap(FakeBucket, UPDATE, _updating_bucket)
    wrap(FakeBucket, DELETE, _deleting_bucket)


def _update_group(
    cls: type[Any],
    original_resource: Any,
    new_resource_name: str,
    cloudformation_json: dict[str, Any],
    account_id: str,
    region_name: str,
) -> Any:
    properties = cloudformation_json["Properties"]
    original_resource.update(
        availability_zones=properties.get("AvailabilityZones", []),
        desired_capacity=_number(properties.get("DesiredCapacity")),
        max_size=_number(properties.get("MaxSize")),
        min_size=_number(properties.get("MinSize")),
        launch_config_name=properties.get("LaunchConfigurationName"),
        launch_template=properties.get("LaunchTemplate", {}),
        vpc_zone_identifier=",".join(properties.get("VPCZoneIdentifier", [])) or None,
        health_check_period=properties.get("HealthCheckGracePeriod"),
        health_check_type=properties.get("HealthCheckType"),
        new_instances_protected_from_scale_in=properties.get("NewInstancesProtectedFromScaleIn"),
        mixed_instances_policy=properties.get("MixedInstancesPolicy", {}),
    )
    original_resource.tags = properties.get("Tags", [])
    return original_resource


def _number(value: str | int | None) -> int | None:
    return None if value is None else int(value)


def _unconditional(permission: Method) -> Method:
    def get_permission(bucket: Any, action: str, resource: str) -> Any:
        if bucket.policy is None:
            return permission(bucket, action, resource)
        document = json.loads(bucket.policy)
        statements = [statement for statement in document["Statement"] if "Condition" not in statement]
        enforced = copy.copy(bucket)
        enforced.policy = json.dumps({**document, "Statement": statements}).encode() if statements else None
        return permission(enforced, action, resource)

    return get_permission


def _delete_route_table(
    cls: type[Any], resource_name: str, cloudformation_json: dict[str, Any], account_id: str, region_name: str
) -> None:
    table = ec2_backends[account_id][region_name].route_tables.pop(resource_name, None)
    if table is not None:
        table.associations.clear()


def _with_properties(create: Method, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Method:
    def create_changed(resource_name: str, cloudformation_json: dict[str, Any], *where: Any, **more: Any) -> Any:
        properties = change(cloudformation_json["Properties"])
        return create(resource_name, {**cloudformation_json, "Properties": properties}, *where, **more)

    return create_changed


def _key_tags(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        **properties,
        "Tags": [{"TagKey": tag["Key"], "TagValue": tag["Value"]} for tag in properties.get("Tags", [])],
    }


def _parameter_tags(properties: dict[str, Any]) -> dict[str, Any]:
    tags = [{"Key": key, "Value": value} for key, value in properties.get("Tags", {}).items()]
    return {**properties, "Tags": tags}


def _creating_bucket(create: Method) -> Method:
    def create_bucket(
        resource_name: str, cloudformation_json: dict[str, Any], account_id: str, region_name: str, **more: Any
    ) -> Any:
        bucket = create(resource_name, cloudformation_json, account_id, region_name, **more)
        _configure(bucket, cloudformation_json["Properties"], account_id)
        return bucket

    return create_bucket


def _updating_bucket(update: Method) -> Method:
    def update_bucket(
        *, original_resource: Any, cloudformation_json: dict[str, Any], account_id: str, **more: Any
    ) -> Any:
        properties = {"BucketName": original_resource.name, **cloudformation_json["Properties"]}
        json_of_bucket = {**cloudformation_json, "Properties": properties}
        bucket = update(
            original_resource=original_resource, cloudformation_json=json_of_bucket, account_id=account_id, **more
        )
        _configure(bucket, properties, account_id)
        return bucket

    return update_bucket


def _deleting_bucket(delete: Method) -> Method:
    def delete_bucket(
        resource_name: str, cloudformation_json: dict[str, Any], account_id: str, region_name: str
    ) -> None:
        if s3_backends[account_id]["aws"].get_bucket(resource_name).keys:
            raise ValidationError(message=f"the bucket {resource_name} is not empty")
        delete(resource_name, cloudformation_json, account_id, region_name)

    return delete_bucket


def _configure(bucket: Any, properties: dict[str, Any], account_id: str) -> None:
    backend = s3_backends[account_id]["aws"]
    if "VersioningConfiguration" in properties:
        backend.put_bucket_versioning(bucket.name, properties["VersioningConfiguration"]["Status"])
    if "PublicAccessBlockConfiguration" in properties:
        backend.put_public_access_block(bucket.name, properties["PublicAccessBlockConfiguration"])
