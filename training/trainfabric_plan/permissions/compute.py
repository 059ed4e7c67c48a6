"""What CloudFormation calls for nodes, roles, notices and what people see of them.

Source: the CloudFormation registry's handler permissions (schemas of 2026-10-20), without what only concerns properties
that trainfabric never sets; `handlers.LEFT_OUT` says which and why, and a test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from trainfabric_plan.permissions.handlers import Handler

COMPUTE: Mapping[str, Handler] = MappingProxyType(
    {
        "AWS::AutoScaling::AutoScalingGroup": Handler(
            create=(
                "autoscaling: CreateAutoScalingGroup CreateOrUpdateTags DescribeAutoScalingGroups",
                "autoscaling: DescribeLifecycleHooks DescribeNotificationConfigurations DescribeScalingActivities",
                "autoscaling: EnableMetricsCollection SuspendProcesses UpdateAutoScalingGroup",
                "ec2: DescribeAvailabilityZones DescribeCapacityReservations DescribeImages DescribeInstanceTypes",
                "ec2: DescribeInstances DescribeLaunchTemplateVersions DescribeLaunchTemplates DescribePlacementGroups",
                "ec2: DescribeSecurityGroups DescribeSubnets DescribeVpcs RunInstances",
                "iam: CreateServiceLinkedRole PassRole",
                "ssm: GetParameters",
            ),
            update=(
                "autoscaling: CreateOrUpdateTags DeleteLifecycleHook DeleteTags DisableMetricsCollection",
                "autoscaling: EnableMetricsCollection PutLifecycleHook ResumeProcesses SuspendProcesses",
                "autoscaling: UpdateAutoScalingGroup",
                "ec2: RunInstances",
                "iam: CreateServiceLinkedRole PassRole",
            ),
            delete=("autoscaling: DeleteAutoScalingGroup UpdateAutoScalingGroup",),
        ),
        "AWS::AutoScaling::LifecycleHook": Handler(
            create=("autoscaling: DescribeLifecycleHooks PutLifecycleHook", "iam: PassRole"),
            update=("autoscaling: DescribeLifecycleHooks PutLifecycleHook", "iam: PassRole"),
            delete=("autoscaling: DeleteLifecycleHook DescribeLifecycleHooks",),
        ),
        "AWS::CloudFormation::Stack": Handler(
            create=("cloudformation: CreateStack DescribeStacks GetStackPolicy GetTemplate", "iam: PassRole"),
            update=(
                "cloudformation: DescribeStacks SetStackPolicy UpdateStack UpdateTerminationProtection",
                "iam: PassRole",
            ),
            delete=("cloudformation: DeleteStack DescribeStacks",),
        ),
        "AWS::CloudWatch::Alarm": Handler(
            create=("cloudwatch: DescribeAlarms ListTagsForResource PutMetricAlarm TagResource",),
            update=("cloudwatch: DescribeAlarms ListTagsForResource PutMetricAlarm TagResource UntagResource",),
            delete=("cloudwatch: DeleteAlarms DescribeAlarms",),
        ),
        "AWS::CloudWatch::Dashboard": Handler(
            create=("cloudwatch: GetDashboard ListTagsForResource PutDashboard TagResource",),
            update=("cloudwatch: ListTagsForResource PutDashboard TagResource UntagResource",),
            delete=("cloudwatch: DeleteDashboards GetDashboard",),
        ),
        "AWS::EC2::LaunchTemplate": Handler(
            create=("ec2: CreateLaunchTemplate CreateTags DescribeLaunchTemplates",),
            update=("ec2: CreateLaunchTemplateVersion CreateTags DeleteTags",),
            delete=("ec2: DeleteLaunchTemplate DeleteTags DescribeLaunchTemplates",),
        ),
        "AWS::EC2::PlacementGroup": Handler(
            create=("ec2: CreatePlacementGroup CreateTags DescribePlacementGroups",),
            update=("ec2: CreateTags",),
            delete=("ec2: DeletePlacementGroup DescribePlacementGroups",),
        ),
        "AWS::Events::Rule": Handler(
            create=(
                "iam: PassRole",
                "events: DescribeRule ListTagsForResource ListTargetsByRule PutRule PutTargets TagResource",
            ),
            update=(
                "iam: PassRole",
                "events: DescribeRule ListTagsForResource PutRule PutTargets RemoveTargets TagResource UntagResource",
            ),
            delete=("iam: PassRole", "events: DeleteRule DescribeRule ListTargetsByRule RemoveTargets"),
        ),
        "AWS::IAM::InstanceProfile": Handler(
            create=("iam: AddRoleToInstanceProfile CreateInstanceProfile GetInstanceProfile PassRole",),
            update=("iam: AddRoleToInstanceProfile GetInstanceProfile PassRole RemoveRoleFromInstanceProfile",),
            delete=("iam: DeleteInstanceProfile GetInstanceProfile RemoveRoleFromInstanceProfile",),
        ),
        "AWS::IAM::Policy": Handler(
            create=("iam: GetRolePolicy PutRolePolicy",),
            update=("iam: DeleteRolePolicy PutRolePolicy",),
            delete=("iam: DeleteRolePolicy",),
        ),
        "AWS::IAM::Role": Handler(
            create=(
                "iam: AttachRolePolicy CreateRole GetRole GetRolePolicy ListAttachedRolePolicies ListRolePolicies",
                "iam: PutRolePolicy TagRole UntagRole",
            ),
            update=(
                "iam: AttachRolePolicy DeleteRolePermissionsBoundary DeleteRolePolicy DetachRolePolicy ListRoleTags",
                "iam: PutRolePermissionsBoundary PutRolePolicy TagRole UntagRole UpdateAssumeRolePolicy UpdateRole",
                "iam: UpdateRoleDescription",
            ),
            delete=(
                "iam: DeleteRole DeleteRolePolicy DetachRolePolicy GetRole ListAttachedRolePolicies ListRolePolicies",
                "iam: TagRole UntagRole",
            ),
        ),
        "AWS::KMS::Key": Handler(
            create=(
                "kms: CreateKey DescribeKey DisableKey EnableKeyRotation GetKeyPolicy GetKeyRotationStatus",
                "kms: ListResourceTags PutKeyPolicy TagResource",
            ),
            update=(
                "kms: DescribeKey DisableKey DisableKeyRotation EnableKey EnableKeyRotation ListResourceTags",
                "kms: PutKeyPolicy TagResource UntagResource UpdateKeyDescription",
            ),
            delete=("kms: DescribeKey ScheduleKeyDeletion",),
        ),
        "AWS::KMS::Alias": Handler(
            create=("kms: CreateAlias ListAliases",),
            update=("kms: UpdateAlias",),
            delete=("kms: DeleteAlias",),
        ),
        "AWS::SNS::Topic": Handler(
            create=(
                "sns: CreateTopic GetDataProtectionPolicy GetTopicAttributes ListSubscriptionsByTopic",
                "sns: ListTagsForResource Subscribe TagResource",
                "iam: GetRole PassRole",
            ),
            update=(
                "sns: GetDataProtectionPolicy GetTopicAttributes ListSubscriptionsByTopic ListTagsForResource",
                "sns: SetTopicAttributes Subscribe TagResource Unsubscribe UntagResource",
                "iam: GetRole PassRole",
            ),
            delete=("sns: DeleteTopic GetTopicAttributes",),
        ),
        "AWS::SNS::TopicPolicy": Handler(
            create=("sns: SetTopicAttributes",),
            update=("sns: SetTopicAttributes",),
            delete=("sns: SetTopicAttributes",),
        ),
        "AWS::SNS::Subscription": Handler(
            create=("iam: GetRole PassRole", "sns: GetSubscriptionAttributes Subscribe"),
            update=("iam: GetRole PassRole", "sns: SetSubscriptionAttributes"),
            delete=("sns: GetSubscriptionAttributes Unsubscribe",),
        ),
        "AWS::SQS::Queue": Handler(
            create=("sqs: CreateQueue GetQueueAttributes GetQueueUrl ListQueueTags TagQueue",),
            update=("sqs: GetQueueAttributes ListQueueTags SetQueueAttributes TagQueue UntagQueue",),
            delete=("sqs: DeleteQueue GetQueueAttributes",),
        ),
        "AWS::SQS::QueuePolicy": Handler(
            create=("sqs: SetQueueAttributes",),
            update=("sqs: SetQueueAttributes",),
            delete=("sqs: SetQueueAttributes",),
        ),
        "AWS::SSM::Parameter": Handler(
            create=("ssm: AddTagsToResource GetParameters ListTagsForResource PutParameter",),
            update=("ssm: AddTagsToResource GetParameters ListTagsForResource PutParameter RemoveTagsFromResource",),
            delete=("ssm: DeleteParameter",),
        ),
        "AWS::Lambda::Function": Handler(
            create=(
                "lambda: CreateFunction GetFunction GetLayerVersion PutFunctionConcurrency TagResource",
                "iam: PassRole",
                "s3: GetObject GetObjectVersion",
                "ec2: DescribeSecurityGroups DescribeSubnets DescribeVpcs",
                "elasticfilesystem: DescribeMountTargets",
                "kms: CreateGrant Decrypt DescribeKey GenerateDataKey",
            ),
            update=(
                "lambda: DeleteFunctionConcurrency GetFunction ListTags PublishVersion PutFunctionConcurrency",
                "lambda: TagResource UntagResource UpdateFunctionCode UpdateFunctionConfiguration",
                "iam: PassRole",
                "s3: GetObject GetObjectVersion",
                "ec2: DescribeSecurityGroups DescribeSubnets DescribeVpcs",
                "elasticfilesystem: DescribeMountTargets",
                "kms: CreateGrant Decrypt DescribeKey GenerateDataKey",
            ),
            delete=("lambda: DeleteFunction GetFunction", "ec2: DescribeNetworkInterfaces"),
        ),
        "AWS::Lambda::LayerVersion": Handler(
            create=("lambda: GetLayerVersion PublishLayerVersion", "s3: GetObject GetObjectVersion"),
            delete=("lambda: DeleteLayerVersion GetLayerVersion",),
        ),
        "AWS::IAM::ManagedPolicy": Handler(
            create=("iam: AttachRolePolicy CreatePolicy GetPolicy GetPolicyVersion ListEntitiesForPolicy",),
            update=(
                "iam: AttachRolePolicy CreatePolicyVersion DeletePolicyVersion DetachRolePolicy GetPolicy",
                "iam: ListPolicyVersions",
            ),
            delete=(
                "iam: DeletePolicy DeletePolicyVersion DetachRolePolicy GetPolicy ListEntitiesForPolicy",
                "iam: ListPolicyVersions",
            ),
        ),
    }
)
