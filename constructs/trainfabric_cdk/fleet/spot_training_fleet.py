"""A fleet of equal nodes: a coordinator on demand, and workers that EC2 may take back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import jsii
from aws_cdk import Stack
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from trainfabric_cdk.bundle import TrainingAsset
from trainfabric_cdk.capacity import Capacity
from trainfabric_cdk.errors import refuse
from trainfabric_cdk.fleet.capacity_checks import (
    check_capacity,
    checked_control,
    coordinator_capacity,
    is_close,
    placed,
)
from trainfabric_cdk.fleet.checks import (
    check_fleet,
    check_image,
    check_interfaces,
    check_training,
    checked_instance,
    warn_of_closed_security_group,
    warn_of_distant_lustre,
    warn_of_slow_network,
)
from trainfabric_cdk.fleet.claim import claim_environment
from trainfabric_cdk.fleet.coordinator import ControlSecurityGroup, Coordinator
from trainfabric_cdk.fleet.interruptions import InterruptionNotices
from trainfabric_cdk.fleet.launch_template import DEFAULT_IMAGE, NodeLaunchTemplate
from trainfabric_cdk.fleet.node_group import NodeGroup
from trainfabric_cdk.fleet.node_groups import FleetGroup, PlannedGroup, fleet_group, planned_groups
from trainfabric_cdk.fleet.node_role import NodeRole
from trainfabric_cdk.fleet.user_data import check_commands, refuse_too_large, user_data
from trainfabric_cdk.fleet.volume_key import let_services_launch
from trainfabric_cdk.forms import capacity_region_mistakes, key_mistakes
from trainfabric_cdk.network import (
    check_node_subnet,
    node_interfaces,
    refuse_public_addresses,
    vpc_mistakes,
    warn_of_docker_range,
    warn_of_foreign_mount,
    warn_of_no_s3_endpoint,
)
from trainfabric_cdk.placement import EfaClusterPlacementGroup
from trainfabric_cdk.properties import checked_types
from trainfabric_cdk.storage import LustreMount, SharedHomeMount, checkpoint_bucket_mistakes
from trainfabric_plan.catalog import InstanceType, InterfaceMode
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


@jsii.implements(iam.IGrantable, ec2.IConnectable)
class SpotTrainingFleet(Construct):
    """Nodes of one type in one subnet, as Auto Scaling groups that start empty.

    The coordinator is on demand, so that the controller and the rendezvous outlive an interruption; workers are spot
    unless asked otherwise, in a group for every placement group. Nodes of a Capacity Block or a reservation are all of
    it, a coordinator that trains with them. No node runs until a job starts (`trainfabric job start` scales up), and
    the coordinator scales all groups to zero when the job ends. While a job runs, its nodes are those it was started
    with, whatever is deployed meanwhile.

    What is granted to the fleet is granted to its nodes: `bucket.grant_read(fleet)`, `database.connections.
    allow_default_port_from(fleet)`.

    Args:
        scope: Parent construct.
        id: Construct id.
        environment: Name of the environment: of its parameters, metrics and tags.
        vpc: The network.
        subnet: The one subnet of all nodes, private, with a route out.
        security_group: Group of the nodes; an `EfaSecurityGroup` unless `efa` is off.
        instance_type: One EC2 type of the catalog, such as `p5.48xlarge`.
        nodes: Number of nodes that train, the coordinator among them unless it only controls.
        spares: Workers beyond them that a job may keep up and warm, to take the place of a lost one.
        data_bucket: Training data; nodes read it.
        checkpoint_bucket: Checkpoints and job records; nodes write it.
        lustre: File system that the nodes mount.
        lustre_mount_point: Where they mount it.
        shared_home: A shared home that the nodes mount at /shared, such as `SharedHome(…).mount`; none if not given.
        placement_group: An `EfaClusterPlacementGroup`, or one of the CDK's; without one EFA works, with longer ways.
        workers: How the workers are bought; `Capacity.spot()` if not given.
        coordinator: `Coordinator.training()`, which is the default, or `Coordinator.control()`.
        efa: Elastic Fabric Adapter between the nodes.
        interfaces: Of EFA types that offer both: `addresses`, one IP address per node, or `bandwidth`, all of the
            node's IP bandwidth with an address for each ENA interface.
        image_id: AMI of the nodes, or a `resolve:ssm:` reference; the newest Deep Learning base image if not given.
        root_device: Root device of that image; `/dev/xvda` for Amazon Linux.
        volume_key: Customer key for the nodes' volumes. The policy of a key made in the app gets what Auto Scaling and
            Spot need; that of an existing key must have it.
        associate_public_ip: A public address for each node; only nodes with a single interface can have one.
        own_command: Whether jobs run a command of your own (`training.command` of the environment file) instead of a
            recipe: nodes then make no Python environment with torch. Trainium takes nothing else.
        training_image: Container image of that command; the nodes may pull it if it lies in a private ECR repository.
        boot_commands: Shell commands that every node runs before its boot script.
        prepared_image: Whether `image_id` holds all that boot would install; needed where there are endpoints alone.
        has_s3_endpoint: Whether an imported VPC has an S3 gateway endpoint already; without one in sight, a warning.

    Attributes:
        groups: Auto Scaling group by role, that of the first placement group; a fleet of one node has no workers.
        launch_templates: Launch template by role, likewise.
        checkpoint_bucket: As given: no file system of the app may link it.
        asset: The code that the nodes run.
        role: Role of the nodes.
        notices: Topic and queue of what EC2 announces about nodes.
        security_group: Group of the nodes.

    Raises:
        PropertyError: If the fleet could be deployed but no node would launch.
    """

    @checked_types(but=("instance_type", "subnet", "workers"))
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
        shared_home: SharedHomeMount | None = None,
        placement_group: EfaClusterPlacementGroup | ec2.IPlacementGroup | None = None,
        workers: Capacity | None = None,
        coordinator: Coordinator | None = None,
        efa: bool = True,
        interfaces: InterfaceMode = "addresses",
        image_id: str | None = None,
        root_device: str = ROOT_DEVICE,
        volume_key: kms.IKey | None = None,
        associate_public_ip: bool = False,
        boot_commands: Sequence[str] = (),
        own_command: bool = False,
        training_image: str | None = None,
        spares: int = 0,
        prepared_image: bool = False,
        has_s3_endpoint: bool = False,
    ) -> None:
        super().__init__(scope, id)
        coordinator = Coordinator.training() if coordinator is None else coordinator
        check_fleet(
            self,
            environment=environment,
            subnet=subnet,
            nodes=nodes,
            spares=spares,
            workers=workers,
            coordinator=coordinator,
            mount_point=lustre_mount_point,
            root_device=root_device,
            shared_home=shared_home is not None,
        )
        workers = workers or Capacity.spot()
        instance = checked_instance(self, instance_type, efa=efa)
        check_image(self, instance, image_id)
        check_commands(self, boot_commands)
        check_training(self, instance, own_command=own_command, training_image=training_image)
        refuse(
            [
                *vpc_mistakes(self, vpc, subnet, group=security_group),
                *checkpoint_bucket_mistakes(self, data_bucket, checkpoint_bucket),
                *key_mistakes(self, "volume_key", volume_key),
                *capacity_region_mistakes(self, workers),
            ]
        )
        ranges = placed(placement_group, workers)
        check_capacity(self, instance, workers, coordinator, ranges, nodes=nodes, spares=spares)
        check_interfaces(self, instance, interfaces, efa=efa)
        layout = node_interfaces(instance, efa=efa, mode=interfaces)
        refuse_public_addresses(
            self, interfaces=len(layout), vpc=vpc, subnet=subnet, associate_public_ip=associate_public_ip
        )
        check_node_subnet(
            self,
            subnet=subnet,
            nodes=nodes + spares + (not coordinator.trains),
            interfaces=layout,
            prepared_image=prepared_image,
            training_image=training_image,
        )
        if not has_s3_endpoint:
            warn_of_no_s3_endpoint(self, vpc=vpc)
        warn_of_docker_range(self, vpc)
        warn_of_distant_lustre(self, subnet=subnet, lustre=lustre)
        for name, mount in (("lustre", lustre), ("sharedHome", shared_home)):
            if mount is not None:
                clients, its_vpc = mount.clients, mount.vpc_id
                warn_of_foreign_mount(self, name, vpc=vpc, group=security_group, vpc_id=its_vpc, clients=clients)
        warn_of_slow_network(self, instance, nodes=nodes, efa=efa, placed=is_close(workers, ranges))
        warn_of_closed_security_group(self, security_group, nodes=nodes, efa=efa)
        claim_environment(self, environment)
        self._environment, self._subnet, self._boot_commands = environment, subnet, tuple(boot_commands)
        self._vpc, self.security_group = vpc, security_group
        self.checkpoint_bucket = checkpoint_bucket
        self.asset = TrainingAsset(self, "Code")
        self.notices = InterruptionNotices(self, "Interruptions")
        self.role = NodeRole(
            self,
            "Role",
            environment=environment,
            asset=self.asset,
            data_bucket=data_bucket,
            checkpoint_bucket=checkpoint_bucket,
        )
        self.notices.grant_receive(self.role)
        if training_image is not None:
            self.role.allow_image(training_image)
        if volume_key:
            let_services_launch(self, volume_key)
        self._variables = {
            **self._common_variables(data_bucket, checkpoint_bucket, lustre, lustre_mount_point),
            **(_home_variables(shared_home) if shared_home else {}),
            NodeVariable.EFA_DEVICES: str(instance.efa_interface_count if efa else 0),
            **({NodeVariable.TRAINING: OWN_COMMAND} if own_command else {}),
        }
        template = partial(
            NodeLaunchTemplate,
            image_id=image_id or DEFAULT_IMAGE,
            associate_public_ip=associate_public_ip,
            root_device=root_device,
            volume_key=volume_key,
            profile=iam.CfnInstanceProfile(self, "Profile", roles=[self.role.role_name]),
        )
        node = partial(template, instance_type=instance.name, interfaces=layout, security_group=security_group)
        self.groups: dict[Role, autoscaling.CfnAutoScalingGroup] = {}
        self.launch_templates: dict[Role, ec2.CfnLaunchTemplate] = {}
        self._made: list[FleetGroup] = []
        for planned in planned_groups(ranges, nodes=nodes, spares=spares, coordinator_trains=coordinator.trains):
            if planned.role is Role.WORKER:
                self._add(planned, node, workers)
            elif coordinator.trains:
                self._add(planned, node, coordinator_capacity(coordinator, workers))
            else:
                self._add(planned, self._control(template, coordinator, instance), Capacity.on_demand())
        self.role.allow_fleet([group_name(environment, made.role, made.number) for made in self._made])

    @property
    def node_groups(self) -> tuple[FleetGroup, ...]:
        """Every Auto Scaling group with its template and nodes, the coordinator's first, workers by placement group."""
        return tuple(self._made)

    @property
    def grant_principal(self) -> iam.IPrincipal:
        """The role of the nodes: what is granted to the fleet, they may do."""
        return self.role

    @property
    def connections(self) -> ec2.Connections:
        """Of the nodes' security group."""
        return ec2.Connections(security_groups=[self.security_group])

    def grant_session(self, grantee: iam.IGrantable) -> iam.Grant:
        """Open a shell on the nodes of this fleet with Session Manager, and end one's own sessions.

        As in the IAM policies of the Systems Manager user guide (getting-started-restrict-access-quickstart, and
        getting-started-restrict-access-examples, example 4), read 2026-12-01. For a user of IAM and for roles, those of
        Identity Center among them.
        """
        stack = Stack.of(self)
        nodes = stack.format_arn(service="ec2", resource="instance", resource_name="*")
        shell = stack.format_arn(service="ssm", resource="document", resource_name="SSM-SessionManagerRunShell")
        tag = {f"ssm:resourceTag/{Tag.ENVIRONMENT}": self._environment}
        granted = iam.Grant.add_to_principal(
            grantee=grantee,
            actions=["ssm:StartSession"],
            resource_arns=[nodes],
            conditions={"StringEquals": tag},
        )
        shells = iam.Grant.add_to_principal(grantee=grantee, actions=["ssm:StartSession"], resource_arns=[shell])
        return granted.combine(shells).combine(self._grant_own_sessions(grantee))

    def _grant_own_sessions(self, grantee: iam.IGrantable) -> iam.Grant:
        """By the id, which begins with a user's name, and by the tag that Session Manager puts on each session: a role
        has no `aws:username`, and the ids of its sessions do not begin with its `aws:userid`."""
        actions, stack = ["ssm:TerminateSession", "ssm:ResumeSession"], Stack.of(self)
        names = ["${aws:username}-*", "${aws:userid}-*"]
        arns = {name: stack.format_arn(service="ssm", resource="session", resource_name=name) for name in (*names, "*")}
        by_id = iam.Grant.add_to_principal(
            grantee=grantee,
            actions=actions,
            resource_arns=[arns[name] for name in names],
        )
        by_tag = iam.Grant.add_to_principal(
            grantee=grantee,
            actions=actions,
            resource_arns=[arns["*"]],
            conditions={"StringEquals": {"ssm:resourceTag/aws:ssmmessages:session-id": "${aws:userid}"}},
        )
        channel = iam.Grant.add_to_principal(
            grantee=grantee, actions=["ssmmessages:OpenDataChannel"], resource_arns=[arns["${aws:userid}-*"]]
        )
        return by_id.combine(by_tag).combine(channel)

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

    def _control(self, template: _Template, coordinator: Coordinator, instance: InstanceType) -> _Template:
        """The launch template of a coordinator that only controls: one interface, a security group of its own."""
        row = checked_control(self, coordinator.control_instance_type, instance)
        return partial(
            template,
            instance_type=row.name,
            interfaces=node_interfaces(row, efa=False),
            security_group=ControlSecurityGroup(self, "Control", vpc=self._vpc, nodes=self.security_group),
        )

    def _node_variables(self, planned: PlannedGroup) -> dict[str, str]:
        own = {NodeVariable.ROLE: planned.role.value, NodeVariable.PLACEMENT: str(planned.placement)}
        if planned.role is Role.COORDINATOR:
            own[NodeVariable.EVENTS_QUEUE] = self.notices.queue.queue_url
            if not planned.nodes:
                own |= {NodeVariable.TRAINS: "0", NodeVariable.EFA_DEVICES: "0"}
        return {**self._variables, **own}

    def _add(self, planned: PlannedGroup, template: _Template, capacity: Capacity) -> None:
        script = user_data(self._node_variables(planned), self._boot_commands)
        refuse_too_large(self, script, self._boot_commands)
        tags = {Tag.ENVIRONMENT: self._environment, Tag.ROLE: planned.role.value}
        made = template(
            self,
            planned.id("Template"),
            capacity=capacity,
            placement_group=planned.placement_group,
            user_data=script,
            tags=tags,
        )
        group = NodeGroup(
            self,
            planned.id("Group"),
            name=group_name(self._environment, planned.role, planned.number),
            launch_template=made,
            subnet=self._subnet,
            most=planned.most,
            tags=tags,
        )
        made.describe(group)
        self.launch_templates.setdefault(planned.role, made)
        self.groups.setdefault(planned.role, group)
        self._made.append(fleet_group(planned, group, made))


def _home_variables(home: SharedHomeMount) -> dict[str, str]:
    return {NodeVariable.HOME_SERVER: home.server, NodeVariable.HOME_PATH: home.path}
