"""Every public bug report that we know of and that touches these constructs: a row of the page, or left out with why.

`reports.txt` was collected from the field (threads read in 2026-11) and is not derived from the tests: a test holds the
rows and `NOT_HERE` to it, so that no report is lost.
"""

from __future__ import annotations

from pathlib import Path

ALL: frozenset[str] = frozenset(Path(__file__).with_name("reports.txt").read_text().split())
"""Their addresses below github.com."""

NOT_HERE: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "Settings and libraries inside a training container or an image (NCCL, libfabric, huge pages), which no "
        "template decides",
        (
            "NVIDIA-NeMo/RL/issues/1973",
            "NVIDIA-NeMo/RL/issues/2359",
            "NVIDIA-NeMo/RL/pull/2585",
            "aws/aws-ofi-nccl/issues/141",
            "aws/aws-ofi-nccl/issues/179",
            "aws/aws-ofi-nccl/issues/476",
            "awslabs/awsome-distributed-ai/issues/386",
            "awslabs/awsome-distributed-ai/issues/519",
            "ofiwg/libfabric/issues/9739",
        ),
    ),
    (
        "Kernels that move away from the module of Lustre or from its client for EFA: a matter of the node's image, "
        "where boot stops and names the kernel",
        (
            "amazonlinux/amazon-linux-2023/issues/723",
            "aws-samples/amazon-eks-autonomous-driving-data-service/issues/96",
            "aws/aws-parallelcluster-cookbook/pull/3251",
            "aws/aws-parallelcluster/issues/2095",
            "aws/aws-parallelcluster/issues/4057",
            "awslabs/awsome-distributed-ai/pull/1208",
        ),
    ),
    (
        "What ParallelCluster's provider, its head node, its images and its own policies do once they run; its "
        "construct gives them a configuration and no more",
        (
            "aws-samples/aws-eda-slurm-cluster/issues/324",
            "aws-samples/pcluster-manager/issues/268",
            "aws/aws-parallelcluster/issues/4031",
            "aws/aws-parallelcluster/issues/5511",
            "aws/aws-parallelcluster/issues/5675",
            "aws/aws-parallelcluster/issues/5686",
            "aws/aws-parallelcluster/issues/6407",
            "aws/aws-parallelcluster/issues/6571",
            "aws/aws-parallelcluster/pull/5397",
        ),
    ),
    (
        "How Slurm requeues what a lost spot node ran, and where it looks for other capacity: a matter of its jobs",
        (
            "aws/aws-parallelcluster-node/pull/560",
            "aws/aws-parallelcluster/issues/1671",
            "aws/aws-parallelcluster/issues/2117",
            "aws/aws-parallelcluster/issues/2716",
            "aws/aws-parallelcluster/issues/6641",
        ),
    ),
    (
        "A wish for a CDK construct, which is here: `ParallelClusterStack`",
        ("aws/aws-parallelcluster/issues/5541",),
    ),
)
"""Why, and which."""
