"""The network: VPC, the security group that EFA needs, the interfaces of a node."""

from trainfabric_cdk.network.efa_security_group import EfaSecurityGroup
from trainfabric_cdk.network.interfaces import node_interfaces, refuse_public_addresses
from trainfabric_cdk.network.training_vpc import DEFAULT_CIDR, TrainingVpc, s3_gateway_endpoint

__all__ = [
    "DEFAULT_CIDR",
    "EfaSecurityGroup",
    "TrainingVpc",
    "node_interfaces",
    "refuse_public_addresses",
    "s3_gateway_endpoint",
]
