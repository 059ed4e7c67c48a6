"""Which AWS services the nodes call, and so which endpoints a network without NAT needs.

The table stands beside the code that calls, and a test reads that code: a call to a service without a row fails it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class NodeCalls:
    """What nodes ask of one service.

    Attributes:
        service: The service as IAM's actions name it.
        endpoint: The service as an interface endpoint's name ends; `None` for S3, whose gateway endpoint is free.
        actions: The actions; empty for what an agent of AWS does, whose actions AWS may add to.
        caller: Who calls, and what for.
        containers: Whether it is needed only where the nodes run a container image.
    """

    service: str
    endpoint: str | None
    actions: tuple[str, ...] = ()
    caller: str
    containers: bool = False


NODE_CALLS: tuple[NodeCalls, ...] = (
    NodeCalls(service="s3", endpoint=None, caller="boot (the training asset), data, checkpoints and job records"),
    NodeCalls(
        service="ssm",
        endpoint="ssm",
        caller="Systems Manager's agent; boot and the controller read the environment's parameter",
    ),
    # The agent falls back to ec2messages only where it cannot use ssmmessages (Systems Manager user guide,
    # systems-manager-setting-up-messageAPIs, read 2026-11-30), so that service needs no endpoint.
    NodeCalls(service="ssmmessages", endpoint="ssmmessages", caller="Systems Manager's agent: Session Manager"),
    NodeCalls(
        service="autoscaling",
        endpoint="autoscaling",
        actions=(
            "DescribeAutoScalingGroups",
            "SetDesiredCapacity",
            "SetInstanceProtection",
            "TerminateInstanceInAutoScalingGroup",
        ),
        caller="boot and the controller release, protect and replace nodes",
    ),
    NodeCalls(
        service="cloudwatch", endpoint="monitoring", actions=("PutMetricData",), caller="the coordinator's metrics"
    ),
    NodeCalls(
        service="sqs",
        endpoint="sqs",
        actions=("ReceiveMessage", "DeleteMessage", "GetQueueUrl", "GetQueueAttributes"),
        caller="the controller reads notices of interruption from the fleet's queue",
    ),
    NodeCalls(
        service="ecr",
        endpoint="ecr.api",
        actions=(
            "GetAuthorizationToken",
            "BatchCheckLayerAvailability",
            "GetDownloadUrlForLayer",
            "BatchGetImage",
        ),
        caller="docker pull",
        containers=True,
    ),
    NodeCalls(
        service="ecr",
        endpoint="ecr.dkr",
        actions=("BatchCheckLayerAvailability", "GetDownloadUrlForLayer", "BatchGetImage"),
        caller="docker pull; the layers themselves come from S3",
        containers=True,
    ),
)
"""Every service that nodes call. Instance metadata, time and DNS are link-local and need no way out; FSx for Lustre is
in the subnet; KMS is called by S3 and EBS, not by nodes."""


def endpoint_calls(*, containers: bool = False) -> tuple[NodeCalls, ...]:
    """The calls that need an interface endpoint where there is no NAT.

    Args:
        containers: Whether nodes pull a container image from ECR.
    """
    return tuple(calls for calls in NODE_CALLS if calls.endpoint and (containers or not calls.containers))
