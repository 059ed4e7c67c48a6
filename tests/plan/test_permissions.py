"""The tables of IAM actions against the CloudFormation registry's own, AWS's API names, and the limits of IAM."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import botocore.session
import pytest

from trainfabric_plan.environment import Environment, validate_environment
from trainfabric_plan.environment.file import read_environment
from trainfabric_plan.partitions import partition_of
from trainfabric_plan.permissions import (
    HANDLERS,
    MANAGED_POLICY_CHARACTERS,
    Target,
    actions_of,
    caller_policy,
    deploy_policies,
)
from trainfabric_plan.permissions.handlers import LEFT_OUT, NAMED

ROOT = Path(__file__).parents[2]
BOUNDARY = "arn:aws:iam::123456789012:policy/boundary"

ADDED = {
    "AWS::EC2::VPCEndpoint": {"route53:AssociateVPCWithHostedZone"},
    "AWS::FSx::DataRepositoryAssociation": {"iam:AttachRolePolicy"},
    "AWS::EFS::MountTarget": {
        "ec2:CreateNetworkInterface",
        "ec2:DeleteNetworkInterface",
        "ec2:DescribeNetworkInterfaces",
        "ec2:DescribeSubnets",
        "ec2:ModifyNetworkInterfaceAttribute",
    },
}
"""What the registry lacks: FSx for Lustre user guide, Adding permissions to use data repositories; EFS API reference,
CreateMountTarget, DeleteMountTarget and ModifyMountTargetSecurityGroups; IAM service authorization reference, dependent
actions of ec2:CreateVpcEndpoint."""

NOT_OPERATIONS = {
    "iam:PassRole",
    "logs:CreateLogDelivery",
    "logs:DeleteLogDelivery",
    "s3:GetAccelerateConfiguration",
    "s3:GetAnalyticsConfiguration",
    "s3:GetBucketCORS",
    "s3:GetBucketObjectLockConfiguration",
    "s3:GetBucketPublicAccessBlock",
    "s3:GetEncryptionConfiguration",
    "s3:GetIntelligentTieringConfiguration",
    "s3:GetInventoryConfiguration",
    "s3:GetLifecycleConfiguration",
    "s3:GetMetricsConfiguration",
    "s3:GetObjectVersion",
    "s3:GetReplicationConfiguration",
    "s3:ListBucket",
    "s3:PutBucketPublicAccessBlock",
    "s3:PutEncryptionConfiguration",
    "s3:PutLifecycleConfiguration",
    "lambda:InvokeFunction",
    "s3:ListTagsForResource",
    "s3:TagResource",
    "s3:UntagResource",
}
"""Actions that no API operation of their service is named after; the IAM service authorization reference has each (read
2026-11). The last three are operations of S3 Control."""

SERVICES = {"elasticfilesystem": "efs"}
"""IAM's prefix of a service → botocore's name of it, where they differ."""


def environment(**changes: Any) -> Environment:
    given = {
        "name": "demo",
        "region": "us-east-1",
        "availability_zone": "us-east-1a",
        "fleet": {"instance_type": "p5.48xlarge", "nodes": 4},
        "training": {"recipe": "tiny_cpu", "ranks_per_node": 2},
    }
    return validate_environment({**given, **changes}, "test")


def statements(wanted: Environment, boundary: str | None = None) -> dict[str, dict[str, Any]]:
    documents = deploy_policies(Target(environment=wanted, account="123456789012", boundary=boundary))
    return {one["Sid"]: one for document in documents for one in document["Statement"]}


@cache
def registry() -> Mapping[str, frozenset[str]]:
    """Resource type → every action that the registry lists for it, as cfn-lint ships it."""
    import cfnlint

    found: dict[str, frozenset[str]] = {}
    for file in (Path(cfnlint.__file__).parent / "data/schemas/resources").glob("*.json"):
        schema = json.loads(file.read_text())
        if schema.get("typeName") in HANDLERS and schema.get("handlers"):
            handlers = [schema["handlers"].get(name, {}) for name in ("create", "read", "update", "delete")]
            tagging = schema.get("tagging", {}).get("permissions", [])
            found[schema["typeName"]] = frozenset(tagging).union(*(one.get("permissions", []) for one in handlers))
    return found


def left_out(action: str, resource_type: str) -> bool:
    patterns = (pattern.partition("@") for pattern in LEFT_OUT)
    return any(fnmatchcase(action, one) and of in ("", resource_type) for one, _, of in patterns)


@pytest.mark.parametrize("resource_type", sorted(set(HANDLERS) - {"AWS::FSx::FileSystem"}))
def test_a_table_has_what_the_registry_lists_without_what_is_left_out(resource_type: str) -> None:
    listed = registry()[resource_type]
    named = {action for wildcard in listed & set(NAMED) for action in NAMED[wildcard]}

    kept = {action for action in listed - set(NAMED) if not left_out(action, resource_type)}

    assert HANDLERS[resource_type].actions() == kept | named | ADDED.get(resource_type, set())


def test_only_the_type_without_permissions_in_the_registry_is_written_from_the_documentation() -> None:
    assert set(HANDLERS) - set(registry()) == {"AWS::FSx::FileSystem"}


def test_nothing_is_left_out_that_no_type_lists() -> None:
    listed = {(action, one) for one, actions in registry().items() for action in actions}

    unused = [
        pattern
        for pattern in LEFT_OUT
        if not any(
            fnmatchcase(action, pattern.partition("@")[0]) and pattern.partition("@")[2] in ("", one)
            for action, one in listed
        )
    ]

    assert unused == []


def test_every_action_is_an_operation_of_its_service_or_a_known_exception() -> None:
    session = botocore.session.get_session()
    actions = {action for handler in HANDLERS.values() for action in handler.actions()} | {"lambda:InvokeFunction"}
    by_service: dict[str, set[str]] = {}
    for action in actions:
        service, _, name = action.partition(":")
        by_service.setdefault(service, set()).add(name)

    misspelt = {
        f"{service}:{name}"
        for service, names in by_service.items()
        for name in names - set(session.get_service_model(SERVICES.get(service, service)).operation_names)
    }

    assert misspelt == NOT_OPERATIONS


ENVIRONMENTS = [read_environment(file) for file in sorted((ROOT / "environments").glob("*.yaml"))]


@pytest.mark.parametrize("wanted", ENVIRONMENTS, ids=lambda one: one.name)
def test_no_document_allows_a_wildcard_of_actions_or_is_too_large_for_iam(wanted: Environment) -> None:
    target = Target(environment=wanted, account="123456789012", boundary=BOUNDARY)

    for document in [*deploy_policies(target), caller_policy(target)]:
        assert len(re.sub(r"\s", "", json.dumps(document))) <= MANAGED_POLICY_CHARACTERS
        assert all("*" not in action for one in document["Statement"] for action in one["Action"])
        assert all(one["Condition"] for one in document["Statement"] if one["Resource"] == ["*"])


@pytest.mark.parametrize("wanted", ENVIRONMENTS, ids=lambda one: one.name)
def test_the_documents_together_allow_just_the_actions_of_the_environment(wanted: Environment) -> None:
    allowed = {action for one in statements(wanted).values() for action in one["Action"]}

    assert allowed == actions_of(wanted)


def test_roles_are_passed_to_the_services_that_use_them_and_are_those_of_the_environment() -> None:
    assert statements(environment())["PassRoles"] == {
        "Sid": "PassRoles",
        "Effect": "Allow",
        "Action": ["iam:PassRole"],
        "Resource": [
            "arn:aws:iam::123456789012:role/demo-Fleet-*",
            "arn:aws:iam::123456789012:role/demo-Network-*",
            "arn:aws:iam::123456789012:role/demo-Observability-*",
            "arn:aws:iam::123456789012:role/demo-Storage-*",
        ],
        "Condition": {"StringEquals": {"iam:PassedToService": ["ec2.amazonaws.com", "vpc-flow-logs.amazonaws.com"]}},
    }


def test_only_the_instance_type_of_the_environment_may_be_launched() -> None:
    launch = statements(environment())["LaunchTypes"]

    assert launch["Condition"] == {"StringEquals": {"ec2:InstanceType": ["p5.48xlarge"]}}
    assert launch["Resource"] == ["arn:aws:ec2:us-east-1:123456789012:instance/*"]


def test_what_is_removed_in_ec2_must_carry_the_tag_of_the_environment() -> None:
    removal = statements(environment())["RemoveOfEnvironment"]

    assert "ec2:DeleteVpc" in removal["Action"]
    assert removal["Condition"] == {"StringEquals": {"aws:ResourceTag/trainfabric:environment": "demo"}}


def test_retained_storage_cannot_be_removed_by_who_deploys() -> None:
    removals = {
        "s3:DeleteBucket",
        "s3:DeleteBucketPolicy",
        "fsx:DeleteFileSystem",
        "fsx:DeleteDataRepositoryAssociation",
    }

    assert removals & actions_of(environment()) == set()
    assert removals & actions_of(environment(storage={"retain": False})) == removals


def test_with_a_permissions_boundary_only_bounded_roles_are_widened_and_none_is_unbounded() -> None:
    bounded = statements(environment(), BOUNDARY)

    assert bounded["BoundedRoles"]["Action"] == [
        "iam:AttachRolePolicy",
        "iam:CreateRole",
        "iam:PutRolePermissionsBoundary",
        "iam:PutRolePolicy",
    ]
    assert bounded["BoundedRoles"]["Condition"] == {"StringEquals": {"iam:PermissionsBoundary": BOUNDARY}}
    assert "iam:DeleteRolePermissionsBoundary" not in bounded["Roles"]["Action"]


def test_a_given_bucket_that_is_linked_is_read_and_its_policy_written_but_no_more() -> None:
    with_bucket = statements(environment(storage={"data_bucket": {"name": "our-corpora"}}))

    naming = [sid for sid, one in with_bucket.items() if "arn:aws:s3:::our-corpora" in one["Resource"]]
    assert naming == ["LinkedBuckets"]
    assert with_bucket["LinkedBuckets"]["Action"] == ["s3:GetBucketPolicy", "s3:ListBucket", "s3:PutBucketPolicy"]


def test_a_shared_home_is_made_where_iam_can_limit_nothing_and_its_interfaces_carry_no_tag() -> None:
    demo = environment()
    with_home = demo.model_copy(update={"storage": demo.storage.model_copy(update={"shared_home": "efs"})})

    allowed = statements(with_home)

    assert "elasticfilesystem:CreateFileSystem" in allowed["InTheRegion"]["Action"]
    assert "ec2:DeleteNetworkInterface" in allowed["MakeInEc2"]["Action"]
    assert "ec2:DeleteNetworkInterface" not in allowed["RemoveOfEnvironment"]["Action"]


def test_long_names_are_matched_by_what_cloudformation_surely_keeps_of_them() -> None:
    (network, *_) = statements(environment(name="a-very-long-name-of-30-letters"))["Roles"]["Resource"]

    assert network == "arn:aws:iam::123456789012:role/a-very-long-name-of-30-l*"


def test_in_china_arns_and_the_principal_of_ec2_are_those_of_the_partition() -> None:
    wanted = environment(region="cn-north-1", availability_zone="cn-north-1a")

    passed = statements(wanted)["PassRoles"]

    assert passed["Condition"]["StringEquals"]["iam:PassedToService"][0] == "ec2.amazonaws.com.cn"
    assert passed["Resource"][0] == "arn:aws-cn:iam::123456789012:role/demo-Fleet-*"


def test_who_calls_cdk_may_assume_the_roles_of_the_bootstrap_and_nothing_else() -> None:
    assert caller_policy(Target(environment=environment(), account="123456789012"), "team1")["Statement"] == [
        {
            "Sid": "AssumeBootstrapRoles",
            "Effect": "Allow",
            "Action": ["sts:AssumeRole"],
            "Resource": [
                "arn:aws:iam::123456789012:role/cdk-team1-deploy-role-123456789012-us-east-1",
                "arn:aws:iam::123456789012:role/cdk-team1-file-publishing-role-123456789012-us-east-1",
                "arn:aws:iam::123456789012:role/cdk-team1-lookup-role-123456789012-us-east-1",
            ],
        }
    ]


def test_partitions_are_those_of_botocore() -> None:
    session = botocore.session.get_session()

    wrong = {
        region: partition
        for partition in session.get_available_partitions()
        for region in session.get_available_regions("ec2", partition)
        if partition_of(region) != partition
    }

    assert wrong == {}


def test_interface_endpoints_get_names_of_their_own_and_gateways_none() -> None:
    closed = environment(
        network={"egress": "endpoints"},
        fleet={
            "instance_type": "p5.48xlarge",
            "nodes": 4,
            "prepared_image": True,
            "ami_id": "ami-0123456789abcdef0",
        },
    )

    assert statements(closed)["PrivateNames"] == {
        "Sid": "PrivateNames",
        "Effect": "Allow",
        "Action": ["route53:AssociateVPCWithHostedZone"],
        "Resource": ["arn:aws:ec2:us-east-1:123456789012:vpc/*", "arn:aws:route53:::hostedzone/*"],
    }
    assert "PrivateNames" not in statements(environment())
