"""The nodes of an environment, and what they and the command line need to know."""

from __future__ import annotations

from typing import Any

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_kms as kms
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from trainfabric_cdk.fleet import Capacity, Coordinator, FleetGroup, SpotTrainingFleet
from trainfabric_cdk.placement import EfaClusterPlacementGroup
from trainfabric_plan import contract
from trainfabric_plan.deployed import MOST_GROUPS_OF_A_SMALL_PARAMETER, DeployedEnvironment, NodeGroup
from trainfabric_plan.environment import Environment, Fleet
from trainfabric_plan.planning import AnyPlan, plan_for
from trainfabric_plan.planning.cost import NOT_INCLUDED, PRICED_REGION
from trainfabric_stacks.network_stack import NetworkStack
from trainfabric_stacks.storage_stack import StorageStack


class FleetStack(Stack):
    """Placement group and `SpotTrainingFleet`, and two parameters: the deployed environment and its plan.

    Attributes:
        fleet: The fleet.
        plan: Layout, memory and cost that follow from the environment; of a command, nodes and cost.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        environment: Environment,
        network: NetworkStack,
        storage: StorageStack,
        **stack: Any,
    ) -> None:
        super().__init__(scope, id, **stack)
        self.plan = plan_for(environment)
        wanted = environment.fleet
        self.fleet = SpotTrainingFleet(
            self,
            "Fleet",
            environment=environment.name,
            vpc=network.vpc,
            subnet=network.node_subnet,
            security_group=network.node_security_group,
            instance_type=wanted.instance_type,
            nodes=wanted.nodes,
            spares=wanted.spares,
            data_bucket=storage.data_bucket,
            checkpoint_bucket=storage.checkpoint_bucket,
            lustre=storage.lustre.mount,
            shared_home=storage.home.mount if storage.home else None,
            lustre_mount_point=environment.storage.lustre.mount_point,
            placement_group=self._placement(wanted) if wanted.efa else None,
            workers=worker_capacity(wanted),
            coordinator=coordinator(wanted),
            efa=wanted.efa,
            interfaces=wanted.interfaces,
            image_id=wanted.ami_id,
            root_device=wanted.root_device,
            volume_key=self._volume_key(environment.storage.kms_key_arn),
            own_command=environment.training.command is not None,
            training_image=environment.training.image,
            associate_public_ip=environment.network.assign_public_ips,
            prepared_image=wanted.prepared_image,
            has_s3_endpoint=True,  # The network stack has one, or has warned.
        )
        self._parameters(environment, storage)
        self._outputs(environment.region)

    def _volume_key(self, arn: str | None) -> kms.IKey | None:
        return None if arn is None else kms.Key.from_key_arn(self, "VolumeKey", arn)

    def _placement(self, wanted: Fleet) -> EfaClusterPlacementGroup:
        return EfaClusterPlacementGroup(
            self,
            "PlacementGroup",
            capacity=worker_capacity(wanted),
            nodes=wanted.nodes + wanted.spares,
            max_nodes_per_group=wanted.max_nodes_per_group,
        )

    def _parameters(self, environment: Environment, storage: StorageStack) -> None:
        deployed = DeployedEnvironment(
            name=environment.name,
            region=environment.region,
            data_bucket=storage.data_bucket.bucket_name,
            checkpoint_bucket=storage.checkpoint_bucket.bucket_name,
            lustre_dns_name=storage.lustre.mount.dns_name,
            lustre_mount_name=storage.lustre.mount.mount_name,
            groups=tuple(_deployed(group) for group in self.fleet.node_groups),
            ranks_per_node=self.plan.ranks_per_node,
            asset_bucket=self.fleet.asset.s3_bucket_name,
            asset_key=self.fleet.asset.s3_object_key,
            events_queue=self.fleet.notices.queue.queue_url,
        )
        large = len(deployed.groups) > MOST_GROUPS_OF_A_SMALL_PARAMETER
        self._parameter("EnvironmentParameter", contract.environment_parameter(environment.name), deployed, large=large)
        self._parameter("PlanParameter", contract.plan_parameter(environment.name), self.plan)

    def _parameter(self, id: str, name: str, value: DeployedEnvironment | AnyPlan, *, large: bool = False) -> None:
        tier = ssm.ParameterTier.ADVANCED if large else None
        ssm.StringParameter(self, id, parameter_name=name, string_value=value.model_dump_json(), tier=tier)

    def _outputs(self, region: str) -> None:
        for group in self.fleet.node_groups:
            role, number = group.role.value.capitalize(), "" if group.number == 1 else group.number
            CfnOutput(self, f"{role}Group{number}", value=group.group.ref)
            CfnOutput(self, f"{role}LaunchTemplate{number}", value=group.launch_template.ref)
        CfnOutput(self, "InterruptionTopic", value=self.fleet.notices.topic.topic_arn)
        CfnOutput(self, "CostPerHour", value=cost_text(self.plan), description=cost_description(region))


def _deployed(group: FleetGroup) -> NodeGroup:
    return NodeGroup(
        name=group.group.ref,
        role=group.role,
        launch_template=group.launch_template.ref,
        nodes=group.nodes,
        spares=group.spares,
        placement=group.placement,
    )


def worker_capacity(fleet: Fleet) -> Capacity:
    """How the environment wants its workers bought."""
    group, reservation = fleet.placement_group_name, fleet.reservation or ""  # The rules refuse one without it.
    match fleet.workers:
        case "on_demand":
            return Capacity.on_demand()
        case "spot":
            return Capacity.spot(fleet.max_spot_price)
        case "capacity_block":
            return Capacity.block(reservation)
        case "reservation":
            return Capacity.reservation(reservation, placement_group_name=group)
        case "interruptible_reservation":
            return Capacity.interruptible_reservation(reservation, placement_group_name=group)


def coordinator(fleet: Fleet) -> Coordinator:
    """What the environment wants its coordinator to be."""
    if fleet.coordinator == "training":
        return Coordinator.training()
    return Coordinator.control(instance_type=fleet.control_instance_type)


def cost_text(plan: AnyPlan) -> str:
    """The plan's cost per hour; a lower bound where a price is not confirmed."""
    if plan.usd_per_hour is not None:
        return f"{plan.usd_per_hour:.2f}"
    return f"at least {plan.usd_per_hour_at_least:.2f} (not every price is confirmed)"


def cost_description(region: str) -> str:
    """What the cost per hour is, whose prices it adds up and what it leaves out."""
    elsewhere = "" if region == PRICED_REGION else f", which {region} may differ from"
    return f"US dollars with every node up, at list prices of {PRICED_REGION}{elsewhere}; not included: {NOT_INCLUDED}"
