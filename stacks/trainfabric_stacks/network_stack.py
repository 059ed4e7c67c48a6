"""The network of an environment: made here, or one that exists."""

from __future__ import annotations

from typing import Any

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from trainfabric_cdk.acknowledge import acknowledge
from trainfabric_cdk.network import EfaSecurityGroup, TrainingVpc, s3_gateway_endpoint, warn_of_no_s3_endpoint
from trainfabric_plan.addresses import LEAST_OF_LUSTRE, OF_A_HOME
from trainfabric_plan.catalog import addresses_per_node, efa_interfaces, instance_type
from trainfabric_plan.environment import Environment


class NetworkStack(Stack):
    """VPC and subnet, and the security group of the nodes.

    Attributes:
        vpc: The VPC.
        node_subnet: The one subnet of nodes and file system.
        node_security_group: Group of the nodes.
    """

    def __init__(self, scope: Construct, id: str, *, environment: Environment, **stack: Any) -> None:
        super().__init__(scope, id, **stack)
        given = environment.network
        if given.vpc_id and given.subnet_id:
            self.vpc, self.node_subnet = self._existing(environment, given.vpc_id, given.subnet_id)
        else:
            self.vpc, self.node_subnet = self._own(environment)
        self.node_security_group = EfaSecurityGroup(self, "NodeSecurityGroup", vpc=self.vpc)
        CfnOutput(self, "VpcId", value=self.vpc.vpc_id)
        CfnOutput(self, "NodeSubnetId", value=self.node_subnet.subnet_id)

    def _own(self, environment: Environment) -> tuple[ec2.IVpc, ec2.ISubnet]:
        given = environment.network
        network = TrainingVpc(
            self,
            "Network",
            availability_zone=environment.availability_zone,
            cidr=given.cidr,
            addresses=None if given.assign_public_ips else addresses_taken(environment),
            egress=given.egress,
            containers=environment.training.image is not None,
        )
        return network.vpc, network.public_subnet if given.assign_public_ips else network.private_subnet

    def _existing(self, environment: Environment, vpc_id: str, subnet_id: str) -> tuple[ec2.IVpc, ec2.ISubnet]:
        route_table_id = environment.network.route_table_id
        vpc = ec2.Vpc.from_vpc_attributes(
            self, "Network", vpc_id=vpc_id, availability_zones=[environment.availability_zone]
        )
        subnet = ec2.Subnet.from_subnet_attributes(
            self,
            "NodeSubnet",
            subnet_id=subnet_id,
            availability_zone=environment.availability_zone,
            route_table_id=route_table_id,
        )
        if route_table_id:
            s3_gateway_endpoint(self, vpc=vpc, subnets=[subnet])
        else:
            reason = "Nothing needs the route table: whoever leaves it out has an S3 endpoint in it"
            acknowledge(subnet, "@aws-cdk/aws-ec2:noSubnetRouteTableId", reason)
        if not environment.network.has_s3_endpoint:
            warn_of_no_s3_endpoint(self, vpc=vpc)
        return vpc, subnet


def addresses_taken(environment: Environment) -> int:
    """Addresses of the subnet that nodes and file systems of an environment take when all are up.

    Of a Lustre file system that is made here it is the least: a large one takes more (`LEAST_OF_LUSTRE`).
    """
    storage = environment.storage
    lustre = LEAST_OF_LUSTRE if storage.lustre.is_made else 0
    return fleet_addresses(environment) + lustre + (OF_A_HOME if storage.shared_home else 0)


def fleet_addresses(environment: Environment) -> int:
    """Addresses of the subnet that the nodes of an environment take when all are up."""
    fleet = environment.fleet
    mode = fleet.interfaces if fleet.efa else "addresses"
    layout = efa_interfaces(instance_type(fleet.instance_type), mode=mode)
    control = fleet.coordinator == "control"
    return (fleet.nodes + fleet.spares) * (addresses_per_node(layout) if fleet.efa else 1) + control
