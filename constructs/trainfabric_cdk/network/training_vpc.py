"""The network of a training environment."""

from __future__ import annotations

import ipaddress

from aws_cdk import RemovalPolicy, Stack, Tags
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from constructs import Construct

from trainfabric_cdk.acknowledge import acknowledge
from trainfabric_cdk.errors import is_known, property_error

DEFAULT_CIDR = "10.20.0.0/16"

_ONE_ZONE = "EFA, the placement group and Lustre live in one zone, and the environment says which"


class TrainingVpc(Construct):
    """One availability zone, a large private subnet for nodes and file system, a public one for the NAT gateway.

    S3 is reached through a gateway endpoint, which costs nothing; flow logs go to CloudWatch. No subnet gives public
    addresses by itself. It is made of L1 resources: `ec2.Vpc` checks zones against the account, and would need
    credentials to synthesise.

    Attributes:
        vpc: The VPC, for other constructs.
        private_subnet: Half of the range, with a route out through NAT.
        public_subnet: An eighth of the range, with a route to the internet gateway.
    """

    def __init__(self, scope: Construct, id: str, *, availability_zone: str, cidr: str = DEFAULT_CIDR) -> None:
        super().__init__(scope, id)
        private_range, public_range = self._ranges(cidr)
        network = ec2.CfnVPC(self, "Vpc", cidr_block=cidr, enable_dns_hostnames=True, enable_dns_support=True)
        Tags.of(network).add("Name", self.node.path)
        self.public_subnet = self._public_subnet(network, availability_zone, public_range)
        self.private_subnet = self._private_subnet(network, availability_zone, private_range)
        self.vpc: ec2.IVpc = ec2.Vpc.from_vpc_attributes(
            self,
            "Attributes",
            vpc_id=network.ref,
            vpc_cidr_block=cidr,
            availability_zones=[availability_zone],
            private_subnet_ids=[self.private_subnet.subnet_id],
            private_subnet_route_table_ids=[self.private_subnet.route_table.route_table_id],
            public_subnet_ids=[self.public_subnet.subnet_id],
            public_subnet_route_table_ids=[self.public_subnet.route_table.route_table_id],
        )
        for subnet in (self.public_subnet, self.private_subnet):
            acknowledge(subnet, "CloudFormation-Validate::W3010", _ONE_ZONE)
        s3_gateway_endpoint(self, vpc=self.vpc, subnets=[self.private_subnet, self.public_subnet])
        self._flow_logs()

    def _ranges(self, cidr: str) -> tuple[str, str]:
        rule = "a range from /16 to /24 such as 10.20.0.0/16"
        if not is_known(cidr):
            raise property_error(self, "cidr", rule, "a token", "give it as text: the subnets are cut out of it")
        try:
            whole = ipaddress.IPv4Network(cidr)
        except ValueError:
            raise property_error(self, "cidr", rule, cidr) from None
        if not 16 <= whole.prefixlen <= 24:
            raise property_error(self, "cidr", rule, cidr)
        private, rest = whole.subnets(prefixlen_diff=1)
        return str(private), str(next(rest.subnets(prefixlen_diff=2)))

    def _public_subnet(self, network: ec2.CfnVPC, zone: str, cidr: str) -> ec2.PublicSubnet:
        gateway = ec2.CfnInternetGateway(self, "InternetGateway")
        attachment = ec2.CfnVPCGatewayAttachment(
            self, "InternetGatewayAttachment", vpc_id=network.ref, internet_gateway_id=gateway.ref
        )
        subnet = ec2.PublicSubnet(
            self, "Public", vpc_id=network.ref, availability_zone=zone, cidr_block=cidr, map_public_ip_on_launch=False
        )
        subnet.add_default_internet_route(gateway.ref, attachment)
        return subnet

    def _private_subnet(self, network: ec2.CfnVPC, zone: str, cidr: str) -> ec2.PrivateSubnet:
        subnet = ec2.PrivateSubnet(
            self, "Private", vpc_id=network.ref, availability_zone=zone, cidr_block=cidr, map_public_ip_on_launch=False
        )
        subnet.add_default_nat_route(self.public_subnet.add_nat_gateway().ref)
        return subnet

    def _flow_logs(self) -> None:
        group = logs.LogGroup(
            self, "FlowLogs", retention=logs.RetentionDays.ONE_MONTH, removal_policy=RemovalPolicy.DESTROY
        )
        role = iam.Role(self, "FlowLogsRole", assumed_by=iam.ServicePrincipal("vpc-flow-logs.amazonaws.com"))
        ec2.FlowLog(
            self,
            "FlowLog",
            resource_type=ec2.FlowLogResourceType.from_vpc(self.vpc),
            destination=ec2.FlowLogDestination.to_cloud_watch_logs(group, role),
        )


def s3_gateway_endpoint(scope: Construct, *, vpc: ec2.IVpc, subnets: list[ec2.ISubnet]) -> ec2.CfnVPCEndpoint:
    """S3 without NAT for these subnets: the gateway endpoint is free, NAT bills every gigabyte of a checkpoint."""
    return ec2.CfnVPCEndpoint(
        scope,
        "S3Endpoint",
        vpc_id=vpc.vpc_id,
        vpc_endpoint_type="Gateway",
        service_name=f"com.amazonaws.{Stack.of(scope).region}.s3",
        route_table_ids=[subnet.route_table.route_table_id for subnet in subnets],
    )
