"""What the plan says an environment is made of, against what the stacks synthesise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Template

from trainfabric_plan.environment import Environment, validate_environment
from trainfabric_plan.environment.file import read_environment
from trainfabric_plan.permissions import HANDLERS, resource_types
from trainfabric_stacks import TrainingEnvironment, training_app
from trainfabric_stacks.app import FEATURE_FLAGS

ENVIRONMENTS = sorted((Path(__file__).parents[2] / "environments").glob("*.yaml"))

SOON = {"AWS::SQS::Queue", "AWS::SQS::QueuePolicy"}
"""Types whose constructs are being built."""

KEY = "arn:aws:kms:us-east-1:123456789012:key/0f8e7d6c-0000-4000-8000-000000000000"

EXISTING_NETWORK = {"vpc_id": "vpc-0123456789abcdef0", "subnet_id": "subnet-0123456789abcdef0"}

VARIANTS: dict[str, dict[str, Any]] = {
    "an existing network": {"network": EXISTING_NETWORK},
    "an existing network with its route table": {
        "network": {**EXISTING_NETWORK, "route_table_id": "rtb-0123456789abcdef0"}
    },
    "existing buckets": {"storage": {"data_bucket": {"name": "our-data"}, "checkpoint_bucket": {"name": "our-saves"}}},
    "no way out": {
        "network": {"egress": "endpoints"},
        "fleet": {
            "instance_type": "p5.48xlarge",
            "nodes": 4,
            "prepared_image": True,
            "ami_id": "ami-0123456789abcdef0",
        },
    },
    "Slurm with a shared home": {"orchestrator": "parallelcluster", "storage": {"shared_home": "efs"}},
    "a customer key, nothing retained": {"storage": {"kms_key_arn": KEY, "retain": False}},
    "an existing file system": {
        "storage": {"lustre": {"file_system_id": "fs-0123456789abcdef0", "mount_name": "abcdefgh"}}
    },
    "a file system that tiers": {"storage": {"lustre": {"deployment": "intelligent_tiering", "throughput_mbps": 4000}}},
    "on demand": {"fleet": {"instance_type": "p5.48xlarge", "nodes": 4, "workers": "on_demand"}},
    "without EFA": {"fleet": {"instance_type": "p5.48xlarge", "nodes": 4, "efa": False}},
}


def synthesised(environment: Environment) -> set[str]:
    stacks = TrainingEnvironment(training_app(), environment).stacks
    templates = (Template.from_stack(stack).to_json() for stack in stacks)
    return {one["Type"] for template in templates for one in template["Resources"].values()}


def variant(changes: dict[str, Any]) -> Environment:
    given = {
        "name": "demo",
        "region": "us-east-1",
        "availability_zone": "us-east-1a",
        "fleet": {"instance_type": "p5.48xlarge", "nodes": 4},
        "training": {"recipe": "tiny_cpu", "ranks_per_node": 2},
    }
    return validate_environment({**given, **changes}, "test")


ALL = {**{file.stem: read_environment(file) for file in ENVIRONMENTS}, **{k: variant(v) for k, v in VARIANTS.items()}}


@pytest.mark.parametrize("environment", ALL.values(), ids=ALL.keys())
def test_the_types_of_an_environment_are_those_of_its_templates(environment: Environment) -> None:
    """A new type: add it to permissions/resource_types.py, and its actions to the table beside it."""
    types = synthesised(environment)

    assert types - resource_types(environment) == set()
    assert resource_types(environment) - types <= SOON
    assert {one for one in types if not one.startswith("Custom::")} <= set(HANDLERS)


def test_a_boundary_and_a_qualifier_of_the_app_reach_every_role_and_stack() -> None:
    """What docs/how-to/deploy-with-least-privilege.md says to write into the context of cdk.json."""
    context = {"@aws-cdk/core:permissionsBoundary": {"name": "boundary"}, "@aws-cdk/core:bootstrapQualifier": "train"}
    app = cdk.App(analytics_reporting=False, context={**FEATURE_FLAGS, **context})
    environment = TrainingEnvironment(app, variant({"account": "123456789012"}))

    templates = [Template.from_stack(stack).to_json() for stack in environment.stacks]
    roles = [
        one["Properties"]["PermissionsBoundary"]
        for template in templates
        for one in template["Resources"].values()
        if one["Type"] == "AWS::IAM::Role"
    ]

    assert roles
    assert all("policy/boundary" in str(one) for one in roles)
    deploys = {one.assume_role_arn.rpartition(":")[2] for one in app.synth().stacks if one.assume_role_arn}
    assert deploys == {"role/cdk-train-deploy-role-123456789012-us-east-1"}
