"""Which VPC a subnet or a security group is of, and which range it has, as far as that shows before anything exists."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping

from aws_cdk import Annotations
from aws_cdk import aws_ec2 as ec2
from constructs import IConstruct

from trainfabric_cdk.errors import is_known
from trainfabric_cdk.network.node_subnet import subnet_resource
from trainfabric_plan.addresses import DOCKER_BRIDGE
from trainfabric_plan.errors import Mistake


def vpc_mistakes(
    scope: IConstruct,
    vpc: ec2.IVpc,
    subnet: ec2.ISubnet,
    *,
    group: ec2.ISecurityGroup | None = None,
) -> Iterator[Mistake]:
    """A subnet or a security group of another VPC than the one given: EC2 says so when a node starts, not before.

    Two VPCs are told apart if both are made in the app, or both are imported by a known id.

    Args:
        scope: Construct that was given them.
        vpc: The VPC.
        subnet: Its property `subnet`.
        group: Its property `security_group`.
    """
    found: dict[str, str | None] = {"subnet": _vpc_of_subnet(subnet)}
    if group is not None:
        found["security_group"] = _vpc_of_group(group)
    yield from _foreign(scope, vpc, found)


def warn_of_foreign_mount(
    scope: IConstruct, name: str, *, vpc: ec2.IVpc, group: ec2.ISecurityGroup, vpc_id: str | None, clients: str | None
) -> None:
    """Warn of a file system that nodes will not reach by itself: one of another VPC, or one that lets in other nodes.

    Args:
        scope: Construct that mounts it.
        name: Its property.
        vpc: Where the nodes are.
        group: Group of the nodes.
        vpc_id: Where the file system is, as far as it tells.
        clients: Id of the group that it lets in, as far as it tells.
    """
    warn = Annotations.of(scope).add_warning_v2
    if vpc_id is not None and _are_two(scope, vpc.vpc_id, vpc_id):
        warn(
            f"trainfabric:{name}OfAnotherVpc",
            f"{name} is in {_shown(scope, vpc_id)}, the nodes in {_shown(scope, vpc.vpc_id)}: they mount it only where "
            "a peering or a transit gateway joins both",
        )
    elif clients is not None and _are_two_groups(scope, group.security_group_id, clients):
        warn(
            f"trainfabric:{name}OfOtherNodes",
            f"{name} lets in the nodes of another security group than theirs: the mount times out unless it is opened "
            "to them as well. Give the file system the nodes' group as client_security_group",
        )


def _are_two_groups(scope: IConstruct, one: str, other: str) -> bool:
    if is_known(one, other):
        return one != other
    groups = [made for made in scope.node.root.node.find_all() if isinstance(made, ec2.CfnSecurityGroup)]
    found = [{made.node.path for made in groups if id in (made.attr_group_id, made.ref)} for id in (one, other)]
    return all(found) and found[0] != found[1]


def is_of_vpc(group: ec2.ISecurityGroup, vpc: ec2.IVpc) -> bool:
    """Whether a group is known to be of this VPC."""
    return _vpc_of_group(group) == vpc.vpc_id


def warn_of_foreign_clients(scope: IConstruct, vpc: ec2.IVpc, clients: ec2.ISecurityGroup) -> None:
    """Warn of clients in another VPC: a file system serves them over a peering or a transit gateway, whose making this
    app may not show (FSx for Lustre Guide, "Accessing file systems from another VPC", read 2026-12-01)."""
    other = _vpc_of_group(clients)
    if other is not None and _are_two(scope, vpc.vpc_id, other):
        Annotations.of(scope).add_warning_v2(
            "trainfabric:clientsOfAnotherVpc",
            f"client_security_group is in {_shown(scope, other)}, the file system in {_shown(scope, vpc.vpc_id)}: "
            "nodes mount it only where a peering or a transit gateway joins both",
        )


def warn_of_docker_range(scope: IConstruct, vpc: ec2.IVpc) -> None:
    """Warn where the VPC's known range is also that of Docker's bridge on every node."""
    cidr = vpc_range(vpc)
    if cidr is not None and is_known(cidr) and ipaddress.IPv4Network(cidr, strict=False).overlaps(DOCKER_BRIDGE):
        Annotations.of(scope).add_warning_v2(
            "trainfabric:rangeOfDocker",
            f"the VPC's range {cidr} overlaps {DOCKER_BRIDGE}, which Docker routes to its own containers: nodes reach "
            "no peer or file system there. Use another VPC, or an image whose Docker has another bridge (bip in "
            "/etc/docker/daemon.json)",
        )


def vpc_range(vpc: ec2.IVpc) -> str | None:
    """The range of a VPC, which may be a token; `None` where an import left it out: the CDK then throws."""
    resource = _made_here(vpc, vpc.vpc_id)
    try:
        return (resource.cidr_block if resource else None) or vpc.vpc_cidr_block or None
    except RuntimeError:
        return None


def _foreign(scope: IConstruct, vpc: ec2.IVpc, found: Mapping[str, str | None]) -> Iterator[Mistake]:
    for name, other in found.items():
        if other is not None and _are_two(scope, vpc.vpc_id, other):
            own, got = _shown(scope, vpc.vpc_id), _shown(scope, other)
            rule = f"in the VPC that is given, {own}"
            yield Mistake(where=scope.node.path, name=name, rule=rule, got=f"one in {got}")


def _are_two(scope: IConstruct, one: str, other: str) -> bool:
    if is_known(one, other):
        return one != other
    here, there = _made_here(scope, one), _made_here(scope, other)
    return here is not None and there is not None and here.node.path != there.node.path


def _made_here(scope: IConstruct, vpc_id: str) -> ec2.CfnVPC | None:
    if is_known(vpc_id):
        return None
    made = (one for one in scope.node.root.node.find_all() if isinstance(one, ec2.CfnVPC))
    return next((one for one in made if one.ref == vpc_id), None)


def _shown(scope: IConstruct, vpc_id: str) -> str:
    resource = _made_here(scope, vpc_id)
    return resource.node.path if resource else vpc_id


def _vpc_of_subnet(subnet: ec2.ISubnet) -> str | None:
    resource = subnet_resource(subnet)
    if resource is not None:
        return resource.vpc_id
    return getattr(subnet.node.scope, "vpc_id", None)


def _vpc_of_group(group: ec2.ISecurityGroup) -> str | None:
    resource = group.node.default_child
    return resource.vpc_id if isinstance(resource, ec2.CfnSecurityGroup) else None
