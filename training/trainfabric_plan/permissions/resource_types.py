"""Which types of resources an environment is made of.

The command line may not import the constructs, so this says again what the stacks synthesise; a test compares the two
for every environment file and for variants of them.
"""

from __future__ import annotations

from trainfabric_plan.capacity import CAPACITY_RULES, CapacityKind, PlacementRule
from trainfabric_plan.environment import Environment

_SECURITY_GROUPS = {"AWS::EC2::SecurityGroup", "AWS::EC2::SecurityGroupEgress", "AWS::EC2::SecurityGroupIngress"}

_OWN_NETWORK = {
    "AWS::EC2::FlowLog",
    "AWS::EC2::RouteTable",
    "AWS::EC2::Subnet",
    "AWS::EC2::SubnetRouteTableAssociation",
    "AWS::EC2::VPC",
    "AWS::EC2::VPCEndpoint",
    "AWS::IAM::Policy",
    "AWS::IAM::Role",
    "AWS::Logs::LogGroup",
}

_WAY_OUT = {
    "AWS::EC2::EIP",
    "AWS::EC2::InternetGateway",
    "AWS::EC2::NatGateway",
    "AWS::EC2::Route",
    "AWS::EC2::VPCGatewayAttachment",
}
"""Of a network with NAT."""

_FLEET = {
    "AWS::AutoScaling::AutoScalingGroup",
    "AWS::EC2::LaunchTemplate",
    "AWS::Events::Rule",
    "AWS::IAM::InstanceProfile",
    "AWS::IAM::Policy",
    "AWS::IAM::Role",
    "AWS::KMS::Key",
    "AWS::SNS::Topic",
    "AWS::SNS::TopicPolicy",
    "AWS::SQS::Queue",
    "AWS::SQS::QueuePolicy",
    "AWS::SSM::Parameter",
}

_SHARED_HOMES = {
    "efs": {"AWS::EFS::FileSystem", "AWS::EFS::MountTarget"},
    "openzfs": {"AWS::FSx::FileSystem"},
}

PARALLELCLUSTER_PROVIDER = frozenset(
    {
        "AWS::IAM::ManagedPolicy",
        "AWS::IAM::Role",
        "AWS::Lambda::Function",
        "AWS::Lambda::LayerVersion",
        "AWS::Logs::LogGroup",
        "AWS::S3::Bucket",
    }
)
"""What the nested stack of ParallelCluster's custom resource is made of. Source: aws/aws-parallelcluster,
cloudformation/custom_resource/cluster.yaml of 3.13.1 (the newest in reach; 3.16.1 was not), read 2026-11."""


def resource_types(environment: Environment) -> frozenset[str]:
    """CloudFormation types in the stacks of an environment, without those of nested stacks."""
    return frozenset(_network(environment) | _storage(environment) | _nodes(environment) | {_DASHBOARD})


_DASHBOARD = "AWS::CloudWatch::Dashboard"


def _network(environment: Environment) -> set[str]:
    network = environment.network
    if network.vpc_id is None:
        return _SECURITY_GROUPS | _OWN_NETWORK | (_WAY_OUT if network.egress == "nat" else set())
    return _SECURITY_GROUPS | ({"AWS::EC2::VPCEndpoint"} if network.route_table_id else set())


_TIERS = "intelligent_tiering"
"""A file system that grows by itself, so that no alarm tells of its free space."""


def _storage(environment: Environment) -> set[str]:
    storage = environment.storage
    types = set(_SHARED_HOMES.get(storage.shared_home or "", set()))
    if storage.lustre.is_made:
        types |= {"AWS::FSx::FileSystem"} | ({"AWS::FSx::DataRepositoryAssociation"} if storage.links else set())
        types |= {"AWS::CloudWatch::Alarm"} if storage.links or storage.lustre.deployment != _TIERS else set()
    if storage.data_bucket is None or storage.checkpoint_bucket is None:
        types |= {"AWS::S3::Bucket", "AWS::S3::BucketPolicy"}
    return types


def _nodes(environment: Environment) -> set[str]:
    if environment.orchestrator == "parallelcluster":
        return {"AWS::CloudFormation::Stack", "Custom::PclusterCluster"}
    placement = CAPACITY_RULES[CapacityKind(environment.fleet.workers)].placement
    own_group = environment.fleet.efa and placement is PlacementRule.CLUSTER
    return _FLEET | ({"AWS::EC2::PlacementGroup"} if own_group else set())
