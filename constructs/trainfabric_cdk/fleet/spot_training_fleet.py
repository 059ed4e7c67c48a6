"""A fleet of equal nodes: a coordinator on demand, and workers that EC2 may take back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from aws_cdk import Stack
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from trainfabric_cdk.bundle import TrainingAsset
from trainfabric_cdk.capacity import Capacity
from trainfabric_cdk.fleet.checks import (
    check_fleet,
    check_image,
    check_training,
    checked_instance,
    single_group,
    warn_of_closed_security_group,
    warn_of_slow_network,
)
from trainfabric_cdk.fleet.interruptions import InterruptionNotices
from trainfabric_cdk.fleet.launch_template import DEFAULT_IMAGE, NodeLaunchTemplate
from trainfabric_cdk.fleet.node_group import NodeGroup
from trainfabric_cdk.fleet.node_role import NodeRole
from trainfabric_cdk.fleet.user_data import refuse_too_large, user_data
from trainfabric_cdk.network import (
    check_node_subnet,
    node_interfaces,
    refuse_public_addresses,
    warn_of_no_s3_endpoint,
)
from trainfabric_cdk.placement import EfaClusterPlacementGroup
from trainfabric_cdk.storage import LustreMount
from trainfabric_plan.contract import (
    CONTROL_PORT,
    OWN_COMMAND,
    RENDEZVOUS_PORT,
    NodeVariable,
    Paths,
    Role,
    Tag,
    group_name,
)
from trainfabric_plan.environment.types import ROOT_DEVICE

_Template = Callable[..., NodeLaunchTemplate]


class SpotTrainingFleet(Construct):
    """Nodes of one type in one subnet, as two Auto Scaling groups that start empty.

    The coordinator is on demand, so that the controller and the rendezvous outlive an interruption; workers are spot
    unless asked otherwise. No node runs until a job starts (`trainfabric job start` scales up), and the coordinator
    scales both groups to zero when the job ends. While a job runs, its nodes are those it was started with, whatever is
    deployed meanwhile.

    Args:
        scope: Parent construct.
        id: Construct id.
        environment: Name of the environment: of its parameters, metrics and tags.
        vpc: The network.
        subnet: The one subnet of all nodes, private, with a route out.
        security_group: Group of the nodes; an `EfaSecurityGroup` unless `efa` is off.
        instance_type: One EC2 type of the catalog, such as `p5.48xlarge`.
        nodes: Number of nodes, the coordinator among them.
        spares: Workers beyond them that a job may keep up and warm, to take the place of a lost one.
        data_bucket: Training data; nodes read it.
        checkpoint_bucket: Checkpoints and job records; nodes write it.
        lustre: File system that the nodes mount.
        lustre_mount_point: Where they mount it.
        placement_group: An `EfaClusterPlacementGroup`, or one of the CDK's; without one EFA works, with longer ways.
        workers: How the workers are bought; `Capacity.spot()` if not given.
        efa: Elastic Fabric Adapter between the nodes.
        image_id: AMI of the nodes, or a `resolve:ssm:` reference; the newest Deep Learning base image if not given.
        root_device: Root device of that image; `/dev/xvda` for Amazon Linux.
        associate_public_ip: A public address for each node; only nodes with a single interface can have one.
        own_command: Whether jobs run a command of your own (`training.command` of the environment file) instead of a
            recipe: nodes then make no Python environment with torch. Trainium takes nothing else.
        training_image: Container image of that command; the nodes may pull it if it lies in a private ECR repository.
        boot_commands: Shell commands that every node runs before its boot script.
        prepared_image: Whether `image_id` holds all that boot would install; needed where there are endpoints alone.
        has_s3_endpoint: Whether an imported VPC has an S3 gateway endpoint already; without one in sight, a warning.

    Attributes:
        groups: Auto Scaling group by role; a fleet of one node has no workers.
        launch_templates: Launch template by role.
        asset: The code that the nodes run.
        role: Role of the nodes.
        notices: Topic of spot interruption warnings.

    Raises:
        PropertyError: If the fleet could be deployed but no node would launch.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        environment: str,
        vpc: ec2.IVpc,
        subnet: ec2.ISubnet,
        security_group: ec2.ISecurityGroup,
        instance_type: str,
        nodes: int,
        data_bucket: s3.IBucket,
        checkpoint_bucket: s3.IBucket,
        lustre: LustreMount,
        lustre_mount_point: str = Paths.LUSTRE,
        placement_group: EfaClusterPlacementGroup | ec2.IPlacementGroup | None = None,
        workers: Capacity | None = None,
        efa: bool = True,
        image_id: str | None = None,
        root_device: str = ROOT_DEVICE,
        associate_public_ip: bool = False,
        boot_commands: Sequence[str] = (),
        own_command: bool = False,
        training_image: str | None = None,
        spares: int = 0,
        prepared_image: bool = False,
        has_s3_endpoint: bool = False,
    ) -> None:
        super().__init__(scope, id)
        check_fleet(
            self,
            environment=environment,
            subnet=subnet,
            nodes=nodes,
            spares=spares,
            workers=workers,
            mount_point=lustre_mount_point,
            root_device=root_device,
        )
        instance = checked_instance(self, instance_type, efa=efa)
        check_image(self, instance, image_id)
        check_training(self, instance, own_command=own_command, training_image=training_image)
        interfaces = node_interfaces(instance, efa=efa)
        refuse_public_addresses(
            self, interfaces=len(interfaces), vpc=vpc, subnet=subnet, associate_public_ip=associate_public_ip
        )
        check_node_subnet(
            self, subnet=subnet, nodes=nodes + spares, interfaces=interfaces, prepared_image=prepared_image
        )
        if not has_s3_endpoint:
            warn_of_no_s3_endpoint(self, vpc=vpc)
        warn_of_slow_network(self, instance, nodes=nodes, efa=efa, placement_group=placement_group)
        warn_of_closed_security_group(self, security_group, nodes=nodes, efa=efa)
        self._environment, self._subnet, self._boot_commands = environment, subnet, tuple(boot_commands)
        self.asset = TrainingAsset(self, "Code")
        self.role = NodeRole(
            self,
            "Role",
            environment=environment,
            asset=self.asset,
            data_bucket=data_bucket,
            checkpoint_bucket=checkpoint_bucket,
        )
        if training_image is not None:
            self.role.allow_image(training_image)
        self._variables = {
            **self._common_variables(data_bucket, checkpoint_bucket, lustre, lustre_mount_point),
            NodeVariable.EFA_DEVICES: str(instance.efa_interface_count if efa else 0),
            **({NodeVariable.TRAINING: OWN_COMMAND} if own_command else {}),
        }
        template = partial(
            NodeLaunchTemplate,
            instance_type=instance.name,
            image_id=image_id or DEFAULT_IMAGE,
            interfaces=interfaces,
            security_group=security_group,
            associate_public_ip=associate_public_ip,
            placement_group=single_group(placement_group),
            root_device=root_device,
            profile=iam.CfnInstanceProfile(self, "Profile", roles=[self.role.role_name]),
        )
        self.groups: dict[Role, autoscaling.CfnAutoScalingGroup] = {}
        self.launch_templates: dict[Role, ec2.CfnLaunchTemplate] = {}
        self._add(Role.COORDINATOR, template, Capacity.on_demand(), 1)
        if nodes > 1:
            self._add(Role.WORKER, template, workers or Capacity.spot(), nodes - 1 + spares)
        self.role.allow_fleet([group_name(environment, role) for role in self.groups])
        self.notices = InterruptionNotices(self, "Interruptions")

    def _common_variables(
        self, data_bucket: s3.IBucket, checkpoint_bucket: s3.IBucket, lustre: LustreMount, mount_point: str
    ) -> dict[str, str]:
        return {
            NodeVariable.ENVIRONMENT: self._environment,
            NodeVariable.REGION: Stack.of(self).region,
            NodeVariable.ASSET_BUCKET: self.asset.s3_bucket_name,
            NodeVariable.ASSET_KEY: self.asset.s3_object_key,
            NodeVariable.CHECKPOINT_BUCKET: checkpoint_bucket.bucket_name,
            NodeVariable.DATA_BUCKET: data_bucket.bucket_name,
            NodeVariable.LUSTRE_DNS_NAME: lustre.dns_name,
            NodeVariable.LUSTRE_MOUNT_NAME: lustre.mount_name,
            NodeVariable.LUSTRE_MOUNT_POINT: mount_point,
            NodeVariable.RENDEZVOUS_PORT: str(RENDEZVOUS_PORT),
            NodeVariable.CONTROL_PORT: str(CONTROL_PORT),
            NodeVariable.STATE_DIRECTORY: Paths.STATE,
        }

    def _add(self, role: Role, template: _Template, capacity: Capacity, most: int) -> None:
        name = role.value.capitalize()
        script = user_data({**self._variables, NodeVariable.ROLE: role.value}, self._boot_commands)
        refuse_too_large(self, script, self._boot_commands)
        tags = {Tag.ENVIRONMENT: self._environment, Tag.ROLE: role.value}
        made = template(self, f"{name}Template", capacity=capacity, user_data=script, tags=tags)
        group = NodeGroup(
            self,
            f"{name}Group",
            name=group_name(self._environment, role),
            launch_template=made,
            subnet=self._subnet,
            most=most,
            tags=tags,
        )
        made.describe(group)
        self.launch_templates[role], self.groups[role] = made, group
