"""The nodes of an environment, and what they and the command line need to know."""

from __future__ import annotations

from typing import Any

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from trainfabric_cdk.fleet import Capacity, SpotTrainingFleet
from trainfabric_cdk.placement import EfaClusterPlacementGroup
from trainfabric_plan import contract
from trainfabric_plan.contract import Role
from trainfabric_plan.deployed import DeployedEnvironment, NodeGroup
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
            lustre_mount_point=environment.storage.lustre.mount_point,
            placement_group=EfaClusterPlacementGroup(self, "PlacementGroup") if wanted.efa else None,
            workers=worker_capacity(wanted),
            efa=wanted.efa,
            image_id=wanted.ami_id,
            root_device=wanted.root_device,
            own_command=environment.training.command is not None,
            training_image=environment.training.image,
            associate_public_ip=environment.network.assign_public_ips,
            prepared_image=wanted.prepared_image,
            has_s3_endpoint=True,  # The network stack has one, or has warned.
        )
        self._parameters(environment, storage)
        self._outputs(environment.region)

    def _parameters(self, environment: Environment, storage: StorageStack) -> None:
        deployed = DeployedEnvironment(
            name=environment.name,
            region=environment.region,
            data_bucket=storage.data_bucket.bucket_name,
            checkpoint_bucket=storage.checkpoint_bucket.bucket_name,
            lustre_dns_name=storage.lustre.mount.dns_name,
            lustre_mount_name=storage.lustre.mount.mount_name,
            groups=tuple(self._group(role, environment.fleet) for role in self.fleet.groups),
            ranks_per_node=self.plan.ranks_per_node,
            asset_bucket=self.fleet.asset.s3_bucket_name,
            asset_key=self.fleet.asset.s3_object_key,
        )
        self._parameter("EnvironmentParameter", contract.environment_parameter(environment.name), deployed)
        self._parameter("PlanParameter", contract.plan_parameter(environment.name), self.plan)

    def _group(self, role: Role, wanted: Fleet) -> NodeGroup:
        is_worker = role is Role.WORKER
        return NodeGroup(
            name=self.fleet.groups[role].ref,
            role=role,
            launch_template=self.fleet.launch_templates[role].ref,
            nodes=wanted.nodes - 1 if is_worker else 1,
            spares=wanted.spares if is_worker else 0,
        )

    def _parameter(self, id: str, name: str, value: DeployedEnvironment | AnyPlan) -> None:
        ssm.StringParameter(self, id, parameter_name=name, string_value=value.model_dump_json())

    def _outputs(self, region: str) -> None:
        for role, group in self.fleet.groups.items():
            CfnOutput(self, f"{role.value.capitalize()}Group", value=group.ref)
            CfnOutput(self, f"{role.value.capitalize()}LaunchTemplate", value=self.fleet.launch_templates[role].ref)
        CfnOutput(self, "InterruptionTopic", value=self.fleet.notices.topic.topic_arn)
        CfnOutput(self, "CostPerHour", value=cost_text(self.plan), description=cost_description(region))


def worker_capacity(fleet: Fleet) -> Capacity:
    """How the environment wants its workers bought."""
    return Capacity.spot(fleet.max_spot_price) if fleet.workers == "spot" else Capacity.on_demand()


def cost_text(plan: AnyPlan) -> str:
    """The plan's cost per hour; a lower bound where a price is not confirmed."""
    if plan.usd_per_hour is not None:
        return f"{plan.usd_per_hour:.2f}"
    return f"at least {plan.usd_per_hour_at_least:.2f} (not every price is confirmed)"


def cost_description(region: str) -> str:
    """What the cost per hour is, whose prices it adds up and what it leaves out."""
    elsewhere = "" if region == PRICED_REGION else f", which {region} may differ from"
    return f"US dollars with every node up, at list prices of {PRICED_REGION}{elsewhere}; not included: {NOT_INCLUDED}"
