"""All stacks of one environment."""

from __future__ import annotations

from typing import Any

import aws_cdk as cdk
from constructs import Construct

from trainfabric_cdk.cluster.parallelcluster import ParallelClusterStack
from trainfabric_plan.contract import Tag
from trainfabric_plan.environment import Environment
from trainfabric_plan.planning import make_plan
from trainfabric_stacks.fleet_stack import FleetStack, worker_capacity
from trainfabric_stacks.network_stack import NetworkStack
from trainfabric_stacks.observability_stack import ObservabilityStack
from trainfabric_stacks.storage_stack import StorageStack


class TrainingEnvironment(Construct):
    """Network, storage, nodes and dashboard of an environment file.

    Not a `Stage`: `cdk deploy --all` takes the stacks of the app and leaves those of its stages alone.

    Args:
        scope: The app.
        environment: The environment; its name becomes the construct id and prefixes every stack.

    Attributes:
        network: VPC and security group.
        storage: Buckets and file system.
        fleet: The nodes, or `None` if the orchestrator is a cluster.
        cluster: The Slurm cluster, or `None` if the orchestrator is a fleet.
        observability: The dashboard.
    """

    def __init__(self, scope: Construct, environment: Environment) -> None:
        super().__init__(scope, environment.name)
        self._environment = environment
        self.network = NetworkStack(self, "Network", environment=environment, **self._stack("network"))
        self.storage = StorageStack(
            self, "Storage", environment=environment, network=self.network, **self._stack("storage")
        )
        self.fleet: FleetStack | None = None
        self.cluster: ParallelClusterStack | None = None
        if environment.orchestrator == "fleet":
            self.fleet = self._fleet()
        else:
            self.cluster = self._cluster()
        groups = self.fleet.fleet.groups.items() if self.fleet else ()
        self.observability = ObservabilityStack(
            self,
            "Observability",
            environment=environment,
            storage=self.storage,
            groups={role.value: group.ref for role, group in groups},
            **self._stack("observability"),
        )
        for key, value in {**environment.tags, Tag.ENVIRONMENT: environment.name}.items():
            cdk.Tags.of(self).add(key, value)

    def _fleet(self) -> FleetStack:
        return FleetStack(
            self,
            "Fleet",
            environment=self._environment,
            network=self.network,
            storage=self.storage,
            **self._stack("fleet"),
        )

    def _cluster(self) -> ParallelClusterStack:
        environment = self._environment
        make_plan(environment)  # Refuses what no layout fits, before anything is deployed.
        return ParallelClusterStack(
            self,
            "Cluster",
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
            workers=worker_capacity(environment.fleet),
            efa=environment.fleet.efa,
            head_node_instance_type=environment.parallelcluster.head_node_instance_type,
            version=environment.parallelcluster.version,
            custom_ami=environment.fleet.ami_id,
            tags_of_cluster=environment.tags,
            depends_on=[self.storage.lustre],
            **self._stack("cluster"),
        )

    def _stack(self, part: str) -> dict[str, Any]:
        environment = self._environment
        return {
            "stack_name": f"{environment.name}-{part}",
            "description": f"Training environment {environment.name}: {part}",
            "env": cdk.Environment(account=environment.account, region=environment.region),
            # The rule's parameter breaks direct updates on an embedded AWS, and `cdk bootstrap` checks it anyway.
            "synthesizer": cdk.DefaultStackSynthesizer(generate_bootstrap_version_rule=False),
            "analytics_reporting": False,
        }
