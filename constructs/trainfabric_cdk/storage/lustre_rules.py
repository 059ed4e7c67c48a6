"""Security rules that Lustre needs, as resources that a file system can depend on."""

from __future__ import annotations

from aws_cdk import CfnResource
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from trainfabric_cdk.acknowledge import NIST, acknowledge

PORTS = ((988, 988), (1018, 1023))
"""TCP ports of Lustre: 988, and 1018-1023 for file servers that connect back (FSx user guide, limit-access)."""


_ALL = "-1"
_Way = tuple[str, ec2.ISecurityGroup, ec2.ISecurityGroup]

_BETWEEN_TWO_GROUPS = "Open to the other group alone: Lustre over EFA needs all traffic between nodes and file servers"


def lustre_security_rules(
    scope: Construct, servers: ec2.ISecurityGroup, clients: ec2.ISecurityGroup, *, among_servers: bool = True
) -> list[CfnResource]:
    """Lustre in both directions between file servers and clients and, if asked, among the file servers.

    They are L1 rules made in `scope`, whichever stack the groups are of, so that the file system can wait for them.
    """
    rules: list[CfnResource] = []
    for first, last in PORTS:
        for name, source, destination in _ways(servers, clients, among_servers):
            rules += _both_ends(scope, f"{name}{first}", source, destination, first, last)
    return rules


def efa_security_rules(
    scope: Construct, servers: ec2.ISecurityGroup, clients: ec2.ISecurityGroup, *, among_servers: bool = True
) -> list[CfnResource]:
    """All traffic on the same ways: EFA is not IP, and FSx creates no EFA-enabled file system without it.

    Source: FSx for Lustre user guide, limit-access-security-groups, "EFA-enabled security groups", read 2026-11.
    """
    rules: list[CfnResource] = []
    for name, source, destination in _ways(servers, clients, among_servers):
        egress, ingress = _both_ends(scope, f"{name}All", source, destination)
        acknowledge(ingress, f"{NIST}-EC2RestrictedCommonPorts", _BETWEEN_TWO_GROUPS)
        rules += (egress, ingress)
    return rules


def _ways(servers: ec2.ISecurityGroup, clients: ec2.ISecurityGroup, among_servers: bool) -> list[_Way]:
    ways: list[_Way] = [("ClientsToServers", clients, servers), ("ServersToClients", servers, clients)]
    return [*ways, ("AmongServers", servers, servers)] if among_servers else ways


def _both_ends(
    scope: Construct,
    name: str,
    source: ec2.ISecurityGroup,
    destination: ec2.ISecurityGroup,
    first: int | None = None,
    last: int | None = None,
) -> tuple[CfnResource, CfnResource]:
    egress = ec2.CfnSecurityGroupEgress(
        scope,
        f"{name}Egress",
        group_id=source.security_group_id,
        destination_security_group_id=destination.security_group_id,
        ip_protocol=_ALL if first is None else "tcp",
        from_port=first,
        to_port=last,
        description="Lustre",
    )
    ingress = ec2.CfnSecurityGroupIngress(
        scope,
        f"{name}Ingress",
        group_id=destination.security_group_id,
        source_security_group_id=source.security_group_id,
        ip_protocol=_ALL if first is None else "tcp",
        from_port=first,
        to_port=last,
        description="Lustre",
    )
    return egress, ingress
