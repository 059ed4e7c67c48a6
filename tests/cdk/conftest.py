from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

# Before aws_cdk is imported. The validator costs tens of seconds a stack, cfn-lint checks the same in tests/nag.
os.environ["CDK_VALIDATION"] = "false"
os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "20")

import aws_cdk as cdk
import pytest
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Annotations, Match, Template

from tests.cdk.clusters import MakeCluster
from trainfabric_cdk import (
    EfaClusterPlacementGroup,
    EfaSecurityGroup,
    LustreMount,
    ParallelClusterStack,
    SpotTrainingFleet,
    TrainingVpc,
)

Resources = dict[str, dict[str, Any]]


@pytest.fixture
def stack() -> cdk.Stack:
    app = cdk.App(analytics_reporting=False)
    return cdk.Stack(app, "Demo", env=cdk.Environment(account="123456789012", region="us-east-1"))


@pytest.fixture
def resources(stack: cdk.Stack) -> Callable[[str], Resources]:
    """Resources of a type in the synthesised template of `stack`, by logical id."""
    return lambda kind: dict(Template.from_stack(stack).find_resources(kind))


@pytest.fixture
def properties(stack: cdk.Stack) -> Callable[[str], list[dict[str, Any]]]:
    """Properties of all resources of a type in the synthesised template of `stack`."""

    def of_type(kind: str) -> list[dict[str, Any]]:
        found = Template.from_stack(stack).find_resources(kind)
        return [resource.get("Properties", {}) for resource in found.values()]

    return of_type


@pytest.fixture
def warnings(stack: cdk.Stack) -> Callable[[], list[str]]:
    def found() -> list[str]:
        return [
            str(message.entry.data) for message in Annotations.from_stack(stack).find_warning("*", Match.any_value())
        ]

    return found


@pytest.fixture
def make_fleet(stack: cdk.Stack) -> Callable[..., SpotTrainingFleet]:
    """A fleet of four p5.48xlarge at `Demo/Fleet`, with what a test says otherwise."""

    def make(**given: Any) -> SpotTrainingFleet:
        network = TrainingVpc(stack, "Network", availability_zone="us-east-1a")
        changed = {name: value(network) if callable(value) else value for name, value in given.items()}
        vpc = changed.get("vpc", network.vpc)
        usual = {
            "environment": "demo",
            "vpc": network.vpc,
            "subnet": network.private_subnet,
            "security_group": EfaSecurityGroup(stack, "Nodes", vpc=network.vpc if isinstance(vpc, str) else vpc),
            "placement_group": EfaClusterPlacementGroup(stack, "Placement"),
            "instance_type": "p5.48xlarge",
            "nodes": 4,
            "data_bucket": s3.Bucket.from_bucket_name(stack, "Data", "demo-data"),
            "checkpoint_bucket": s3.Bucket.from_bucket_name(stack, "Checkpoints", "demo-checkpoints"),
            "lustre": LustreMount(dns_name="fs-1.fsx.us-east-1.amazonaws.com", mount_name="abcdefgh"),
        }
        return SpotTrainingFleet(stack, "Fleet", **{**usual, **changed})

    return make


@pytest.fixture
def make_cluster(stack: cdk.Stack) -> MakeCluster:
    """A cluster stack `Slurm` in the network of the stack `Demo`, with what a test says otherwise."""

    def make(**given: Any) -> ParallelClusterStack:
        network = TrainingVpc(stack, "Network", availability_zone="us-east-1a")
        usual = {
            "environment": "demo",
            "vpc": network.vpc,
            "subnet": network.private_subnet,
            "security_group": EfaSecurityGroup(stack, "Nodes", vpc=network.vpc),
            "instance_type": "p4d.24xlarge",
            "nodes": 8,
            "data_bucket": s3.Bucket.from_bucket_name(stack, "Data", "demo-data"),
            "checkpoint_bucket": s3.Bucket.from_bucket_name(stack, "Checkpoints", "demo-checkpoints"),
            "file_system_id": "fs-0123456789abcdef0",
        }
        changed = {name: value(network) if callable(value) else value for name, value in given.items()}
        env = cdk.Environment(account="123456789012", region="us-east-1")
        return ParallelClusterStack(cdk.App.of(stack), "Slurm", env=env, **{**usual, **changed})

    return make
