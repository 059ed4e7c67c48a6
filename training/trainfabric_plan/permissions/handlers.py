"""What CloudFormation calls on behalf of whoever deploys, as IAM actions of each resource type.

A handler is written as lines of `service: Action Action …`, an operation at a time. `LEFT_OUT` and `NAMED` say where
the tables differ from the CloudFormation registry; `tests/plan/test_permissions.py` holds the tables against it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, kw_only=True)
class Handler:
    """IAM actions that CloudFormation needs to make, change and remove resources of one type.

    Attributes:
        create: Lines of `service: Action …` to make one and to read it back.
        update: Lines to change one in place, its tags among it.
        delete: Lines to remove one.
    """

    create: tuple[str, ...]
    update: tuple[str, ...] = ()
    delete: tuple[str, ...] = ()

    def actions(self, *, deletes: bool = True) -> frozenset[str]:
        """All of its actions, such as `ec2:CreateVpc`; without `deletes` those of removal alone are not among them."""
        lines = self.create + self.update + (self.delete if deletes else ())
        return frozenset(action for line in lines for action in _actions(line))


def _actions(line: str) -> Iterator[str]:
    service, _, names = line.partition(":")
    return (f"{service}:{name}" for name in names.split())


_OFF = "a property that trainfabric never sets"
_NO_ACTION = "in the registry, but no action of the IAM service authorization reference (read 2026-11)"

LEFT_OUT: Mapping[str, str] = MappingProxyType(
    {
        "managed-fleets:*": _NO_ACTION,
        "s3:REST.PUT.OBJECT": _NO_ACTION,
        "s3:DeleteBucket[!P]*": f"{_NO_ACTION}, or {_OFF}",
        "s3:PutBucketReplication": _NO_ACTION,
        "s3:PutObjectLockConfiguration": _NO_ACTION,
        "vpc-lattice:*": _OFF,
        "vpce:AllowMultiRegion": _OFF,
        "elasticloadbalancing:*": _OFF,
        "firehose:*": _OFF,
        "s3files:*": _OFF,
        "s3tables:*": _OFF,
        "autoscaling:*LoadBalancer*": _OFF,
        "autoscaling:*TrafficSources": _OFF,
        "autoscaling:*InstanceRefresh": _OFF,
        "autoscaling:*NotificationConfiguration": _OFF,
        "autoscaling:DescribeTags": "of flow logs to an Auto Scaling group, which there are none of",
        "cloudwatch:PutMetricAlarm@AWS::AutoScaling::AutoScalingGroup": "of target tracking, which no group has",
        "ec2:*VpnGateway*": _OFF,
        "ec2:*PrivateNatGatewayAddress": _OFF,
        "ec2:*AssociateNatGatewayAddress": _OFF,
        "ec2:DisassociateNatGatewayAddress": _OFF,
        "ec2:AcceptAddressTransfer": _OFF,
        "ec2:CreateVpcEncryptionControl": _OFF,
        "ec2:ModifyVpcTenancy": _OFF,
        "ec2:*SubnetCidrBlock": _OFF,
        "ec2:DescribeTags": "the handlers read tags with the resource",
        "s3:[!G]*MetadataTable*": _OFF,
        "s3:UpdateBucketMetadata*": _OFF,
        "s3:PutAccelerateConfiguration": _OFF,
        "s3:PutAnalyticsConfiguration": _OFF,
        "s3:PutBucketAbac": _OFF,
        "s3:PutBucketAcl": _OFF,
        "s3:PutBucketCORS": _OFF,
        "s3:PutBucketNotification": _OFF,
        "s3:PutBucketObjectLockConfiguration": _OFF,
        "s3:PutBucketWebsite": _OFF,
        "s3:PutIntelligentTieringConfiguration": _OFF,
        "s3:PutInventoryConfiguration": _OFF,
        "s3:PutMetricsConfiguration": _OFF,
        "s3:PutObjectAcl": _OFF,
        "s3:PutReplicationConfiguration": _OFF,
        "s3:DeleteObject": "CloudFormation deletes no objects: a bucket that is not empty stays",
        "logs:PutDataProtectionPolicy": _OFF,
        "logs:DeleteDataProtectionPolicy": _OFF,
        "logs:PutIndexPolicy": _OFF,
        "logs:DeleteIndexPolicy": _OFF,
        "logs:PutBearerTokenAuthentication": _OFF,
        "logs:PutResourcePolicy": _OFF,
        "logs:DeleteResourcePolicy": _OFF,
        "logs:PutLogGroupDeletionProtection": _OFF,
        "logs:CreateLogDelivery@AWS::Logs::LogGroup": _OFF,
        "iam:*UserPolicy": "policies are of roles",
        "iam:*GroupPolicy": "policies are of roles",
        "elasticfilesystem:CreateReplicationConfiguration": _OFF,
        "elasticfilesystem:DeleteReplicationConfiguration": _OFF,
        "fsx:CreateVolumeFromBackup": _OFF,
        "kms:Encrypt": _OFF,
        "lambda:*CodeSigning*": _OFF,
        "lambda:*FunctionScalingConfig": _OFF,
        "lambda:*RecursionConfig": _OFF,
        "lambda:*RuntimeManagementConfig": _OFF,
        "lambda:AssociateRuntimeAlias": _OFF,
        "lambda:PassCapacityProvider": _OFF,
        "sns:PutDataProtectionPolicy": _OFF,
    }
)
"""Pattern of actions (with `@type`, of that type alone) → why the tables lack what the registry lists."""

NAMED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "autoscaling:Describe*": (
            "autoscaling:DescribeAutoScalingGroups",
            "autoscaling:DescribeLifecycleHooks",
            "autoscaling:DescribeNotificationConfigurations",
            "autoscaling:DescribeScalingActivities",
        ),
        "ec2:Describe*": (
            "ec2:DescribeAvailabilityZones",
            "ec2:DescribeCapacityReservations",
            "ec2:DescribeImages",
            "ec2:DescribeInstanceTypes",
            "ec2:DescribeInstances",
            "ec2:DescribeLaunchTemplateVersions",
            "ec2:DescribeLaunchTemplates",
            "ec2:DescribePlacementGroups",
            "ec2:DescribeSecurityGroups",
            "ec2:DescribeSubnets",
            "ec2:DescribeVpcs",
        ),
        "ec2:Get*": (),
        "ssm:Get*": ("ssm:GetParameters",),
    }
)
"""What stands for a wildcard of the registry: what a launch from a template with an image parameter reads. Which of the
actions EC2 Auto Scaling really calls is not documented; none of them changes anything."""
