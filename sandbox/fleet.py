"""What the embedded AWS says about the nodes of an environment: instances that should run, and their user data."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from trainfabric_plan.contract import Paths, environment_parameter
from trainfabric_plan.deployed import DeployedEnvironment
from trainfabric_plan.errors import InvalidInput, NotFound, Unreachable, mistake

HEREDOC = re.compile(
    rf"^cat > ?{re.escape(Paths.NODE_ENVIRONMENT)} <<-? ?(['\"]?)(?P<end>\w+)\1\n(?P<body>.*?)^(?P=end)$", re.M | re.S
)


@dataclass(frozen=True, kw_only=True)
class Instance:
    """An instance that EC2 says is running.

    `variables` is the block of variables that the user data of its launch template version writes.
    """

    instance_id: str
    instance_type: str
    availability_zone: str
    spot: bool
    tags: dict[str, str]
    variables: dict[str, str]


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
        self._user_data: dict[tuple[str, str], dict[str, Any]] = {}

    def running(self) -> list[Instance]:
        """The instances that should run now."""
        try:
            return self._running()
        except (BotoCoreError, ClientError) as error:
            raise Unreachable(f"sandbox: the embedded AWS must answer, got {error}; is it running?") from error

    def _running(self) -> list[Instance]:
        groups = [group for group in (self.deployed.coordinator_group, self.deployed.worker_group) if group]
        found = self._autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=groups)["AutoScalingGroups"]
        members = {member["InstanceId"]: group for group in found for member in group["Instances"]}
        if not members:
            return []
        answer = self._ec2.describe_instances(InstanceIds=list(members))
        described = [item for reservation in answer["Reservations"] for item in reservation["Instances"]]
        return [self._instance(item, members) for item in described if item["State"]["Name"] == "running"]

    def _instance(self, described: dict[str, Any], groups: dict[str, Any]) -> Instance:
        template = self._template(groups[described["InstanceId"]])
        return Instance(
            instance_id=described["InstanceId"],
            instance_type=described["InstanceType"],
            availability_zone=described["Placement"]["AvailabilityZone"],
            spot=template.get("InstanceMarketOptions", {}).get("MarketType") == "spot",
            tags={tag["Key"]: tag["Value"] for tag in described.get("Tags", [])},
            variables=node_variables(base64.b64decode(template["UserData"]).decode()),
        )

    def _template(self, group: dict[str, Any]) -> dict[str, Any]:
        mixed = group.get("MixedInstancesPolicy") or {}
        named = group.get("LaunchTemplate") or mixed["LaunchTemplate"]["LaunchTemplateSpecification"]
        key = (named["LaunchTemplateId"], named.get("Version", "$Default"))
        if key not in self._user_data:
            versions = self._ec2.describe_launch_template_versions(LaunchTemplateId=key[0], Versions=[key[1]])
            self._user_data[key] = versions["LaunchTemplateVersions"][0]["LaunchTemplateData"]
        return self._user_data[key]


def node_variables(user_data: str) -> dict[str, str]:
    """The variables of the here-document that user data writes to `Paths.NODE_ENVIRONMENT`.

    Raises:
        InvalidInput: If there is no such here-document, or a line of it is no `NAME=value`.
    """
    found = HEREDOC.search(user_data)
    if found is None:
        raise _user_data_mistake(f"a shell script with cat > {Paths.NODE_ENVIRONMENT} <<'WORD' in it", "none")
    lines = [line for line in found["body"].splitlines() if line.strip()]
    for line in lines:
        if not re.match(r"^[A-Z_][A-Z0-9_]*=", line):
            raise _user_data_mistake("lines of NAME=value between the marks", repr(line))
    return dict(line.split("=", 1) for line in lines)


def _user_data_mistake(rule: str, got: str) -> InvalidInput:
    return mistake("launch template", "user data", rule, got, "see trainfabric_cdk/fleet/user_data.py")


def _deployed(environment: str) -> DeployedEnvironment:
    ssm = boto3.client("ssm")
    name = environment_parameter(environment)
    try:
        value = ssm.get_parameter(Name=name)["Parameter"]["Value"]
    except ssm.exceptions.ParameterNotFound as error:
        raise NotFound(f"sandbox: no environment {environment} is deployed; cdk deploy --all makes {name}") from error
    except (BotoCoreError, ClientError) as error:
        raise Unreachable(f"sandbox: the embedded AWS must answer, got {error}; is it running?") from error
    return DeployedEnvironment.model_validate_json(value)
