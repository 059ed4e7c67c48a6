"""What exists after the deploy, read back with boto3 from the embedded AWS."""

from __future__ import annotations

import json
import urllib.request
from dataclasses import dataclass
from typing import Any

import boto3

from trainfabric_plan.contract import checkpoint_prefix, environment_parameter
from trainfabric_plan.deployed import DeployedEnvironment, parse_deployed


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
    return parse_deployed(value, name)


def read_back(aws: EmbeddedAws, deployed: DeployedEnvironment, job: str, prefix: str) -> dict[str, Any]:
    """Stacks, resources and the network interfaces of the workers' launch template, as they exist now."""
    stacks = aws.client("cloudformation").describe_stacks()["Stacks"]
    ours = sorted(s["StackName"] for s in stacks if s["StackName"].startswith(prefix))
    resources = [r for r in aws.resources() if r["stack"] in ours]
    return {
        "stacks": [{"name": s["StackName"], "status": s["StackStatus"]} for s in stacks if s["StackName"] in ours],
        "resources": resources,
        "launch_template_network_interfaces": _interfaces(aws, deployed),
        "checkpoints_uri": f"s3://{deployed.checkpoint_bucket}/{checkpoint_prefix(job)}",
    }


def _interfaces(aws: EmbeddedAws, deployed: DeployedEnvironment) -> list[dict[str, Any]]:
    data = launch_template_data(aws, deployed.groups[-1].name)
    return [
        {"card": int(i.get("NetworkCardIndex", 0)), "device": int(i["DeviceIndex"]), "type": i["InterfaceType"]}
        for i in data["NetworkInterfaces"]
    ]


def launch_template_data(aws: EmbeddedAws, group: str) -> dict[str, Any]:
    """What the launch template of an Auto Scaling group says, in the version that the group launches."""
    found = aws.client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[group])
    template = found["AutoScalingGroups"][0]["LaunchTemplate"]
    versions = aws.client("ec2").describe_launch_template_versions(
        LaunchTemplateId=template["LaunchTemplateId"], Versions=[template.get("Version", "$Latest")]
    )
    data: dict[str, Any] = versions["LaunchTemplateVersions"][0]["LaunchTemplateData"]
    return data


def running_nodes(aws: EmbeddedAws, deployed: DeployedEnvironment) -> list[str]:
    """The nodes that Auto Scaling runs now, in words such as `3 spot workers`."""
    words = []
    for group in deployed.groups:
        found = aws.client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[group.name])
        count = len(found["AutoScalingGroups"][0]["Instances"])
        market = launch_template_data(aws, group.name).get("InstanceMarketOptions", {}).get("MarketType", "on-demand")
        words.append(f"{count} {market} {group.role}{'' if count == 1 else 's'}")
    return words
