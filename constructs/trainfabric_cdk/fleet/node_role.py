"""What a node may do: read its code and data, write its checkpoints, report, and resize and renew its own fleet."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_s3_assets as assets
from constructs import Construct

from trainfabric_cdk.acknowledge import NIST, acknowledge, acknowledge_wildcard, objects_as_seen_from
from trainfabric_cdk.errors import is_known
from trainfabric_cdk.storage import is_imported
from trainfabric_plan import contract
from trainfabric_plan.own_command import ecr_repository

_READ = ("s3:GetObject",)
_WRITE = ("s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload")
_FLEET = (
    "autoscaling:SetDesiredCapacity",
    "autoscaling:SetInstanceProtection",
    "autoscaling:TerminateInstanceInAutoScalingGroup",
)
"""Release a fleet, protect its members, and give a lost one back by its id. Protection from scale-in does not stop the
last (Auto Scaling user guide, "Use instance scale-in protection"), nor health checks and spot interruptions."""
_PULL = ("ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer")
_SESSION_MANAGER = (
    "ssm:UpdateInstanceInformation",
    "ssmmessages:CreateControlChannel",
    "ssmmessages:CreateDataChannel",
    "ssmmessages:OpenControlChannel",
    "ssmmessages:OpenDataChannel",
)
"""Least that Session Manager needs (AWS managed policy reference, AWSCloud9SSMInstanceProfile, whose purpose is that
alone, read 2026-12-01)."""
_DECRYPT = ("kms:Decrypt",)
_ENCRYPT = ("kms:Decrypt", "kms:GenerateDataKey")
"""What S3 does with a bucket's key in the name of who reads or writes (S3 user guide, UsingKMSEncryption)."""

_CHECKPOINTS = ((_WRITE, contract.JOBS_PREFIX), (_READ, contract.CODE_PREFIX))
"""What nodes do in the checkpoint bucket, by prefix."""


class NodeRole(iam.Role):
    """The role of the nodes of one environment; what they are allowed is of no other environment.

    It has what Session Manager needs and no policy of AWS: with AmazonSSMManagedInstanceCore a node could read every
    parameter of the account in its region (`ssm:GetParameter` on `*`). Run Command, Patch Manager and State Manager
    need more; attach that policy to `role` for them.

    Of a checkpoint bucket that exists already they use what jobs write, `jobs/` and `code/`; of one that is made in the
    app all, and of the data bucket they read all, since `job start --data` takes any address in it. They may list the
    names of all objects: without that S3 says of a missing one that it is forbidden. If KMS keys encrypt the buckets,
    the nodes may use them as far as the buckets.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        environment: str,
        asset: assets.Asset,
        data_bucket: s3.IBucket,
        checkpoint_bucket: s3.IBucket,
    ) -> None:
        super().__init__(
            scope,
            id,
            assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"),
            description=f"Nodes of the training environment {environment}",
        )
        acknowledge(self, f"{NIST}-IAMNoInlinePolicy", "It names the resources of this fleet and fits no other role")
        self._allow(_READ, [asset.bucket.arn_for_objects(asset.s3_object_key)])
        self._allow(["s3:ListBucket"], [data_bucket.bucket_arn, checkpoint_bucket.bucket_arn])
        self._allow_objects(_READ, data_bucket, "", "Nodes read all of the training data")
        for actions, prefix in _CHECKPOINTS if is_imported(checkpoint_bucket) else ((_WRITE, ""),):
            reason = "Nodes write and retire checkpoints of every job"
            self._allow_objects(actions, checkpoint_bucket, prefix, reason)
        self._allow_key(_DECRYPT, data_bucket)
        self._allow_key(_ENCRYPT, checkpoint_bucket)
        self._allow(["ssm:GetParameter"], [self._parameter(environment)])
        self._allow_without_resource()

    def allow_fleet(self, group_names: Sequence[str]) -> None:
        """Let the nodes empty these Auto Scaling groups when a job ends, protect members, and replace lost ones by id.

        Within what the template says: none of it raises the largest size, or changes what is launched.
        """
        stack = Stack.of(self)
        arn = f"arn:{stack.partition}:autoscaling:{stack.region}:{stack.account}:autoScalingGroup"
        groups = [f"{arn}:*:autoScalingGroupName/{name}" for name in group_names]
        self._allow(_FLEET, groups)
        for group in groups:
            acknowledge_wildcard(self, group, "AWS chooses the number before the group's name")

    def allow_image(self, image: str) -> None:
        """Let the nodes pull a container image, if it lies in a private repository of ECR; others need no permission.

        The actions are those of a pull (ECR user guide, "Private registry authentication" and the managed policy
        AmazonEC2ContainerRegistryPullOnly, read 2026-11); a repository of another account must allow this role as well.
        """
        found = ecr_repository(image) if is_known(image) else None
        if found is None:
            return
        partition = Stack.of(self).partition
        self._allow(_PULL, [f"arn:{partition}:ecr:{found.region}:{found.account}:repository/{found.name}"])
        self._allow(["ecr:GetAuthorizationToken"], ["*"])

    def _allow(self, actions: Sequence[str], resources: Sequence[str]) -> None:
        self.add_to_policy(iam.PolicyStatement(actions=list(actions), resources=list(resources)))

    def _allow_key(self, actions: Sequence[str], bucket: s3.IBucket) -> None:
        if bucket.encryption_key:
            self._allow(actions, [bucket.encryption_key.key_arn])

    def _allow_objects(self, actions: Sequence[str], bucket: s3.IBucket, prefix: str, reason: str) -> None:
        self._allow(actions, [bucket.arn_for_objects(f"{prefix}*")])
        acknowledge_wildcard(self, objects_as_seen_from(self, bucket, prefix), reason)

    def _parameter(self, environment: str) -> str:
        name = contract.environment_parameter(environment).lstrip("/")
        return Stack.of(self).format_arn(service="ssm", resource="parameter", resource_name=name)

    def _allow_without_resource(self) -> None:
        """Actions that IAM knows no resource for, or that an agent asks of its own instance (service authorization
        reference: CloudWatch, EC2 Auto Scaling, Message Gateway Service)."""
        self.add_to_policy(
            iam.PolicyStatement(
                actions=["cloudwatch:PutMetricData"],
                resources=["*"],
                conditions={"StringEquals": {"cloudwatch:namespace": contract.METRIC_NAMESPACE}},
            )
        )
        self._allow(["autoscaling:DescribeAutoScalingGroups"], ["*"])
        self._allow(_SESSION_MANAGER, ["*"])
        reason = (
            "No resource can be named: PutMetricData is bounded by its namespace, DescribeAutoScalingGroups only "
            "reads, Session Manager's agent acts on its own instance"
        )
        acknowledge_wildcard(self, "*", reason)
