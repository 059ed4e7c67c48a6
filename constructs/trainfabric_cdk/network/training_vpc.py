"""The network of a training environment."""

from __future__ import annotations

import ipaddress
from typing import Literal

from aws_cdk import RemovalPolicy, Stack, Tags
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from constructs import Construct

from trainfabric_cdk.acknowledge import NIST, acknowledge
from trainfabric_cdk.errors import is_known, property_error, refuse
from trainfabric_cdk.forms import zone_mistakes
from trainfabric_cdk.network.endpoints import interface_endpoints, s3_gateway_endpoint
from trainfabric_cdk.properties import checked_types
from trainfabric_plan.addresses import free_addresses, range_problem
from trainfabric_plan.node_calls import endpoint_calls

Egress = Literal["nat", "endpoints"]
"""How nodes reach what is outside the VPC: through NAT, or endpoints of the services that they call alone."""

DEFAULT_CIDR = "10.20.0.0/16"

_DEFAULT_GROUP = (
    "Nothing stands in the default group: nodes, file system and endpoints have groups of their own. "
    "Closing it needs a custom resource with rights over every group of the VPC"
)
_PUBLIC_ROUTE = (
    "The subnet is the NAT gateway's alone unless public addresses are asked for; nodes stand in the private one"
)
_LOGS_KEY = "CloudWatch Logs encrypts with keys of its own; the logs hold addresses and counts, no data"
_ONE_ZONE = "EFA, the placement group and Lustre live in one zone, and the environment says which"


class TrainingVpc(Construct):
    """One availability zone, a large private subnet for nodes and file system, and a way out of it.

    The way out is a NAT gateway in a public subnet, or endpoints of the services that nodes call and nothing else:
    then no packet leaves the VPC for the internet, and nothing can be installed at boot
    (docs/how-to/run-without-internet.md). S3 is reached through a gateway endpoint, which costs nothing; flow logs go
    to CloudWatch. No subnet gives public addresses by itself. It is made of L1 resources: `ec2.Vpc` checks zones
    against the account, and would need credentials to synthesise.

    Args:
        scope: Parent construct.
        id: Construct id.
        availability_zone: The one zone.
        cidr: Range of the VPC, from /16 to /24, outside that of Docker's bridge.
        addresses: Addresses of the private subnet that nodes and file systems take, those of endpoints not counted; not
            checked if not given. FSx says of no Lustre file system how many it takes, only that it can be several:
            leave it room.
        egress: `nat` or `endpoints`.
        containers: Whether nodes pull a container image from ECR, which takes two endpoints more.

    Attributes:
        vpc: The VPC, for other constructs. `node.default_child` is its `CfnVPC`.
        private_subnet: Half of the range.
        egress: As given.
        containers: As given.
        endpoints: Interface endpoints; none with a NAT gateway.

    Raises:
        PropertyError: If the zone is none of the stack's region, the range cannot be cut or is none for nodes, or its
            private half is too small.
    """

    @checked_types()
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        availability_zone: str,
        cidr: str | None = None,
        addresses: int | None = None,
        egress: Egress = "nat",
        containers: bool = False,
    ) -> None:
        super().__init__(scope, id)
        refuse(zone_mistakes(self.node.path, availability_zone, Stack.of(self).region))
        self.egress: Egress = self._checked_egress(egress)
        self.containers = containers
        cidr = DEFAULT_CIDR if cidr is None else cidr
        private_range, public_range = self._ranges(cidr)
        calls = endpoint_calls(containers=containers) if egress == "endpoints" else ()
        self._refuse_small(private_range, addresses, len(calls))
        network = ec2.CfnVPC(self, "Vpc", cidr_block=cidr, enable_dns_hostnames=True, enable_dns_support=True)
        self.node.default_child = network
        Tags.of(network).add("Name", self.node.path)
        acknowledge(network, f"{NIST}-VPCDefaultSecurityGroupClosed", _DEFAULT_GROUP)
        self._public = self._public_subnet(network, availability_zone, public_range) if egress == "nat" else None
        self.private_subnet = self._private_subnet(network, availability_zone, private_range)
        subnets = [subnet for subnet in (self._public, self.private_subnet) if subnet]
        self.vpc: ec2.IVpc = self._attributes(network, cidr, availability_zone)
        for subnet in subnets:
            acknowledge(subnet, "CloudFormation-Validate::W3010", _ONE_ZONE)
        s3_gateway_endpoint(self, vpc=self.vpc, subnets=subnets[::-1])
        self.endpoints: list[ec2.InterfaceVpcEndpoint] = (
            interface_endpoints(self, vpc=self.vpc, cidr=cidr, subnet=self.private_subnet, calls=calls) if calls else []
        )
        self._flow_logs()

    @property
    def public_subnet(self) -> ec2.PublicSubnet:
        """An eighth of the range, with a route to the internet gateway.

        Raises:
            PropertyError: If the network has endpoints alone.
        """
        if self._public is None:
            rule = "read only of a network with a NAT gateway"
            raise property_error(self, "public_subnet", rule, "egress endpoints", "use private_subnet")
        return self._public

    def _attributes(self, network: ec2.CfnVPC, cidr: str, zone: str) -> ec2.IVpc:
        public = [self._public] if self._public else []
        return ec2.Vpc.from_vpc_attributes(
            self,
            "Attributes",
            vpc_id=network.ref,
            vpc_cidr_block=cidr,
            availability_zones=[zone],
            private_subnet_ids=[self.private_subnet.subnet_id],
            private_subnet_route_table_ids=[self.private_subnet.route_table.route_table_id],
            public_subnet_ids=[subnet.subnet_id for subnet in public] or None,
            public_subnet_route_table_ids=[subnet.route_table.route_table_id for subnet in public] or None,
        )

    def _checked_egress(self, egress: Egress) -> Egress:
        if not is_known(egress):
            remedy = "give it as text: what is made follows from it"
            raise property_error(self, "egress", "nat or endpoints", "a token", remedy)
        if egress not in ("nat", "endpoints"):
            raise property_error(self, "egress", "nat or endpoints", repr(egress))
        return egress

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
        problem = range_problem(cidr)
        if problem:
            raise property_error(self, "cidr", problem.rule, cidr, problem.remedy)
        private, rest = whole.subnets(prefixlen_diff=1)
        return str(private), str(next(rest.subnets(prefixlen_diff=2)))

    def _refuse_small(self, private_range: str, addresses: int | None, endpoints: int) -> None:
        if addresses is None or not is_known(addresses):
            return
        if addresses < 0:
            raise property_error(self, "addresses", "at least 0", addresses)
        free = free_addresses(private_range) - endpoints
        if addresses > free:
            beside = f" beside {endpoints} endpoints" if endpoints else ""
            rule = f"large enough for {addresses} addresses in its private half{beside}"
            remedy = "choose a larger range, up to /16, or fewer nodes; file systems take addresses as well"
            raise property_error(self, "cidr", rule, f"{free} free in {private_range}", remedy)

    def _public_subnet(self, network: ec2.CfnVPC, zone: str, cidr: str) -> ec2.PublicSubnet:
        gateway = ec2.CfnInternetGateway(self, "InternetGateway")
        attachment = ec2.CfnVPCGatewayAttachment(
            self, "InternetGatewayAttachment", vpc_id=network.ref, internet_gateway_id=gateway.ref
        )
        subnet = ec2.PublicSubnet(
            self, "Public", vpc_id=network.ref, availability_zone=zone, cidr_block=cidr, map_public_ip_on_launch=False
        )
        subnet.add_default_internet_route(gateway.ref, attachment)
        acknowledge(subnet, f"{NIST}-VPCNoUnrestrictedRouteToIGW", _PUBLIC_ROUTE)
        return subnet

    def _private_subnet(self, network: ec2.CfnVPC, zone: str, cidr: str) -> ec2.PrivateSubnet:
        subnet = ec2.PrivateSubnet(
            self, "Private", vpc_id=network.ref, availability_zone=zone, cidr_block=cidr, map_public_ip_on_launch=False
        )
        if self._public:
            subnet.add_default_nat_route(self._public.add_nat_gateway().ref)
        return subnet

    def _flow_logs(self) -> None:
        group = logs.LogGroup(
            self, "FlowLogs", retention=logs.RetentionDays.ONE_MONTH, removal_policy=RemovalPolicy.DESTROY
        )
        acknowledge(group, f"{NIST}-CloudWatchLogGroupEncrypted", _LOGS_KEY)
        role = iam.Role(self, "FlowLogsRole", assumed_by=iam.ServicePrincipal("vpc-flow-logs.amazonaws.com"))
        acknowledge(role, f"{NIST}-IAMNoInlinePolicy", "It names the one log group and fits no other role")
        ec2.FlowLog(
            self,
            "FlowLog",
            resource_type=ec2.FlowLogResourceType.from_vpc(self.vpc),
            destination=ec2.FlowLogDestination.to_cloud_watch_logs(group, role),
        )
