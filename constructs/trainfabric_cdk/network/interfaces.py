"""The interfaces of a node, and what they rule out."""

from __future__ import annotations

from aws_cdk import aws_ec2 as ec2
from constructs import IConstruct

from trainfabric_cdk.errors import property_error
from trainfabric_cdk.network.node_subnet import subnet_resource
from trainfabric_plan.catalog import InstanceType, Interface, InterfaceMode, efa_interfaces

PRIMARY_ONLY_REMEDY = "use a private subnet with a NAT gateway, as TrainingVpc has, and no public address"


def node_interfaces(instance: InstanceType, *, efa: bool, mode: InterfaceMode = "addresses") -> tuple[Interface, ...]:
    """The interfaces of one node: the EFA layout of the catalog, or a single ENA interface without EFA."""
    layout = efa_interfaces(instance, mode=mode)
    return layout if efa else layout[:1]


def refuse_public_addresses(
    scope: IConstruct, *, interfaces: int, vpc: ec2.IVpc, subnet: ec2.ISubnet, associate_public_ip: bool
) -> None:
    """EC2 gives a node with several interfaces no public address: the launch fails (karpenter PR 5666).

    Raises:
        PropertyError: If there are several interfaces and the subnet or the launch asks for public addresses.
    """
    if interfaces == 1:
        return
    rule = f"{{}} for a node with {interfaces} interfaces: EC2 gives it no public address and the launch fails"
    if associate_public_ip:
        raise property_error(scope, "associate_public_ip", rule.format("False"), "True", PRIMARY_ONLY_REMEDY)
    if gives_public_addresses(vpc, subnet):
        raise property_error(
            scope, "subnet", rule.format("a private subnet"), f"public subnet {subnet.node.path}", PRIMARY_ONLY_REMEDY
        )


def gives_public_addresses(vpc: ec2.IVpc, subnet: ec2.ISubnet) -> bool:
    """Whether the subnet is known to be public; `False` for an imported subnet that says nothing about it."""
    resource = subnet_resource(subnet)
    if resource and resource.map_public_ip_on_launch is True:
        return True
    return any(public.subnet_id == subnet.subnet_id for public in vpc.public_subnets)
