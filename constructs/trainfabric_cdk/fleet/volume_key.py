"""A customer key for the nodes' volumes, and who must be able to use it."""

from __future__ import annotations

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import IConstruct

_USE = ("kms:Encrypt", "kms:Decrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:DescribeKey")
_ROLES = ("autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling", "spot.amazonaws.com/AWSServiceRoleForEC2Spot")


def let_services_launch(scope: IConstruct, key: kms.IKey) -> None:
    """Let Auto Scaling's and Spot's service-linked roles launch nodes whose volumes the key encrypts.

    Without it a group launches nodes that end at once (Auto Scaling user guide, key-policy-requirements-EBS-encryption,
    read 2026-11-30). The roles are conditions and no principals: KMS refuses a policy that names a role which the
    account does not have yet. The policy of a key that exists already stays as it is; its owner adds the same.
    """
    stack = Stack.of(scope)
    arns = [f"arn:{stack.partition}:iam::{stack.account}:role/aws-service-role/{role}" for role in _ROLES]
    roles = {"aws:PrincipalArn": arns}
    key.add_to_resource_policy(_statement("UseForNodes", _USE, {"ArnEquals": roles}))
    for_resources = {"kms:GrantIsForAWSResource": "true"}
    key.add_to_resource_policy(
        _statement("GrantForNodes", ("kms:CreateGrant",), {"ArnEquals": roles, "Bool": for_resources})
    )


def _statement(sid: str, actions: tuple[str, ...], conditions: dict[str, object]) -> iam.PolicyStatement:
    return iam.PolicyStatement(
        sid=sid,
        principals=[iam.AnyPrincipal()],
        actions=list(actions),
        resources=["*"],
        conditions=conditions,
    )
