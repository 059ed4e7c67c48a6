"""What a node may do: read its code and data, write its checkpoints, report, and scale its own fleet down."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_s3_assets as assets
from constructs import Construct

from trainfabric_cdk.acknowledge import acknowledge
from trainfabric_plan import contract


class NodeRole(iam.Role):
    """The role of the nodes of one environment, with nothing that another environment's nodes could use."""

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
            managed_policies=[iam.ManagedPolicy.from_aws_managed_policy_name("AmazonSSMManagedInstanceCore")],
        )
        acknowledge(
            self,
            f"AwsSolutions-IAM4[Policy::arn:{Stack.of(self).partition}:iam::aws:policy/AmazonSSMManagedInstanceCore]",
            "Session Manager instead of SSH keys and open ports; AWS keeps its policy up to date",
        )
        self._allow(["s3:GetObject"], [asset.bucket.arn_for_objects(asset.s3_object_key)])
        self._allow(["s3:ListBucket"], [data_bucket.bucket_arn, checkpoint_bucket.bucket_arn])
        self._allow(["s3:GetObject"], [data_bucket.arn_for_objects("*")])
        self._allow(
            ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"],
            [checkpoint_bucket.arn_for_objects("*")],
        )
        self._allow(["ssm:GetParameter"], self._parameters(environment))
        self._allow_metrics()

    def allow_scaling(self, group_names: Sequence[str]) -> None:
        """Let the coordinator scale these Auto Scaling groups: to zero when its job ends, so that nobody is billed."""
        stack = Stack.of(self)
        groups = [
            f"arn:{stack.partition}:autoscaling:{stack.region}:{stack.account}:autoScalingGroup:*:autoScalingGroupName/{name}"
            for name in group_names
        ]
        self._allow(["autoscaling:SetDesiredCapacity", "autoscaling:UpdateAutoScalingGroup"], groups)

    def _allow(self, actions: Sequence[str], resources: Sequence[str]) -> None:
        self.add_to_policy(iam.PolicyStatement(actions=list(actions), resources=list(resources)))

    def _parameters(self, environment: str) -> list[str]:
        names = (contract.environment_parameter(environment), contract.plan_parameter(environment))
        return [
            Stack.of(self).format_arn(service="ssm", resource="parameter", resource_name=name.lstrip("/"))
            for name in names
        ]

    def _allow_metrics(self) -> None:
        self.add_to_policy(
            iam.PolicyStatement(
                actions=["cloudwatch:PutMetricData"],
                resources=["*"],  # The action knows no resources; the namespace is its only bound.
                conditions={"StringEquals": {"cloudwatch:namespace": contract.METRIC_NAMESPACE}},
            )
        )
