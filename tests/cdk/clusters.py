"""A Slurm cluster for tests, and what stands in its template."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aws_cdk.assertions import Template

from trainfabric_cdk import ParallelClusterStack
from trainfabric_cdk.cluster.parallelcluster import ClusterConfiguration, Queue

MakeCluster = Callable[..., ParallelClusterStack]

QUEUE = Queue(name="train", instance_type="p4d.24xlarge", most_nodes=8, capacity="SPOT")
CONFIGURATION = ClusterConfiguration(
    region="us-east-1",
    head_node_instance_type="m7i.2xlarge",
    subnet_id="subnet-1",
    security_group_id="sg-1",
    queues=(QUEUE,),
    file_system_id="fs-0123456789abcdef0",
    mount_point="/fsx",
    buckets={"data": False, "checkpoints": True},
)


def cluster_of(stack: ParallelClusterStack) -> tuple[str, dict[str, Any]]:
    """Logical id and properties of the cluster."""
    ((id, resource),) = Template.from_stack(stack).find_resources("Custom::PclusterCluster").items()
    return id, resource["Properties"]
