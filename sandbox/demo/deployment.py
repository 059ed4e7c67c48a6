"""What exists after the deploy, read back with boto3 from the embedded AWS."""

from __future__ import annotations

import json
import urllib.request
from dataclasses import dataclass
from typing import Any

import boto3

from trainfabric_plan.contract import Tag, checkpoint_prefix, environment_parameter
from trainfabric_plan.deployed import DeployedEnvironment


@dataclass(frozen=True, kw_only=True)
class EmbeddedAws:
    """Clients of the embedded AWS, and of the S3 server that stands for the nodes' S3."""

    endpoint: str
    s3_endpoint: str
    region: str
    access_key: str
    secret_key: str

    def client(self, service: str) -> Any:
        """A boto3 client; `s3` is that of the nodes."""
        return boto3.client(
            service,
            region_name=self.region,
            endpoint_url=self.s3_endpoint if service == "s3" else self.endpoint,
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret_key,
        )

    def resources(self) -> list[dict[str, str]]:
        """Every deployed resource with its stack, type and kind (`real` in moto or a checked `record`)."""
        with urllib.request.urlopen(f"{self.endpoint}/trainfabric-sandbox/resources", timeout=30) as answer:
            found: list[dict[str, str]] = json.loads(answer.read())
        return found


def deployed_environment(aws: EmbeddedAws, name: str) -> DeployedEnvironment:
    """The names of the deployed resources, from the SSM parameter that the stacks wrote."""
    value = aws.client("ssm").get_parameter(Name=environment_parameter(name))["Parameter"]["Value"]
    return DeployedEnvironment.model_validate_json(value)


def read_back(aws: EmbeddedAws, deployed: DeployedEnvironment, job: str, prefix: str) -> dict[str, Any]:
    """Stacks, resources and the network interfaces of the workers' launch template, as they exist now."""
    stacks = aws.client("cloudformation").describe_stacks()["Stacks"]
    ours = sorted(s["StackName"] for s in stacks if s["StackName"].startswith(prefix))
    resources = [r for r in aws.resources() if r["stack"] in ours]
    return {
        "stacks": [{"name": s["StackName"], "status": s["StackStatus"]} for s in stacks if s["StackName"] in ours],
        "resources": resources,
        "launch_template_network_interfaces": _interfaces(aws, deployed),
        "checkpoint_uri": f"s3://{deployed.checkpoint_bucket}/{checkpoint_prefix(job)}",
    }


def _interfaces(aws: EmbeddedAws, deployed: DeployedEnvironment) -> list[dict[str, Any]]:
    group = deployed.worker_group or deployed.coordinator_group
    found = aws.client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[group])
    template = found["AutoScalingGroups"][0]["LaunchTemplate"]
    ec2 = aws.client("ec2")
    versions = ec2.describe_launch_template_versions(
        LaunchTemplateId=template["LaunchTemplateId"], Versions=[template.get("Version", "$Latest")]
    )
    data = versions["LaunchTemplateVersions"][0]["LaunchTemplateData"]
    return [
        {"card": int(i.get("NetworkCardIndex", 0)), "device": int(i["DeviceIndex"]), "type": i["InterfaceType"]}
        for i in data["NetworkInterfaces"]
    ]


def running_instances(aws: EmbeddedAws, environment: str) -> list[dict[str, str]]:
    """Instances of the environment that run now, with their role and how they were bought."""
    filters = [
        {"Name": f"tag:{Tag.ENVIRONMENT}", "Values": [environment]},
        {"Name": "instance-state-name", "Values": ["running"]},
    ]
    reservations = aws.client("ec2").describe_instances(Filters=filters)["Reservations"]
    return [
        {
            "id": i["InstanceId"],
            "type": i["InstanceType"],
            "role": next((t["Value"] for t in i.get("Tags", []) if t["Key"] == Tag.ROLE), ""),
            "market": i.get("InstanceLifecycle", "on-demand"),
        }
        for r in reservations
        for i in r["Instances"]
    ]
