"""What the embedded AWS says about the nodes of an environment: instances that should run, as they were launched."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from trainfabric_plan.contract import environment_parameter
from trainfabric_plan.deployed import DeployedEnvironment, parse_deployed
from trainfabric_plan.errors import NotFound, Unreachable

EFA_TYPES = ("efa", "efa-only")
VERSION_IS_GONE = "InvalidLaunchTemplateId.VersionNotFound"
"""A job's version is deleted when the next one starts, and an instance of it may still be there."""


@dataclass(frozen=True, kw_only=True)
class Instance:
    """An instance that EC2 says is running; nothing of it changes when its launch template gets a new version.

    Attributes:
        instance_id: Such as `i-0123456789abcdef0`.
        instance_type: Such as `p5.48xlarge`.
        availability_zone: Such as `us-east-1a`.
        image_id: Of the AMI.
        spot: Whether EC2 may take it back.
        user_data: As EC2 gives it to the instance, decoded.
        efa_devices: Interfaces with EFA.
        accelerators: Name of each GPU of its type.
        tags: Of the instance.
        shows_tags: Whether its metadata service does.
    """

    instance_id: str
    instance_type: str
    availability_zone: str
    image_id: str
    spot: bool
    user_data: str
    efa_devices: int
    accelerators: tuple[str, ...]
    tags: dict[str, str]
    shows_tags: bool


class Fleet:
    """The Auto Scaling groups of a deployed environment, read with boto3 as anybody would."""

    def __init__(self, environment: str) -> None:
        """Read the environment's SSM parameter.

        Raises:
            NotFound: If no such environment is deployed.
            Unreachable: If the embedded AWS does not answer.
        """
        self._autoscaling = boto3.client("autoscaling")
        self._ec2 = boto3.client("ec2")
        self.deployed = _deployed(environment)
        self._known: dict[str, Instance] = {}
        self._accelerators: dict[str, tuple[str, ...]] = {}

    def running(self) -> list[Instance]:
        """The instances that should run now.

        Raises:
            Unreachable: If the embedded AWS does not answer.
        """
        try:
            return self._running()
        except (BotoCoreError, ClientError) as error:
            raise _silent(error) from error

    def terminate(self, instance_id: str) -> None:
        """What EC2 does after a spot notice or when a machine dies: the instance is terminated, its group goes on.

        Raises:
            Unreachable: If the embedded AWS does not answer.
        """
        try:
            self._ec2.terminate_instances(InstanceIds=[instance_id])
        except (BotoCoreError, ClientError) as error:
            raise _silent(error) from error

    def _running(self) -> list[Instance]:
        groups = [group.name for group in self.deployed.groups]
        found = self._autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=groups)["AutoScalingGroups"]
        members = {member["InstanceId"]: member for group in found for member in group["Instances"]}
        if not members:
            return []
        answer = self._ec2.describe_instances(InstanceIds=list(members))
        described = [item for reservation in answer["Reservations"] for item in reservation["Instances"]]
        running = [item for item in described if item["State"]["Name"] == "running"]
        return [self._instance(item, members[item["InstanceId"]]) for item in running]

    def _instance(self, described: dict[str, Any], member: dict[str, Any]) -> Instance:
        name = described["InstanceId"]
        if name not in self._known:
            self._known[name] = self._read(described, self._launched_from(member))
        return self._known[name]

    def _read(self, described: dict[str, Any], template: dict[str, Any]) -> Instance:
        interfaces = template.get("NetworkInterfaces", [])
        return Instance(
            instance_id=described["InstanceId"],
            instance_type=described["InstanceType"],
            availability_zone=described["Placement"]["AvailabilityZone"],
            image_id=described["ImageId"],
            spot=described.get("InstanceLifecycle") == "spot",
            user_data=self._user_data(described["InstanceId"]),
            efa_devices=sum(interface.get("InterfaceType") in EFA_TYPES for interface in interfaces),
            accelerators=self._accelerators_of(described["InstanceType"]),
            tags={tag["Key"]: tag["Value"] for tag in described.get("Tags", [])},
            shows_tags=template.get("MetadataOptions", {}).get("InstanceMetadataTags") == "enabled",
        )

    def _user_data(self, instance_id: str) -> str:
        answer = self._ec2.describe_instance_attribute(InstanceId=instance_id, Attribute="userData")
        return base64.b64decode(answer["UserData"].get("Value", "")).decode()

    def _launched_from(self, member: dict[str, Any]) -> dict[str, Any]:
        named = member["LaunchTemplate"]
        try:
            return self._version(named["LaunchTemplateId"], named["Version"])
        except ClientError as error:
            if error.response["Error"]["Code"] != VERSION_IS_GONE:
                raise
            return self._version(named["LaunchTemplateId"], "$Default")  # the hardware is that of every version

    def _version(self, template_id: str, version: str) -> dict[str, Any]:
        found = self._ec2.describe_launch_template_versions(LaunchTemplateId=template_id, Versions=[version])
        data: dict[str, Any] = found["LaunchTemplateVersions"][0]["LaunchTemplateData"]
        return data

    def _accelerators_of(self, instance_type: str) -> tuple[str, ...]:
        if instance_type not in self._accelerators:
            found = self._ec2.describe_instance_types(InstanceTypes=[instance_type])["InstanceTypes"]
            gpus = [gpu for item in found for gpu in item.get("GpuInfo", {}).get("Gpus", [])]
            names = [f"{gpu['Manufacturer']} {gpu['Name']}" for gpu in gpus for _ in range(gpu["Count"])]
            self._accelerators[instance_type] = tuple(names)
        return self._accelerators[instance_type]


def _silent(error: Exception) -> Unreachable:
    return Unreachable(f"sandbox: the embedded AWS must answer, got {error}; is it running?")


def _deployed(environment: str) -> DeployedEnvironment:
    ssm = boto3.client("ssm")
    name = environment_parameter(environment)
    try:
        value = ssm.get_parameter(Name=name)["Parameter"]["Value"]
    except ssm.exceptions.ParameterNotFound as error:
        raise NotFound(f"sandbox: no environment {environment} is deployed; cdk deploy --all makes {name}") from error
    except (BotoCoreError, ClientError) as error:
        raise _silent(error) from error
    return parse_deployed(value, environment)
