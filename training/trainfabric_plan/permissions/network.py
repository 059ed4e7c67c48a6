"""What CloudFormation calls for the types of the network.

Source: the CloudFormation registry's handler permissions (schemas of 2026-10-20), without what only concerns properties
that trainfabric never sets; `handlers.LEFT_OUT` says which and why, and a test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from trainfabric_plan.permissions.handlers import Handler

PRIVATE_DNS = "route53:AssociateVPCWithHostedZone"
"""What EC2 does in the name of who makes an interface endpoint with private DNS. Source: IAM service authorization
reference, dependent actions of `ec2:CreateVpcEndpoint` (as iam-floyd has them, read 2026-12-01); the registry lacks
it."""

NETWORK: Mapping[str, Handler] = MappingProxyType(
    {
        "AWS::EC2::EIP": Handler(
            create=("ec2: AllocateAddress AssociateAddress CreateTags DescribeAddresses",),
            update=("ec2: AssociateAddress CreateTags DeleteTags DescribeAddresses DisassociateAddress",),
            delete=("ec2: DescribeAddresses DisassociateAddress ReleaseAddress",),
        ),
        "AWS::EC2::FlowLog": Handler(
            create=(
                "ec2: CreateFlowLogs CreateTags DescribeFlowLogs",
                "iam: CreateServiceLinkedRole PassRole",
                "logs: CreateLogDelivery",
                "s3: GetBucketPolicy PutBucketPolicy",
            ),
            update=("ec2: CreateTags DeleteTags DescribeFlowLogs",),
            delete=("ec2: DeleteFlowLogs DescribeFlowLogs", "logs: DeleteLogDelivery"),
        ),
        "AWS::EC2::InternetGateway": Handler(
            create=("ec2: CreateInternetGateway CreateTags DescribeInternetGateways",),
            update=("ec2: CreateTags DeleteTags DescribeInternetGateways",),
            delete=("ec2: DeleteInternetGateway DescribeInternetGateways",),
        ),
        "AWS::EC2::NatGateway": Handler(
            create=("ec2: CreateNatGateway CreateTags DescribeNatGateways",),
            update=("ec2: CreateTags DeleteTags DescribeNatGateways",),
            delete=("ec2: DeleteNatGateway DescribeNatGateways",),
        ),
        "AWS::EC2::Route": Handler(
            create=("ec2: CreateRoute DescribeNetworkInterfaces DescribeRouteTables",),
            update=("ec2: DescribeNetworkInterfaces DescribeRouteTables ReplaceRoute",),
            delete=("ec2: DeleteRoute DescribeRouteTables",),
        ),
        "AWS::EC2::RouteTable": Handler(
            create=("ec2: CreateRouteTable CreateTags DescribeRouteTables",),
            update=("ec2: CreateTags DeleteTags DescribeRouteTables",),
            delete=("ec2: DeleteRouteTable DescribeRouteTables",),
        ),
        "AWS::EC2::SecurityGroup": Handler(
            create=(
                "ec2: AuthorizeSecurityGroupEgress AuthorizeSecurityGroupIngress CreateSecurityGroup CreateTags",
                "ec2: DescribeSecurityGroups RevokeSecurityGroupEgress",
            ),
            update=(
                "ec2: AuthorizeSecurityGroupEgress AuthorizeSecurityGroupIngress CreateTags DeleteTags",
                "ec2: DescribeSecurityGroups RevokeSecurityGroupEgress RevokeSecurityGroupIngress",
                "ec2: UpdateSecurityGroupRuleDescriptionsEgress UpdateSecurityGroupRuleDescriptionsIngress",
            ),
            delete=("ec2: DeleteSecurityGroup DescribeInstances DescribeSecurityGroups",),
        ),
        "AWS::EC2::SecurityGroupEgress": Handler(
            create=("ec2: AuthorizeSecurityGroupEgress DescribeSecurityGroupRules RevokeSecurityGroupEgress",),
            update=("ec2: UpdateSecurityGroupRuleDescriptionsEgress",),
            delete=("ec2: DescribeSecurityGroupRules RevokeSecurityGroupEgress",),
        ),
        "AWS::EC2::SecurityGroupIngress": Handler(
            create=("ec2: AuthorizeSecurityGroupIngress DescribeSecurityGroupRules DescribeSecurityGroups",),
            update=("ec2: UpdateSecurityGroupRuleDescriptionsIngress",),
            delete=("ec2: DescribeSecurityGroupRules RevokeSecurityGroupIngress",),
        ),
        "AWS::EC2::Subnet": Handler(
            create=("ec2: CreateSubnet CreateTags DescribeNetworkAcls DescribeSubnets ModifySubnetAttribute",),
            update=("ec2: CreateTags DeleteTags DescribeSubnets ModifySubnetAttribute",),
            delete=("ec2: DeleteSubnet DescribeSubnets",),
        ),
        "AWS::EC2::SubnetRouteTableAssociation": Handler(
            create=("ec2: AssociateRouteTable DescribeRouteTables DescribeSubnets ReplaceRouteTableAssociation",),
            delete=("ec2: DescribeRouteTables DescribeSubnets DisassociateRouteTable",),
        ),
        "AWS::EC2::VPC": Handler(
            create=(
                "ec2: CreateTags CreateVpc DescribeNetworkAcls DescribeSecurityGroups DescribeVpcAttribute",
                "ec2: DescribeVpcEncryptionControls DescribeVpcs ModifyVpcAttribute",
            ),
            update=("ec2: CreateTags DeleteTags DescribeVpcAttribute ModifyVpcAttribute",),
            delete=("ec2: DeleteVpc DescribeVpcs",),
        ),
        "AWS::EC2::VPCEndpoint": Handler(
            create=(
                "ec2: CreateTags CreateVpcEndpoint DeleteTags DescribeSecurityGroups DescribeSubnets",
                "ec2: DescribeVpcEndpoints DescribeVpcs",
                f"route53: {PRIVATE_DNS.partition(':')[2]}",
            ),
            update=(
                "ec2: CreateTags DeleteTags DescribeSecurityGroups DescribeSubnets DescribeVpcEndpoints DescribeVpcs",
                "ec2: ModifyVpcEndpoint",
            ),
            delete=(
                "ec2: CreateTags DeleteTags DeleteVpcEndpoints DescribeSecurityGroups DescribeSubnets",
                "ec2: DescribeVpcEndpoints DescribeVpcs",
            ),
        ),
        "AWS::EC2::VPCGatewayAttachment": Handler(
            create=("ec2: AttachInternetGateway DescribeInternetGateways",),
            update=("ec2: AttachInternetGateway DescribeInternetGateways DetachInternetGateway",),
            delete=("ec2: DescribeInternetGateways DetachInternetGateway",),
        ),
        "AWS::Logs::LogGroup": Handler(
            create=(
                "logs: CreateLogGroup DescribeIndexPolicies DescribeLogGroups DescribeResourcePolicies",
                "logs: GetDataProtectionPolicy ListTagsForResource PutRetentionPolicy TagResource",
            ),
            update=(
                "logs: AssociateKmsKey DeleteRetentionPolicy DescribeLogGroups DescribeResourcePolicies",
                "logs: DisassociateKmsKey GetDataProtectionPolicy ListTagsForResource PutRetentionPolicy TagResource",
                "logs: UntagResource",
            ),
            delete=("logs: DeleteLogGroup DescribeLogGroups",),
        ),
    }
)
