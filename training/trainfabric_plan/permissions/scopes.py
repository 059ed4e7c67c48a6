"""On which resources, and on what conditions, an action of the deploying role is allowed.

Source of what each action can be limited to: IAM service authorization reference, read 2026-11.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from trainfabric_plan.contract import PREFIX, Tag
from trainfabric_plan.environment import Environment
from trainfabric_plan.partitions import partition_of

Condition = Mapping[str, Mapping[str, Any]]

_NAME_KEPT = 24
"""CloudFormation shortens names that it makes from the stack's name where they are too long. How is not documented, so
only the first characters of a stack's name are relied on."""


@dataclass(frozen=True, kw_only=True)
class Scope:
    """The resources and conditions of one statement.

    Attributes:
        sid: Name of the statement.
        resources: ARNs, or `*` where an action can be limited to none.
        condition: IAM conditions.
    """

    sid: str
    resources: tuple[str, ...]
    condition: Condition = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Target:
    """Where an environment is deployed.

    Attributes:
        environment: The environment.
        account: AWS account.
        boundary: ARN of the permissions boundary that every role must have; none if not given.
    """

    environment: Environment
    account: str
    boundary: str | None = None

    @property
    def partition(self) -> str:
        """Partition of the environment's region."""
        return partition_of(self.environment.region)

    @property
    def stacks(self) -> tuple[str, ...]:
        """Names of the environment's stacks."""
        nodes = "Cluster" if self.environment.orchestrator == "parallelcluster" else "Fleet"
        return tuple(f"{self.environment.name}-{part}" for part in ("Network", "Storage", nodes, "Observability"))

    def arn(self, service: str, resource: str, *, region: str | None = None, account: str | None = None) -> str:
        """An ARN in the environment's partition, region and account."""
        place = self.environment.region if region is None else region
        owner = self.account if account is None else account
        return f"arn:{self.partition}:{service}:{place}:{owner}:{resource}"

    def generated(self) -> tuple[str, ...]:
        """Patterns of the names that CloudFormation gives to what the stacks do not name."""
        return tuple(dict.fromkeys(_generated(stack) for stack in self.stacks))

    def principal(self, service: str) -> str:
        """Principal of a service in the environment's partition. EC2's has a suffix in China (EC2 user guide)."""
        suffix = ".cn" if self.partition == "aws-cn" and service == "ec2" else ""
        return f"{service}.amazonaws.com{suffix}"

    @property
    def in_region(self) -> Condition:
        """Requests to the environment's region alone."""
        return {"StringEquals": {"aws:RequestedRegion": self.environment.region}}

    @property
    def of_environment(self) -> Condition:
        """Resources that carry the environment's tag."""
        return {"StringEquals": {f"aws:ResourceTag/{Tag.ENVIRONMENT}": self.environment.name}}


def _generated(stack: str) -> str:
    return f"{stack}-*" if len(stack) <= _NAME_KEPT else f"{stack[:_NAME_KEPT]}*"


def scopes_of(action: str, target: Target) -> tuple[Scope, ...]:
    """Where an action is allowed: in each of these statements."""
    service, _, name = action.partition(":")
    if action in _UNLIMITED:
        return (Scope(sid="InTheRegion", resources=("*",), condition=target.in_region),)
    if name.startswith(("Describe", "List", "Get")) and service not in ("iam", "kms", "s3", "ssm"):
        return (Scope(sid="Read", resources=("*",), condition=target.in_region),)
    if action == "ec2:RunInstances":
        return _launch(target)
    if action in ("iam:AttachRolePolicy", "iam:PutRolePolicy"):
        return _SERVICES[service](name, target), _role_of_lustre(target)
    return (_SERVICES[service](name, target),)


_UNLIMITED = frozenset(
    {
        "elasticfilesystem:CreateFileSystem",
        "kms:CreateKey",
        "kms:ListAliases",
        "logs:CreateLogDelivery",
        "logs:DeleteLogDelivery",
        "sns:SetSubscriptionAttributes",
        "sns:Unsubscribe",
    }
)
"""Actions that the reference limits to no resource."""


def _launch(target: Target) -> tuple[Scope, Scope]:
    """EC2 Auto Scaling asks whether who makes a group may launch what its template says (Auto Scaling user guide)."""
    fleet = target.environment.fleet
    types = sorted({fleet.instance_type, *([fleet.control_instance_type] if fleet.coordinator == "control" else [])})
    instances = Scope(
        sid="LaunchTypes",
        resources=(target.arn("ec2", "instance/*"),),
        condition={"StringEquals": {"ec2:InstanceType": types}},
    )
    others = tuple(target.arn("ec2", f"{kind}/*") for kind in _LAUNCHED_WITH)
    images = tuple(target.arn("ec2", f"{kind}/*", account="") for kind in ("image", "snapshot"))
    groups = (target.arn("resource-groups", "group/*"),) if fleet.reservation else ()
    return instances, Scope(sid="LaunchWith", resources=(*others, *images, *groups))


_LAUNCHED_WITH = (
    "capacity-reservation",
    "launch-template",
    "network-interface",
    "placement-group",
    "security-group",
    "subnet",
    "volume",
)


_REMOVED_UNTAGGED = ("DeleteNetworkInterface", "DeleteTags")
"""The interface of a mount target is made by EFS and carries no tag of ours."""


def _ec2(name: str, target: Target) -> Scope:
    everything = target.arn("ec2", "*/*")
    if name == "ReleaseAddress" or (name.startswith("Delete") and name not in _REMOVED_UNTAGGED):
        return Scope(sid="RemoveOfEnvironment", resources=(everything,), condition=target.of_environment)
    return Scope(sid="MakeInEc2", resources=(everything,))


def _iam(name: str, target: Target) -> Scope:
    roles = _iam_arns("role", target)
    if name == "PassRole":
        services = sorted(target.principal(one) for one in _roles_are_passed_to(target.environment))
        return Scope(sid="PassRoles", resources=roles, condition={"StringEquals": {"iam:PassedToService": services}})
    if name == "CreateServiceLinkedRole":
        return _service_linked_roles(target)
    if "InstanceProfile" in name:
        return Scope(sid="InstanceProfiles", resources=_iam_arns("instance-profile", target))
    if "Polic" in name and "Role" not in name:
        return Scope(sid="ManagedPolicies", resources=_iam_arns("policy", target))
    if name in _BOUNDED and target.boundary:
        condition = {"StringEquals": {"iam:PermissionsBoundary": target.boundary}}
        return Scope(sid="BoundedRoles", resources=roles, condition=condition)
    return Scope(sid="Roles", resources=roles)


def _iam_arns(kind: str, target: Target) -> tuple[str, ...]:
    return tuple(target.arn("iam", f"{kind}/{one}", region="") for one in target.generated())


_BOUNDED = frozenset({"AttachRolePolicy", "CreateRole", "PutRolePermissionsBoundary", "PutRolePolicy"})
"""What widens a role: only on roles with the boundary, if there is one."""


def _roles_are_passed_to(environment: Environment) -> set[str]:
    if environment.orchestrator == "parallelcluster":
        return {"lambda", "vpc-flow-logs"}
    return {"ec2", "vpc-flow-logs"}


LUSTRE_S3 = "s3.data-source.lustre.fsx.amazonaws.com"
"""Service whose role, one for each file system, lets FSx use a linked bucket (FSx for Lustre user guide)."""


def service_linked_roles(environment: Environment) -> dict[str, str]:
    """Service → name of its service-linked role (FSx's ends in the file system's id) that an environment needs.

    Sources: Using service-linked roles, in the user guides of EC2 Auto Scaling, EC2 (Spot), FSx for Lustre and EFS,
    read 2026-11.
    """
    roles = {"fsx.amazonaws.com": "AWSServiceRoleForAmazonFSx", LUSTRE_S3: "AWSServiceRoleForFSxS3Access_"}
    if environment.orchestrator == "fleet":
        roles["autoscaling.amazonaws.com"] = "AWSServiceRoleForAutoScaling"
    if environment.fleet.workers == "spot":
        roles["spot.amazonaws.com"] = "AWSServiceRoleForEC2Spot"
    if environment.storage.shared_home == "efs":
        roles["elasticfilesystem.amazonaws.com"] = "AWSServiceRoleForAmazonElasticFileSystem"
    return roles


def _role_of_lustre(target: Target) -> Scope:
    return Scope(sid="RoleOfLustre", resources=(target.arn("iam", f"role/aws-service-role/{LUSTRE_S3}/*", region=""),))


def _service_linked_roles(target: Target) -> Scope:
    roles = service_linked_roles(target.environment)
    resources = (target.arn("iam", f"role/aws-service-role/{one}/*", region="") for one in sorted(roles))
    condition = {"StringEquals": {"iam:AWSServiceName": sorted(roles)}}
    return Scope(sid="ServiceLinkedRoles", resources=tuple(resources), condition=condition)


def _s3(name: str, target: Target) -> Scope:
    if name.startswith("GetObject"):
        bucket = f"{target.environment.region}-aws-parallelcluster"
        return Scope(sid="ParallelClusterRelease", resources=(target.arn("s3", f"{bucket}/*", region="", account=""),))
    names = [one.lower() for one in target.generated()]
    if name.startswith("DeleteBucket") and target.environment.storage.retain:
        # Of ParallelCluster's provider, which has a bucket of its own.
        return Scope(sid="RemoveBuckets", resources=_buckets([one for one in names if "-cluster" in one], target))
    if name in ("GetBucketPolicy", "ListBucket", "PutBucketPolicy"):
        linked = sorted(linked_buckets(target.environment))
        return Scope(sid="LinkedBuckets", resources=_buckets([*names, *linked], target))
    return Scope(sid="Buckets", resources=_buckets(names, target))


def _buckets(names: list[str], target: Target) -> tuple[str, ...]:
    return tuple(target.arn("s3", one, region="", account="") for one in names)


def linked_buckets(environment: Environment) -> set[str]:
    """Names of the given buckets that are linked with the file system."""
    storage = environment.storage
    given = {link.bucket.name for link in storage.lustre.links or () if link.bucket}
    return given | ({storage.data_bucket.name} if storage.data_bucket else set())


def _kms(name: str, target: Target) -> Scope:
    given = target.environment.storage.kms_key_arn
    keys = target.arn("kms", "key/*")
    if name in ("CreateGrant", "Decrypt", "GenerateDataKey", "GenerateDataKeyWithoutPlaintext"):
        return Scope(sid="UseKey", resources=(given or keys,), condition={} if given else target.of_environment)
    if name == "ScheduleKeyDeletion":
        return Scope(sid="RemoveKeys", resources=(keys,), condition=target.of_environment)
    return Scope(sid="Keys", resources=(keys, target.arn("kms", "alias/*")))


def _route53(_: str, target: Target) -> Scope:
    """Zones of AWS's own services, whose ids nobody knows; Route 53 asks for the VPC as well."""
    zones = target.arn("route53", "hostedzone/*", region="", account="")
    return Scope(sid="PrivateNames", resources=(zones, target.arn("ec2", "vpc/*")))


def _named(sid: str, service: str, before: str = "", *own: str) -> Callable[[str, Target], Scope]:
    """A scope of names: those that CloudFormation makes, after `before`, and `own` ones of a cluster."""

    def scope(_: str, target: Target) -> Scope:
        made = [target.arn(service, f"{before}{one}") for one in target.generated()]
        provider = target.environment.orchestrator == "parallelcluster"
        return Scope(sid=sid, resources=(*made, *(target.arn(service, one) for one in own if provider)))

    return scope


def _ours(sid: str, service: str, *patterns: str) -> Callable[[str, Target], Scope]:
    """A scope of names and ids of our own alone."""

    def scope(_: str, target: Target) -> Scope:
        names = (one.format(name=target.environment.name) for one in patterns)
        return Scope(sid=sid, resources=tuple(target.arn(service, one) for one in names))

    return scope


def _cloudformation(name: str, target: Target) -> Scope:
    if name == "CreateChangeSet":
        transform = target.arn("cloudformation", "transform/Serverless-2016-10-31", account="aws")
        return Scope(sid="ParallelClusterTransform", resources=(transform,))
    return _named("NestedStacks", "cloudformation", "stack/")(name, target)


def _cloudwatch(name: str, target: Target) -> Scope:
    dashboard = target.arn("cloudwatch", f"dashboard/{PREFIX}-{target.environment.name}", region="")
    alarms = tuple(target.arn("cloudwatch", f"alarm:{one}") for one in target.generated())
    return Scope(sid="DashboardAndAlarms", resources=(dashboard, *alarms))


def _ssm(name: str, target: Target) -> Scope:
    own = target.arn("ssm", f"parameter/{PREFIX}/{target.environment.name}/*")
    if name == "GetParameters":
        public = target.arn("ssm", "parameter/aws/service/*", account="")
        return Scope(sid="ReadParameters", resources=(own, public))
    return Scope(sid="Parameters", resources=(own,))


_SERVICES: Mapping[str, Callable[[str, Target], Scope]] = {
    "autoscaling": _ours(
        "Groups",
        "autoscaling",
        f"autoScalingGroup:*:autoScalingGroupName/{PREFIX}-{{name}}-coordinator",
        f"autoScalingGroup:*:autoScalingGroupName/{PREFIX}-{{name}}-worker*",
    ),
    "cloudformation": _cloudformation,
    "cloudwatch": _cloudwatch,
    "ec2": _ec2,
    "elasticfilesystem": _ours("SharedHome", "elasticfilesystem", "file-system/*"),
    "events": _named("Rules", "events", "rule/"),
    "fsx": _ours("FileSystems", "fsx", "file-system/*", "association/*", "volume/*"),
    "iam": _iam,
    "kms": _kms,
    "lambda": _named("ParallelClusterProvider", "lambda", "function:", "function:pcluster-cfn-*", "layer:PCLayer-*"),
    "logs": _named("Logs", "logs", "log-group:", "log-group:/aws/lambda/pcluster-cfn-*"),
    "route53": _route53,
    "s3": _s3,
    "sns": _named("Topics", "sns"),
    "sqs": _named("Queues", "sqs"),
    "ssm": _ssm,
}
