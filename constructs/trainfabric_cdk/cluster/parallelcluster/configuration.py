"""The configuration file of AWS ParallelCluster 3.16, as types: pure, without CDK.

Rules follow the validators of aws-parallelcluster 3.16.1 (`pcluster/validators`), which run only once the cluster is
being created.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from trainfabric_plan.contract import Paths
from trainfabric_plan.errors import Mistake
from trainfabric_plan.mount_points import mount_point_problem

_QUEUE_NAME = re.compile(r"[a-z][a-z0-9-]{0,24}")
NOWHERE = "127.0.0.1/32"
"""Where SSH comes from that reaches nobody: ParallelCluster always makes a rule, from everywhere if not told."""

_SESSION_MANAGER = "arn:{partition}:iam::aws:policy/AmazonSSMManagedInstanceCore"


@dataclass(frozen=True, kw_only=True)
class Queue:
    """A Slurm queue of equal nodes, none of which is up before a job needs it, unless it is static.

    Attributes:
        name: Lower-case letters, digits and hyphens, at most 25.
        instance_type: One EC2 type.
        most_nodes: Most nodes that Slurm starts.
        capacity: `SPOT`, `ONDEMAND`, or `CAPACITY_BLOCK`, whose nodes are static: it starts with all of them.
        reservation_id: Capacity reservation or block that the nodes are of.
        resource_group: ARN of a resource group of reservations instead.
        placement_group_name: Group that the reservation was made in.
        max_spot_price: Most US dollars per instance-hour; the on-demand price if `None`.
        efa: Elastic Fabric Adapter, and with it a cluster placement group.
        static_nodes: Nodes that are up from the start and stay; all of a block are, whatever is said here.
        gpu_health_checks: Whether every job begins with a check of its nodes' GPUs.
        exclusive_jobs: Whether a node has one job at a time.
    """

    name: str
    instance_type: str
    most_nodes: int
    capacity: Literal["SPOT", "ONDEMAND", "CAPACITY_BLOCK"]
    reservation_id: str | None = None
    resource_group: str | None = None
    placement_group_name: str | None = None
    max_spot_price: float | None = None
    efa: bool = True
    static_nodes: int = 0
    gpu_health_checks: bool = False
    exclusive_jobs: bool = False

    def mistakes(self, where: str) -> Iterator[Mistake]:
        """Every rule of ParallelCluster that this queue breaks."""
        if not _QUEUE_NAME.fullmatch(self.name) or self.name == "default":
            rule = "1 to 25 lower-case letters, digits and hyphens, a letter first, and not default"
            yield Mistake(where=where, name="queue.name", rule=rule, got=repr(self.name))
        if self.most_nodes < 1:
            yield Mistake(where=where, name="queue.most_nodes", rule="at least 1", got=str(self.most_nodes))
        if self.max_spot_price is not None and self.capacity != "SPOT":
            remedy = "leave it out, or use capacity SPOT"
            yield Mistake(
                where=where,
                name="queue.max_spot_price",
                rule="given only for capacity SPOT",
                got=f"{self.max_spot_price} with {self.capacity}",
                remedy=remedy,
            )

    def compute_resource(self) -> dict[str, Any]:
        """The compute resource of the queue."""
        resource: dict[str, Any] = {
            "Name": f"{self.name}-nodes",
            "InstanceType": self.instance_type,
            "MinCount": self.most_nodes if self.capacity == "CAPACITY_BLOCK" else self.static_nodes,
            "MaxCount": self.most_nodes,
            "Efa": {"Enabled": self.efa},
        }
        if self.max_spot_price is not None:
            resource["SpotPrice"] = self.max_spot_price
        if self.reservation_id is not None:
            resource["CapacityReservationTarget"] = {"CapacityReservationId": self.reservation_id}
        elif self.resource_group is not None:
            resource["CapacityReservationTarget"] = {"CapacityReservationResourceGroupArn": self.resource_group}
        return resource

    def placement(self) -> dict[str, Any]:
        """The placement group: one that ParallelCluster makes, that of the reservation, or none."""
        if self.placement_group_name is not None:
            return {"Name": self.placement_group_name}
        reserved = self.reservation_id is not None or self.resource_group is not None
        return {"Enabled": self.efa and not reserved}


@dataclass(frozen=True, kw_only=True)
class ClusterConfiguration:
    """A cluster: a head node on demand, queues that start empty, one existing Lustre file system.

    Attributes:
        region: AWS region.
        partition: AWS partition, of the ARNs of managed policies.
        head_node_instance_type: Type of the head node.
        subnet_id: The one subnet of all nodes.
        security_group_id: Group of all nodes beside the one that ParallelCluster makes: lets them reach Lustre.
        queues: Slurm queues.
        file_system_id: FSx's id.
        mount_point: Where the nodes mount it.
        buckets: Bucket names, and whether the nodes write there.
        custom_ami: AMI built for the same ParallelCluster release; its own Ubuntu 24.04 image if `None`.
        home_id: EFS's id of a shared home, which all nodes mount at /shared over TLS.
        ssh_from: Range of addresses or prefix list from which SSH reaches the head node; from nowhere if `None`.
        permissions_boundary: ARN of the policy that bounds every role of the cluster.
        tags: Tags of every resource of the cluster.
    """

    region: str
    partition: str = "aws"
    head_node_instance_type: str
    subnet_id: str
    security_group_id: str
    queues: tuple[Queue, ...]
    file_system_id: str
    mount_point: str
    buckets: Mapping[str, bool]
    custom_ami: str | None = None
    home_id: str | None = None
    ssh_from: str | None = None
    permissions_boundary: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)

    def mistakes(self, where: str) -> Iterator[Mistake]:
        """Every rule of ParallelCluster that this configuration breaks."""
        if not self.queues:
            yield Mistake(where=where, name="queues", rule="at least one", got="none")
        names = [queue.name for queue in self.queues]
        if len(set(names)) != len(names):
            yield Mistake(where=where, name="queues", rule="of different names", got=", ".join(names))
        problem = mount_point_problem(self.mount_point)
        if problem:
            got, remedy = repr(self.mount_point), problem.remedy
            yield Mistake(where=where, name="mount_point", rule=problem.rule, got=got, remedy=remedy)
        for queue in self.queues:
            yield from queue.mistakes(where)

    def as_dict(self) -> dict[str, Any]:
        """What the file would hold."""
        image: dict[str, Any] = {"Os": "ubuntu2404"}
        if self.custom_ami is not None:
            image["CustomAmi"] = self.custom_ami
        boundary = self.permissions_boundary
        bounded = {} if boundary is None else {"Iam": {"PermissionsBoundary": boundary}}
        return {
            "Region": self.region,
            "Image": image,
            "HeadNode": {
                "InstanceType": self.head_node_instance_type,
                "Networking": {"SubnetId": self.subnet_id, "AdditionalSecurityGroups": [self.security_group_id]},
                "LocalStorage": {"RootVolume": {"Encrypted": True, "VolumeType": "gp3"}},
                "Ssh": {"AllowedIps": NOWHERE if self.ssh_from is None else self.ssh_from},
                "Imds": {"Secured": True},
                "Iam": self._iam(),
            },
            "Scheduling": {
                "Scheduler": "slurm",
                "SlurmSettings": {
                    # The provider never stops the fleet before an update, which the default strategy asks for.
                    "QueueUpdateStrategy": "DRAIN",
                    # A node that fails takes its job's script along: Slurm puts the job back into the queue.
                    "CustomSlurmSettings": [{"JobRequeue": 1}],
                },
                "SlurmQueues": [self._queue(queue) for queue in self.queues],
            },
            "SharedStorage": list(self._shared_storage()),
            **bounded,
            "Imds": {"ImdsSupport": "v2.0"},
            "Monitoring": {"Logs": {"CloudWatch": {"Enabled": True, "RetentionInDays": 30}}},
            "Tags": [{"Key": key, "Value": value} for key, value in sorted(self.tags.items())],
        }

    def _shared_storage(self) -> Iterator[dict[str, Any]]:
        yield {
            "Name": "lustre",
            "MountDir": self.mount_point,
            "StorageType": "FsxLustre",
            "FsxLustreSettings": {"FileSystemId": self.file_system_id},
        }
        if self.home_id is not None:
            yield {
                "Name": "home",
                "MountDir": Paths.SHARED_HOME,
                "StorageType": "Efs",
                "EfsSettings": {"FileSystemId": self.home_id, "EncryptionInTransit": True},
            }

    def _iam(self) -> dict[str, Any]:
        return {
            "AdditionalIamPolicies": [{"Policy": _SESSION_MANAGER.format(partition=self.partition)}],
            "S3Access": [{"BucketName": name, "EnableWriteAccess": write} for name, write in self.buckets.items()],
        }

    def _queue(self, queue: Queue) -> dict[str, Any]:
        return {
            "Name": queue.name,
            "CapacityType": queue.capacity,
            "Networking": {
                "SubnetIds": [self.subnet_id],
                "AdditionalSecurityGroups": [self.security_group_id],
                "PlacementGroup": queue.placement(),
            },
            "ComputeSettings": {"LocalStorage": {"RootVolume": {"Encrypted": True, "VolumeType": "gp3", "Size": 200}}},
            "ComputeResources": [queue.compute_resource()],
            "Iam": self._iam(),
            **({"HealthChecks": {"Gpu": {"Enabled": True}}} if queue.gpu_health_checks else {}),
            **({"JobExclusiveAllocation": True} if queue.exclusive_jobs else {}),
        }


def version_mistakes(where: str, version: str) -> Iterator[Mistake]:
    """Releases before 3.14.1 create Lambda functions on Python 3.9, which Lambda refuses (aws-parallelcluster 7287)."""
    match = re.fullmatch(r"3\.(\d+)\.(\d+)", version)
    if not match or (int(match[1]), int(match[2])) < (14, 1):
        rule = "a release 3.x.y from 3.14.1 on: Lambda refuses the Python of earlier ones"
        yield Mistake(where=where, name="version", rule=rule, got=version, remedy="use 3.16.1")
