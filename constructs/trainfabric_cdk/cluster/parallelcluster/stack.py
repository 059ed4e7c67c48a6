"""A Slurm cluster as a CloudFormation resource, by ParallelCluster's own provider."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from aws_cdk import Annotations, CfnOutput, CfnStack, CustomResource, Fn, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_efs as efs
from aws_cdk import aws_s3 as s3
from constructs import Construct, IDependable

from trainfabric_cdk.cluster.parallelcluster.configuration import ClusterConfiguration, Queue, version_mistakes
from trainfabric_cdk.errors import at_construct, is_known, is_whole_number, property_error, refuse
from trainfabric_cdk.fleet import Capacity
from trainfabric_cdk.fleet.capacity_checks import check_queue_capacity
from trainfabric_cdk.fleet.checks import checked_instance, node_mistakes
from trainfabric_cdk.forms import capacity_region_mistakes, source_mistakes
from trainfabric_cdk.network import node_interfaces, refuse_public_addresses, vpc_mistakes, warn_of_foreign_mount
from trainfabric_cdk.properties import checked_types
from trainfabric_cdk.storage import SharedHome, checkpoint_bucket_mistakes
from trainfabric_cdk.storage.shared_home import NFS_PORT
from trainfabric_plan.capacity import CapacityKind
from trainfabric_plan.catalog import InstanceType
from trainfabric_plan.catalog import instance_type as catalog_row
from trainfabric_plan.catalog.instances import HEAD_NODES
from trainfabric_plan.contract import Paths, Tag
from trainfabric_plan.errors import Mistake
from trainfabric_plan.mount_points import beside_home_problem
from trainfabric_plan.parallelcluster import Severity, check, gpu_health_rule, static_nodes_rule

DEFAULT_VERSION = "3.16.1"

_TEMPLATE = (
    "https://${{AWS::Region}}-aws-parallelcluster.s3.${{AWS::Region}}.${{AWS::URLSuffix}}"
    "/parallelcluster/{version}/templates/custom_resource/cluster.yaml"
)
_CAPACITY_TYPES: Mapping[CapacityKind, Literal["SPOT", "ONDEMAND", "CAPACITY_BLOCK"]] = {
    CapacityKind.ON_DEMAND: "ONDEMAND",
    CapacityKind.SPOT: "SPOT",
    CapacityKind.CAPACITY_BLOCK: "CAPACITY_BLOCK",
    CapacityKind.RESERVATION: "ONDEMAND",
}
_CLUSTER_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9-]{0,59}")


class ParallelClusterStack(Stack):
    """A Slurm cluster with a head node on demand and one queue of equal nodes, which start when jobs need them.

    The release stands in the cluster's name and in the logical ids: ParallelCluster is not upgraded in place, a new
    release is a new cluster beside the old one, with the same file system.

    Args:
        scope: Parent construct.
        id: Construct id.
        environment: Name of the environment.
        vpc: The network.
        subnet: The one subnet of all nodes, private, with a route out.
        security_group: An `EfaSecurityGroup`, which also lets the nodes reach Lustre.
        instance_type: One EC2 type of the catalog.
        nodes: Most nodes of the queue; the head node comes on top.
        data_bucket: Training data; nodes read it.
        checkpoint_bucket: Checkpoints; nodes write it.
        file_system_id: The Lustre file system.
        mount_point: Where the nodes mount it.
        shared_home: A `SharedHome` on EFS, which all nodes mount at /shared over TLS.
        workers: How the nodes of the queue are bought; `Capacity.spot()` if not given.
        efa: Elastic Fabric Adapter and a cluster placement group for the queue.
        head_node_instance_type: Type of the head node: of the catalog, and of the nodes' architecture.
        version: ParallelCluster release, 3.14.1 or later; 3.16.1 if not given. Needed with `custom_ami`.
        custom_ami: AMI built for that release: nodes of another one stop while they start (aws-parallelcluster 3.16.1,
            `resources/*/user_data.sh`).
        static_nodes: Nodes of the queue that are up from the start and stay up, billed, whether jobs run or not. All
            nodes of a block are, and a spot queue has better none: the cluster is not made while EC2 has no capacity.
        gpu_health_checks: Whether every job begins with a check of its nodes' GPUs, in Slurm's prolog. The check may
            take so long on nodes of eight GPUs that Slurm takes the prolog for hung (aws-parallelcluster 6777).
        exclusive_jobs: Whether a node has one job at a time, whatever the job asks for.
        ssh_from: Range of addresses, such as 10.20.0.0/16, or prefix list (pl-…) from which SSH reaches the head node;
            from nowhere if not given, Session Manager opens a shell.
        permissions_boundary: ARN of the policy that bounds every role that ParallelCluster makes.
        cluster_tags: Tags of every resource of the cluster.
        depends_on: What must exist before the cluster and outlive it, such as the `LustreLinkedToS3`.
        stack: Properties of the stack itself.

    Attributes:
        configuration: The configuration of the cluster.
        cluster_name: Name of the cluster.

    Raises:
        PropertyError: With every mistake that ParallelCluster would find only while it creates the cluster.
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
        file_system_id: str,
        mount_point: str = Paths.LUSTRE,
        shared_home: SharedHome | None = None,
        workers: Capacity | None = None,
        efa: bool = True,
        head_node_instance_type: str = "m7i.2xlarge",
        version: str | None = None,
        custom_ami: str | None = None,
        static_nodes: int = 0,
        gpu_health_checks: bool = False,
        exclusive_jobs: bool = False,
        ssh_from: str | None = None,
        permissions_boundary: str | None = None,
        cluster_tags: Mapping[str, str] | None = None,
        depends_on: Sequence[IDependable] = (),
        **stack: Any,
    ) -> None:
        super().__init__(scope, id, **stack)
        refuse([*node_mistakes(self.node.path, nodes, workers), *self._static_mistakes(static_nodes, nodes, workers)])
        version = self._release(version, custom_ami)
        if workers is not None and workers.kind not in _CAPACITY_TYPES:
            rule = "spot, on_demand, capacity_block or reservation: release 3.16.1 knows no interruptible reservations"
            raise property_error(self, "workers", rule, workers.kind.value, "use a SpotTrainingFleet")
        of_the_vpc = vpc_mistakes(self, vpc, subnet, group=security_group)
        buckets = checkpoint_bucket_mistakes(self, data_bucket, checkpoint_bucket)
        regions = capacity_region_mistakes(self, workers or Capacity.spot())
        refuse([*of_the_vpc, *buckets, *regions, *source_mistakes(self.node.path, "ssh_from", ssh_from)])
        instance = checked_instance(self, instance_type, efa=efa)
        workers = workers or Capacity.spot()
        check_queue_capacity(self, instance, workers, nodes=nodes, efa=efa)
        self._check_head_node(head_node_instance_type, instance)
        self._check_home(shared_home, mount_point, vpc, security_group)
        if gpu_health_checks:
            self._check_gpu_health(instance)
        queue = _queue(instance.name, nodes, workers, efa)
        interfaces = node_interfaces(instance, efa=efa)
        refuse_public_addresses(self, interfaces=len(interfaces), vpc=vpc, subnet=subnet, associate_public_ip=False)
        self.configuration = ClusterConfiguration(
            region=self.region,
            partition=self.partition,
            head_node_instance_type=head_node_instance_type,
            subnet_id=subnet.subnet_id,
            security_group_id=security_group.security_group_id,
            queues=(
                replace(
                    queue,
                    static_nodes=static_nodes,
                    gpu_health_checks=gpu_health_checks,
                    exclusive_jobs=exclusive_jobs,
                ),
            ),
            file_system_id=file_system_id,
            mount_point=mount_point,
            home_id=shared_home.file_system_id if shared_home else None,
            buckets={data_bucket.bucket_name: False, checkpoint_bucket.bucket_name: True},
            custom_ami=custom_ami,
            ssh_from=ssh_from,
            permissions_boundary=permissions_boundary,
            tags={**(cluster_tags or {}), Tag.ENVIRONMENT: environment},
        )
        self.cluster_name = f"{environment}-{version.replace('.', '-')}"
        refuse(self._mistakes(version))
        self._check_configuration()
        homes = [shared_home, self._answers_of(shared_home, security_group)] if shared_home else []
        self._cluster(version, (subnet.internet_connectivity_established, security_group, *homes, *depends_on))

    def _static_mistakes(self, static_nodes: object, nodes: object, workers: object) -> Iterator[Mistake]:
        """What is wrong with the nodes that stay, beside what is wrong with the nodes and how they are bought."""
        where, name = self.node.path, "static_nodes"
        if not is_known(static_nodes):
            remedy = "give it as a number: what is launched follows from it"
            yield Mistake(where=where, name=name, rule="at least 0", got="a token", remedy=remedy)
        elif not is_whole_number(static_nodes):
            yield Mistake(where=where, name=name, rule="a whole number", got=repr(static_nodes))
        else:
            block = isinstance(workers, Capacity) and workers.kind is CapacityKind.CAPACITY_BLOCK
            rule = static_nodes_rule(static_nodes, nodes if is_whole_number(nodes) else None, block=block)
            if rule:
                yield Mistake(where=where, name=name, rule=rule, got=str(static_nodes))

    def _release(self, version: str | None, custom_ami: str | None) -> str:
        """Named by whoever has an image: a later default would not fit the image any more."""
        if custom_ami is not None and version is None:
            rule, remedy = "given with custom_ami: the release that the image was built for", "such as version='3.16.1'"
            raise property_error(self, "version", rule, "nothing", remedy)
        if not is_known(version):
            remedy = "give it as text: logical ids follow from it"
            raise property_error(self, "version", f"a release such as {DEFAULT_VERSION}", "a token", remedy)
        return version or DEFAULT_VERSION

    def _check_head_node(self, instance_type: str, nodes: InstanceType) -> None:
        """All nodes of a cluster are of one architecture (aws-parallelcluster 3.16.1,
        `InstanceArchitectureCompatibilityValidator`), as its one image is."""
        if not is_known(instance_type):
            return
        with at_construct(self):
            row = catalog_row(instance_type)
        if row.architecture != nodes.architecture:
            rule = f"of architecture {nodes.architecture}, as {nodes.name} is: a cluster has one"
            got, remedy = f"{row.name}, which is {row.architecture}", f"use {HEAD_NODES[nodes.architecture]}"
            raise property_error(self, "head_node_instance_type", rule, got, remedy)

    def _check_home(self, home: SharedHome | None, mount_point: str, vpc: ec2.IVpc, nodes: ec2.ISecurityGroup) -> None:
        if home is None:
            return
        if not isinstance(home.node.default_child, efs.CfnFileSystem):
            rule = "on EFS: ParallelCluster mounts OpenZFS only where the ports of NFS 3 are open as well"
            raise property_error(self, "shared_home", rule, "one on OpenZFS", "use kind='efs'")
        problem = beside_home_problem(mount_point) if is_known(mount_point) else None
        if problem:
            raise property_error(self, "mount_point", problem.rule, mount_point, problem.remedy)
        clients, its_vpc = home.mount.clients, home.mount.vpc_id
        warn_of_foreign_mount(self, "shared_home", vpc=vpc, group=nodes, vpc_id=its_vpc, clients=clients)

    def _answers_of(self, home: SharedHome, nodes: ec2.ISecurityGroup) -> IDependable:
        """A rule that ParallelCluster looks for before it makes a cluster, though answers need none: out of the file
        system's group to the nodes (aws-parallelcluster 3.16.1, `EfsIdValidator`)."""
        return ec2.CfnSecurityGroupEgress(
            self,
            "HomeToNodes",
            group_id=home.security_group.security_group_id,
            destination_security_group_id=nodes.security_group_id,
            ip_protocol="tcp",
            from_port=NFS_PORT,
            to_port=NFS_PORT,
            description="NFS",
        )

    def _check_gpu_health(self, nodes: InstanceType) -> None:
        if rule := gpu_health_rule(nodes):
            raise property_error(self, "gpu_health_checks", rule, "True")
        if nodes.accelerators >= 8:
            Annotations.of(self).add_warning_v2(
                "trainfabric:gpuHealthChecks",
                f"{self.node.path}: gpu_health_checks may take longer on {nodes.name} than Slurm waits for them: a job "
                "does not start then; leave them off, or see aws-parallelcluster issue 6777 for what to set",
            )

    def _check_configuration(self) -> None:
        """The rules of `trainfabric lint` over the whole configuration; what only a deploy settles is not judged."""
        found = list(check(self.configuration.as_dict()))
        refuse(one.broken.mistake(self.node.path) for one in found if one.severity is Severity.ERROR)
        for one in found:
            Annotations.of(self).add_warning_v2(f"trainfabric:{one.rule}", str(one.broken.mistake(self.node.path)))

    def _mistakes(self, version: str) -> Iterator[Mistake]:
        where = self.node.path
        yield from version_mistakes(where, version)
        for found in self.configuration.mistakes(where):
            if found.name != "mount_point" or is_known(self.configuration.mount_point):
                yield found
        if is_known(self.cluster_name) and not _CLUSTER_NAME.fullmatch(self.cluster_name):
            rule = "such that environment and version make at most 60 letters, digits and hyphens, a letter first"
            yield Mistake(where=where, name="environment", rule=rule, got=self.cluster_name)

    def _cluster(self, version: str, depends_on: Sequence[IDependable]) -> None:
        release = version.replace(".", "")
        provider = CfnStack(self, f"Provider{release}", template_url=Fn.sub(_TEMPLATE.format(version=version)))
        # No service_timeout: CDK writes it as a property, which the provider hands on as an unknown argument and fails.
        cluster = CustomResource(
            self,
            f"Cluster{release}",
            resource_type="Custom::PclusterCluster",
            service_token=provider.get_att("Outputs.ServiceToken").to_string(),
            properties={"ClusterName": self.cluster_name, "ClusterConfiguration": self.configuration.as_dict()},
        )
        # Routes, rules and the file system's link are not referenced, yet nodes need them until they are gone.
        cluster.node.add_dependency(*depends_on)
        CfnOutput(self, "ClusterName", value=self.cluster_name)
        CfnOutput(self, "ProviderLogGroup", value=provider.get_att("Outputs.LogGroupArn").to_string())


def _queue(instance_type: str, nodes: int, workers: Capacity, efa: bool) -> Queue:
    return Queue(
        name="train",
        instance_type=instance_type,
        most_nodes=nodes,
        capacity=_CAPACITY_TYPES[workers.kind],
        reservation_id=workers.reservation_id,
        resource_group=workers.resource_group,
        placement_group_name=workers.placement_group_name,
        max_spot_price=workers.max_price,
        efa=efa,
    )
