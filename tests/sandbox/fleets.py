"""A small environment on the embedded AWS: two Auto Scaling groups, their launch templates, and its parameter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.sandbox.conftest import Aws
from trainfabric_plan.contract import Role, environment_parameter
from trainfabric_plan.deployed import DeployedEnvironment, NodeGroup

IMAGE = "ami-12c6146b"


@dataclass(frozen=True)
class SmallFleet:
    """The environment, and what a test does with it."""

    aws: Aws
    name: str

    def group(self, role: str) -> str:
        return f"{self.name}-{role}"

    def deploy(self, user_data: str, image: str = IMAGE, most: int = 3) -> None:
        """Create or update the stacks of both roles; `ROLE` in the user data becomes the role."""
        for role in ("coordinator", "worker"):
            change = self.aws.update if self.group(role) in self.aws.stack_names() else self.aws.create
            change(self.group(role), _resources(self.group(role), user_data.replace("ROLE", role), role, image, most))

    def describe(self) -> DeployedEnvironment:
        """Write the environment's parameter."""
        deployed = DeployedEnvironment(
            name=self.name,
            region="us-east-1",
            data_bucket="data",
            checkpoint_bucket="checkpoints",
            lustre_dns_name="fs",
            lustre_mount_name="mount",
            groups=tuple(self._described(role) for role in Role),
            ranks_per_node=2,
            asset_bucket="assets",
            asset_key="code.zip",
        )
        name = environment_parameter(self.name)
        self.aws.client("ssm").put_parameter(Name=name, Value=deployed.model_dump_json(), Type="String")
        return deployed

    def _described(self, role: Role) -> NodeGroup:
        nodes = {Role.COORDINATOR: 1, Role.WORKER: 2}[role]
        return NodeGroup(name=self.group(role), role=role, launch_template=self.template(role), nodes=nodes)

    def scale(self, **capacity: int) -> None:
        for role, desired in capacity.items():
            self.aws.client("autoscaling").set_desired_capacity(
                AutoScalingGroupName=self.group(role), DesiredCapacity=desired
            )

    def members(self, role: str = "worker") -> dict[str, dict[str, Any]]:
        """What Auto Scaling says about its instances, by id."""
        client = self.aws.client("autoscaling")
        found = client.describe_auto_scaling_groups(AutoScalingGroupNames=[self.group(role)])["AutoScalingGroups"]
        return {member["InstanceId"]: member for member in found[0]["Instances"]}

    def launch_from(self, role: str = "worker", **data: Any) -> str:
        """Make a version from the newest one with other data, the default and the group's, as a job pins it."""
        ec2, template = self.aws.client("ec2"), self.template(role)
        made = ec2.create_launch_template_version(
            LaunchTemplateId=template, SourceVersion="$Latest", LaunchTemplateData=data
        )
        number = str(made["LaunchTemplateVersion"]["VersionNumber"])
        ec2.modify_launch_template(LaunchTemplateId=template, DefaultVersion=number)
        self.aws.client("autoscaling").update_auto_scaling_group(
            AutoScalingGroupName=self.group(role),
            LaunchTemplate={"LaunchTemplateId": template, "Version": number},
        )
        return number

    def template(self, role: str = "worker") -> str:
        """Id of a role's launch template."""
        return self.aws.resources(self.group(role))["Template"]["physical_id"]


def _resources(name: str, user_data: str, role: str, image: str, most: int) -> dict[str, Any]:
    data = {
        "ImageId": image,
        "InstanceType": "p5.48xlarge",
        "UserData": {"Fn::Base64": user_data},
        "NetworkInterfaces": [
            {"DeviceIndex": 0, "NetworkCardIndex": 0, "InterfaceType": "efa"},
            {"DeviceIndex": 1, "NetworkCardIndex": 1, "InterfaceType": "efa-only"},
            {"DeviceIndex": 1, "NetworkCardIndex": 2, "InterfaceType": "interface"},
        ],
        **({"InstanceMarketOptions": {"MarketType": "spot"}} if role == "worker" else {}),
    }
    group = {
        "AutoScalingGroupName": name,
        "MinSize": "0",
        "MaxSize": str(most),
        "AvailabilityZones": ["us-east-1a"],
        "LaunchTemplate": {
            "LaunchTemplateId": {"Ref": "Template"},
            "Version": {"Fn::GetAtt": ["Template", "DefaultVersionNumber"]},
        },
    }
    return {
        "Template": {"Type": "AWS::EC2::LaunchTemplate", "Properties": {"LaunchTemplateData": data}},
        "Group": {"Type": "AWS::AutoScaling::AutoScalingGroup", "Properties": group},
    }
