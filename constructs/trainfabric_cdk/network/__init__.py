"""The network: VPC, the security group that EFA needs, the interfaces of a node."""

from trainfabric_cdk.network.efa_security_group import EfaSecurityGroup
from trainfabric_cdk.network.endpoints import s3_gateway_endpoint, warn_of_no_s3_endpoint
from trainfabric_cdk.network.interfaces import node_interfaces, refuse_public_addresses
from trainfabric_cdk.network.node_subnet import check_node_subnet, is_endpoint_only, zone_of
from trainfabric_cdk.network.training_vpc import DEFAULT_CIDR, Egress, TrainingVpc
from trainfabric_cdk.network.vpcs import (
    is_of_vpc,
    vpc_mistakes,
    warn_of_docker_range,
    warn_of_foreign_clients,
    warn_of_foreign_mount,
)

__all__ = [
    "DEFAULT_CIDR",
    "EfaSecurityGroup",
    "Egress",
    "TrainingVpc",
    "check_node_subnet",
    "is_endpoint_only",
    "is_of_vpc",
    "node_interfaces",
    "refuse_public_addresses",
    "s3_gateway_endpoint",
    "vpc_mistakes",
    "warn_of_docker_range",
    "warn_of_foreign_clients",
    "warn_of_foreign_mount",
    "warn_of_no_s3_endpoint",
    "zone_of",
]
