"""Values and helpers that tests of jobs share: an environment "lab" of four nodes in an embedded AWS."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import boto3

from tests.node.samples import RECIPE, deployed, groups, plan
from trainfabric_node.jobs import ControllerAddress, Fleet, JobControl, NodeState, NodeStatus
from trainfabric_node.jobs.records import now
from trainfabric_node.store import Store, open_store
from trainfabric_plan.contract import Role, checkpoint_prefix, environment_parameter
from trainfabric_plan.deployed import DeployedEnvironment

DATA = "s3://data/data/corpus"
ASSET = "0123abcd.zip"
COORDINATOR, WORKERS = GROUPS = ("lab-coordinator", "lab-workers")


@dataclass(frozen=True)
class Embedded:
    """The embedded AWS and what is deployed in it."""

    variables: dict[str, str]
    templates: dict[str, str]
    """Ids of launch templates by the name of their group."""

    def deployed(
        self, nodes: int = 4, workers: str = "lab-workers", spares: int = 0, **changes: Any
    ) -> DeployedEnvironment:
        made = groups(nodes, workers, self.templates, spares)
        values: dict[str, Any] = {"groups": made, "asset_bucket": "assets", "asset_key": ASSET}
        return deployed(nodes, **{**values, **changes})


def write_parameter(value: str) -> None:
    boto3.client("ssm").put_parameter(Name=environment_parameter("lab"), Value=value, Type="String", Overwrite=True)


def wanted() -> dict[str, int]:
    """Nodes that each group is asked for."""
    groups = boto3.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]
    return {group["AutoScalingGroupName"]: group["DesiredCapacity"] for group in groups}


NOTHING = {"lab-coordinator": 0, "lab-workers": 0}
ALL = {"lab-coordinator": 1, "lab-workers": 3}


def start(control: JobControl, job: str = "first", **changes: Any) -> Any:
    return control.start(job, RECIPE, changes.pop("plan", plan(4)), DATA, **changes)


def controller(instance_id: str) -> ControllerAddress:
    return ControllerAddress(
        host="10.0.0.5", port=29401, rendezvous_port=29400, incarnation="c", instance_id=instance_id, announced=now()
    )


def coordinator(fleet: Fleet) -> str:
    """Instance id of the coordinator."""
    (found,) = (member.instance_id for member in fleet.members() if member.role is Role.COORDINATOR)
    return found


def node(name: str, state: NodeState, role: Role = Role.COORDINATOR, updated: datetime | None = None) -> NodeStatus:
    return NodeStatus(instance_id=name, role=role, state=state, updated=updated or now())


def checkpoints_of(job: str) -> Store:
    return open_store(f"s3://checkpoints/{checkpoint_prefix(job)}")


def launched() -> dict[str, tuple[str, str]]:
    """The version that each group launches, and its image."""
    groups = boto3.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]
    return {group["AutoScalingGroupName"]: _launched(group["LaunchTemplate"]) for group in groups}


def _launched(named: Any) -> tuple[str, str]:
    id_, version = named["LaunchTemplateId"], named["Version"]
    found = boto3.client("ec2").describe_launch_template_versions(LaunchTemplateId=id_, Versions=[version])
    return version, found["LaunchTemplateVersions"][0]["LaunchTemplateData"]["ImageId"]
