"""The ways to AWS services that need no NAT gateway."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from aws_cdk import Annotations, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct, IConstruct

from trainfabric_plan.node_calls import NodeCalls


def s3_gateway_endpoint(scope: Construct, *, vpc: ec2.IVpc, subnets: Sequence[ec2.ISubnet]) -> ec2.CfnVPCEndpoint:
    """S3 without NAT for these subnets: the gateway endpoint is free, NAT bills every gigabyte of a checkpoint."""
    return ec2.CfnVPCEndpoint(
        scope,
        "S3Endpoint",
        vpc_id=vpc.vpc_id,
        vpc_endpoint_type="Gateway",
        service_name=f"com.amazonaws.{Stack.of(scope).region}.s3",
        route_table_ids=[subnet.route_table.route_table_id for subnet in subnets],
    )


def interface_endpoints(
    scope: Construct, *, vpc: ec2.IVpc, cidr: str, subnet: ec2.ISubnet, calls: Iterable[NodeCalls]
) -> list[ec2.InterfaceVpcEndpoint]:
    """An endpoint for each service that nodes call, with its private name, so that nothing on a node is configured.

    They share a security group that takes HTTPS from the range of the VPC and nothing else. What a service is asked
    for through its endpoint is what nodes call, by principals of this account.
    """
    group = ec2.SecurityGroup(
        scope,
        "EndpointSecurityGroup",
        vpc=vpc,
        description="Endpoints of AWS services: HTTPS from this VPC",
        allow_all_outbound=False,
    )
    group.add_ingress_rule(ec2.Peer.ipv4(cidr), ec2.Port.tcp(443), "HTTPS from this VPC")
    made = []
    for call in calls:
        endpoint = ec2.InterfaceVpcEndpoint(
            scope,
            f"{_id(call)}Endpoint",
            vpc=vpc,
            service=ec2.InterfaceVpcEndpointAwsService(str(call.endpoint)),
            subnets=ec2.SubnetSelection(subnets=[subnet]),
            security_groups=[group],
            private_dns_enabled=True,
            open=False,
        )
        endpoint.add_to_policy(_policy(scope, call))
        made.append(endpoint)
    return made


def _id(call: NodeCalls) -> str:
    return "".join(part.capitalize() for part in str(call.endpoint).split("."))


def _policy(scope: Construct, call: NodeCalls) -> iam.PolicyStatement:
    return iam.PolicyStatement(
        principals=[iam.AnyPrincipal()],
        actions=[f"{call.service}:{action}" for action in call.actions or ("*",)],
        resources=["*"],
        conditions={"StringEquals": {"aws:PrincipalAccount": Stack.of(scope).account}},
    )


def warn_of_no_s3_endpoint(scope: IConstruct, *, vpc: ec2.IVpc) -> None:
    """Warn where no S3 gateway endpoint is to be seen: NAT would bill every gigabyte of data and checkpoints.

    What is imported shows only what this app adds to it.
    """
    if not any(_is_s3_gateway(one, vpc) for one in scope.node.root.node.find_all()):
        Annotations.of(scope).add_warning_v2(
            "trainfabric:noS3Endpoint",
            "no S3 gateway endpoint of the VPC is to be seen here, and NAT bills every gigabyte of data and "
            "checkpoints: give the route table of the subnet, so that one is added, or say that there is one with "
            "has_s3_endpoint",
        )


def _is_s3_gateway(construct: IConstruct, vpc: ec2.IVpc) -> bool:
    return (
        isinstance(construct, ec2.CfnVPCEndpoint)
        and construct.vpc_endpoint_type == "Gateway"
        and construct.vpc_id == vpc.vpc_id
        and str(construct.service_name).endswith(".s3")
    )
