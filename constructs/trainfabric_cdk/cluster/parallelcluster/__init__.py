"""Slurm through AWS ParallelCluster."""

from trainfabric_cdk.cluster.parallelcluster.configuration import ClusterConfiguration, Queue
from trainfabric_cdk.cluster.parallelcluster.stack import ParallelClusterStack

__all__ = ["ClusterConfiguration", "ParallelClusterStack", "Queue"]
