"""A customer key for everything of a training environment, and the grants that its users need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aws_cdk import RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from trainfabric_cdk.properties import checked_types

_USE = ("kms:Encrypt", "kms:Decrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:DescribeKey")
SERVICE_ROLES = (
    "autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling",
    "spot.amazonaws.com/AWSServiceRoleForEC2Spot",
)
"""Who launches nodes with encrypted volumes: without the key they end at once with Client.InternalError.

Source: EC2 Auto Scaling user guide, "Required AWS KMS key policy for use with encrypted volumes"; EC2 user guide,
"Service-linked role for Spot Instance requests"; read 2026-11.
"""

FSX_S3_ROLES = "s3.data-source.lustre.fsx.amazonaws.com/AWSServiceRoleForFSxS3Access_*"
"""FSx makes one such role for each linked file system and uses it to read and write the bucket (FSx for Lustre user
guide, "Working with server-side encrypted Amazon S3 buckets", read 2026-11)."""


def grant_service_roles(key: kms.IKey) -> bool:
    """Let Auto Scaling and Spot launch nodes whose volumes the key encrypts.

    The roles are conditions and no principals: KMS refuses a policy that names a role which the account does not have
    yet, and both come into being with its first Auto Scaling group and spot request.

    Returns:
        Whether the policy is ours to change. It is not for a key that is imported: its owner adds the same statements
        (docs/how-to/use-existing-resources.md).
    """
    base = f"arn:{Stack.of(key).partition}:iam::{Stack.of(key).account}:role/aws-service-role"
    roles = {"ArnEquals": {"aws:PrincipalArn": [f"{base}/{role}" for role in SERVICE_ROLES]}}
    for_resources = {"Bool": {"kms:GrantIsForAWSResource": "true"}}
    statements = [
        _statement("UseForNodes", _USE, roles),
        _statement("GrantForNodes", ("kms:CreateGrant",), {**roles, **for_resources}),
    ]
    added = [key.add_to_resource_policy(statement).statement_added for statement in statements]
    return all(added)


def _statement(sid: str, actions: Sequence[str], conditions: Mapping[str, object]) -> iam.PolicyStatement:
    return iam.PolicyStatement(
        sid=sid, principals=[iam.AnyPrincipal()], actions=list(actions), resources=["*"], conditions=conditions
    )


class TrainingKey(kms.Key):
    """A key for buckets, file systems and nodes' volumes: rotated, kept, and usable by those who launch nodes.

    FSx may use it for the buckets that it links, in the name of its own roles and through S3 only.

    Args:
        scope: Parent construct.
        id: Construct id.
        description: What the key is for.
        retain: Keep the key when the stack is destroyed. What it encrypts can be read by nobody without it; `False`
            schedules its deletion.
    """

    @checked_types()
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        description: str = "Training environments: buckets, file systems and volumes of nodes",
        retain: bool = True,
    ) -> None:
        super().__init__(
            scope,
            id,
            description=description,
            enable_key_rotation=True,
            removal_policy=RemovalPolicy.RETAIN if retain else RemovalPolicy.DESTROY,
        )
        grant_service_roles(self)
        self._grant_fsx()

    def _grant_fsx(self) -> None:
        """The roles carry the ids of file systems that do not exist yet, so that no principal can name them."""
        stack = Stack.of(self)
        role = f"arn:{stack.partition}:iam::{stack.account}:role/aws-service-role/{FSX_S3_ROLES}"
        through_s3 = {"kms:CallerAccount": stack.account, "kms:ViaService": f"s3.{stack.region}.{stack.url_suffix}"}
        conditions = {"ArnLike": {"aws:PrincipalArn": role}, "StringEquals": through_s3}
        self.add_to_resource_policy(_statement("LinkedBuckets", _USE, conditions))
