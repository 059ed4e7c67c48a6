"""All stacks of one environment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
from constructs import Construct

from trainfabric_cdk.fleet import FleetGroup
from trainfabric_cdk.replacements import warn_of_replacements
from trainfabric_plan.contract import Tag, group_name
from trainfabric_plan.environment import Environment
from trainfabric_plan.planning import make_plan
from trainfabric_stacks.fleet_stack import FleetStack, worker_capacity
from trainfabric_stacks.network_stack import NetworkStack
from trainfabric_stacks.observability_stack import ObservabilityStack
from trainfabric_stacks.storage_stack import StorageStack

if TYPE_CHECKING:
    from trainfabric_cdk.cluster.parallelcluster import ParallelClusterStack


class TrainingEnvironment:
    """Network, storage, nodes and dashboard of an environment, as stacks `<name>-Network`, `<name>-Storage` and so on.

    The stacks are those of the app itself: `cdk deploy --all` would leave the stacks of a `Stage` alone.

    Args:
        scope: The app.
        environment: The environment; its name prefixes every stack.

    Attributes:
        network: VPC and security group.
        storage: Buckets and file system.
        fleet: The nodes, or `None` if the orchestrator is a cluster.
        cluster: The Slurm cluster, or `None` if the orchestrator is a fleet.
        observability: The dashboard.
        stacks: All of them, in the order of their deployment.

    Raises:
        PropertyError: If a stack could not work.
        InvalidInput: If no layout of the recipe fits the nodes.
    """

    def __init__(self, scope: Construct, environment: Environment) -> None:
        self._scope, self._environment = scope, environment
        self.network = NetworkStack(scope, self._id("Network"), environment=environment, **self._stack("network"))
        self.storage = StorageStack(
            scope, self._id("Storage"), environment=environment, network=self.network, **self._stack("storage")
        )
        on_slurm = environment.orchestrator == "parallelcluster"
        self.fleet = None if on_slurm else self._fleet()
        self.cluster = self._cluster() if on_slurm else None
        groups = self.fleet.fleet.node_groups if self.fleet else ()
        self.observability = ObservabilityStack(
            scope,
            self._id("Observability"),
            environment=environment,
            storage=self.storage,
            groups={_label(group): group_name(environment.name, group.role, group.number) for group in groups},
            **self._stack("observability"),
        )
        nodes = self.fleet or self.cluster
        self.stacks = [stack for stack in (self.network, self.storage, nodes, self.observability) if stack]
        self._tag()
        for stack in self.stacks:
            warn_of_replacements(stack)

    def _fleet(self) -> FleetStack:
        return FleetStack(
            self._scope,
            self._id("Fleet"),
            environment=self._environment,
            network=self.network,
            storage=self.storage,
            **self._stack("nodes"),
        )

    def _cluster(self) -> ParallelClusterStack:
        from trainfabric_cdk.cluster.parallelcluster import ParallelClusterStack

        environment = self._environment
        make_plan(environment)  # Refuses what no layout fits, before anything is deployed.
        return ParallelClusterStack(
            self._scope,
            self._id("Cluster"),
            environment=environment.name,
            vpc=self.network.vpc,
            subnet=self.network.node_subnet,
            security_group=self.network.node_security_group,
            instance_type=environment.fleet.instance_type,
            nodes=environment.fleet.nodes,
            data_bucket=self.storage.data_bucket,
            checkpoint_bucket=self.storage.checkpoint_bucket,
            file_system_id=self.storage.lustre.file_system_id,
            mount_point=environment.storage.lustre.mount_point,
            shared_home=self.storage.home,
            workers=worker_capacity(environment.fleet),
            efa=environment.fleet.efa,
            head_node_instance_type=environment.parallelcluster.head_node_instance_type,
            version=environment.parallelcluster.version,
            custom_ami=environment.fleet.ami_id,
            static_nodes=environment.parallelcluster.static_nodes,
            gpu_health_checks=environment.parallelcluster.gpu_health_checks,
            exclusive_jobs=environment.parallelcluster.exclusive_jobs,
            ssh_from=environment.parallelcluster.ssh_from,
            permissions_boundary=environment.parallelcluster.permissions_boundary,
            cluster_tags=environment.tags,
            depends_on=[self.storage.lustre],
            **self._stack("Slurm cluster"),
        )

    def _id(self, part: str) -> str:
        return f"{self._environment.name}-{part}"

    def _stack(self, part: str) -> dict[str, Any]:
        environment = self._environment
        return {
            "description": f"Training environment {environment.name}: {part}",
            "env": cdk.Environment(account=environment.account, region=environment.region),
            # The rule's parameter breaks direct updates on an embedded AWS, and deploys fail without bootstrap anyway.
            "synthesizer": cdk.DefaultStackSynthesizer(generate_bootstrap_version_rule=False),
            "analytics_reporting": False,
        }

    def _tag(self) -> None:
        for stack in self.stacks:
            for key, value in {**self._environment.tags, Tag.ENVIRONMENT: self._environment.name}.items():
                cdk.Tags.of(stack).add(key, value)


def _label(group: FleetGroup) -> str:
    return group.role.value if group.number == 1 else f"{group.role.value} {group.number}"
