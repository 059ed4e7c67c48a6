from __future__ import annotations

from collections.abc import Callable
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3

from trainfabric_cdk import SpotTrainingFleet

KEYS = "arn:aws:kms:us-east-1:123456789012:key"

MakeFleet = Callable[..., SpotTrainingFleet]


@pytest.fixture
def statements(
    make_fleet: MakeFleet, properties: Callable[[str], list[dict[str, Any]]]
) -> Callable[[str], list[dict[str, Any]]]:
    """Statements of the nodes' policy that allow an action."""
    fleet = make_fleet()
    (policy,) = (
        policy
        for policy in properties("AWS::IAM::Policy")
        if policy["Roles"] == [fleet.role.stack.resolve(fleet.role.role_name)]
    )
    found = policy["PolicyDocument"]["Statement"]
    return lambda action: [
        s for s in found if action in ([s["Action"]] if isinstance(s["Action"], str) else s["Action"])
    ]


def encrypted_bucket(stack: cdk.Stack, name: str) -> s3.IBucket:
    """An existing bucket that the existing key of the same name encrypts."""
    key = kms.Key.from_key_arn(stack, f"{name}Key", f"{KEYS}/{name}")
    return s3.Bucket.from_bucket_attributes(stack, name, bucket_name=name.lower(), encryption_key=key)


def resources_of(statement: dict[str, Any]) -> list[Any]:
    given = statement["Resource"]
    return given if isinstance(given, list) else [given]


def test_nodes_read_the_code_and_the_data_and_checkpoints(
    statements: Callable[[str], list[dict[str, Any]]],
) -> None:
    read = [str(resource) for statement in statements("s3:GetObject") for resource in resources_of(statement)]

    assert [resource.count(".zip") for resource in read] == [1, 0, 0, 0]
    assert [resource.rpartition(":s3:::")[2].rstrip("']}") for resource in read[1:]] == [
        "demo-data/*",
        "demo-checkpoints/jobs/*",
        "demo-checkpoints/code/*",
    ]


def test_nodes_write_nothing_but_checkpoints(statements: Callable[[str], list[dict[str, Any]]]) -> None:
    for action in ("s3:PutObject", "s3:DeleteObject"):
        (statement,) = statements(action)
        (resource,) = resources_of(statement)
        assert "demo-checkpoints/jobs/*" in str(resource)


def test_nodes_report_metrics_of_our_namespace_only(statements: Callable[[str], list[dict[str, Any]]]) -> None:
    (statement,) = statements("cloudwatch:PutMetricData")

    assert statement["Condition"] == {"StringEquals": {"cloudwatch:namespace": "Trainfabric"}}


def test_nodes_read_what_was_deployed_and_no_other_parameter(
    statements: Callable[[str], list[dict[str, Any]]],
) -> None:
    (statement,) = statements("ssm:GetParameter")

    names = [str(resource).rpartition(":parameter")[2].rstrip("'}]") for resource in resources_of(statement)]
    assert names == ["/trainfabric/demo/environment"]


def test_nodes_resize_protect_and_replace_the_nodes_of_their_own_two_groups_and_change_nothing_else_of_them(
    statements: Callable[[str], list[dict[str, Any]]],
) -> None:
    (statement,) = statements("autoscaling:SetDesiredCapacity")

    # None of these raises the largest size or changes what is launched: that takes UpdateAutoScalingGroup.
    assert statement["Action"] == [
        "autoscaling:SetDesiredCapacity",
        "autoscaling:SetInstanceProtection",
        "autoscaling:TerminateInstanceInAutoScalingGroup",
    ]
    groups = [resource["Fn::Join"][1][-1] for resource in resources_of(statement)]
    assert groups == [
        ":autoscaling:us-east-1:123456789012:autoScalingGroup:*:autoScalingGroupName/trainfabric-demo-coordinator",
        ":autoscaling:us-east-1:123456789012:autoScalingGroup:*:autoScalingGroupName/trainfabric-demo-worker",
    ]


def test_nodes_see_groups_because_reading_them_knows_no_resources(
    statements: Callable[[str], list[dict[str, Any]]],
) -> None:
    (statement,) = statements("autoscaling:DescribeAutoScalingGroups")

    assert (statement["Action"], statement["Resource"]) == ("autoscaling:DescribeAutoScalingGroups", "*")


def test_nodes_do_nothing_to_groups_and_instances_by_any_other_way(
    make_fleet: MakeFleet, properties: Callable[[str], list[dict[str, Any]]]
) -> None:
    make_fleet()

    actions = [
        action
        for policy in properties("AWS::IAM::Policy")
        for statement in policy["PolicyDocument"]["Statement"]
        for action in ([statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"])
    ]
    assert [action for action in actions if action.startswith("ec2:")] == []
    assert sorted(action for action in actions if action.startswith("autoscaling:")) == [
        "autoscaling:DescribeAutoScalingGroups",
        "autoscaling:SetDesiredCapacity",
        "autoscaling:SetInstanceProtection",
        "autoscaling:TerminateInstanceInAutoScalingGroup",
    ]


def test_nodes_use_no_keys_while_the_buckets_have_none(statements: Callable[[str], list[dict[str, Any]]]) -> None:
    assert statements("kms:Decrypt") == []


def test_nodes_use_the_keys_of_the_buckets_as_far_as_the_buckets(
    stack: cdk.Stack, make_fleet: MakeFleet, properties: Callable[[str], list[dict[str, Any]]]
) -> None:
    make_fleet(data_bucket=encrypted_bucket(stack, "EncryptedData"), checkpoint_bucket=encrypted_bucket(stack, "State"))

    statements = [s for policy in properties("AWS::IAM::Policy") for s in policy["PolicyDocument"]["Statement"]]
    assert [(s["Action"], s["Resource"]) for s in statements if "kms:Decrypt" in s["Action"]] == [
        ("kms:Decrypt", f"{KEYS}/EncryptedData"),
        (["kms:Decrypt", "kms:GenerateDataKey"], f"{KEYS}/State"),
    ]


def test_people_reach_nodes_through_session_manager_which_opens_no_parameters(
    make_fleet: MakeFleet, resources: Callable[[str], dict[str, Any]]
) -> None:
    fleet = make_fleet()

    id = fleet.role.stack.resolve(fleet.role.role_name)["Ref"]
    assert "ManagedPolicyArns" not in resources("AWS::IAM::Role")[id]["Properties"]
    statements = [
        one
        for policy in resources("AWS::IAM::Policy").values()
        for one in policy["Properties"]["PolicyDocument"]["Statement"]
    ]
    (session,) = (one["Action"] for one in statements if "ssmmessages:OpenDataChannel" in one["Action"])
    assert "ssm:UpdateInstanceInformation" in session
    readers = [one["Resource"] for one in statements if "ssm:GetParameter" in one["Action"]]
    assert ["parameter/trainfabric/demo/environment" in str(one) for one in readers] == [True]


def test_who_may_open_sessions_may_end_and_resume_their_own_whether_user_or_role(
    stack: cdk.Stack, make_fleet: MakeFleet, properties: Callable[[str], list[dict[str, Any]]]
) -> None:
    person = iam.Role(stack, "Person", assumed_by=iam.AccountRootPrincipal())

    make_fleet().grant_session(person)

    (policy,) = (one for one in properties("AWS::IAM::Policy") if one["Roles"] == [stack.resolve(person.role_name)])
    sessions = "arn:aws:ssm:us-east-1:123456789012:session"
    assert [shown(one) for one in policy["PolicyDocument"]["Statement"]] == [
        (
            "ssm:StartSession",
            "arn:aws:ec2:us-east-1:123456789012:instance/*",
            {"StringEquals": {"ssm:resourceTag/trainfabric:environment": "demo"}},
        ),
        ("ssm:StartSession", "arn:aws:ssm:us-east-1:123456789012:document/SSM-SessionManagerRunShell", None),
        (
            ["ssm:TerminateSession", "ssm:ResumeSession"],
            [f"{sessions}/${{aws:username}}-*", f"{sessions}/${{aws:userid}}-*"],
            None,
        ),
        (
            ["ssm:TerminateSession", "ssm:ResumeSession"],
            f"{sessions}/*",
            {"StringEquals": {"ssm:resourceTag/aws:ssmmessages:session-id": "${aws:userid}"}},
        ),
        ("ssmmessages:OpenDataChannel", f"{sessions}/${{aws:userid}}-*", None),
    ]


def shown(statement: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Action, resource with the partition put in, and condition."""
    resources = [plain(one) for one in resources_of(statement)]
    return statement["Action"], resources if len(resources) > 1 else resources[0], statement.get("Condition")


def plain(arn: Any) -> str:
    """An ARN whose partition is a reference."""
    return (
        arn
        if isinstance(arn, str)
        else "".join(part if isinstance(part, str) else "aws" for part in arn["Fn::Join"][1])
    )


def test_of_a_checkpoint_bucket_of_the_app_nodes_use_all_objects(
    stack: cdk.Stack, make_fleet: MakeFleet, properties: Callable[[str], list[dict[str, Any]]]
) -> None:
    fleet = make_fleet(data_bucket=s3.Bucket(stack, "OurData"), checkpoint_bucket=s3.Bucket(stack, "OurSaves"))

    role = stack.resolve(fleet.role.role_name)
    (policy,) = (one for one in properties("AWS::IAM::Policy") if one["Roles"] == [role])
    found = [one for one in policy["PolicyDocument"]["Statement"] if "s3:GetObject" in one["Action"]]
    assert [one["Resource"]["Fn::Join"][1][-1] for one in found[1:]] == ["/*", "/*"]


def test_of_a_checkpoint_bucket_that_exists_nodes_write_what_jobs_write_and_read_their_code(
    statements: Callable[[str], list[dict[str, Any]]],
) -> None:
    *_, code = [one for one in statements("s3:GetObject") if "demo-checkpoints" in str(one["Resource"])]

    assert (code["Action"], "demo-checkpoints/code/*" in str(code["Resource"])) == ("s3:GetObject", True)
