"""Security rules that Lustre needs, as resources that a file system can depend on."""

from __future__ import annotations

from aws_cdk import CfnResource
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

PORTS = ((988, 988), (1018, 1023))
"""TCP ports of Lustre: 988, and 1018-1023 for file servers that connect back (FSx user guide, limit-access)."""


def lustre_security_rules(
    scope: Construct, servers: ec2.ISecurityGroup, clients: ec2.ISecurityGroup
) -> list[CfnResource]:
    """Lustre in both directions between file servers and clients and among the file servers.

    They are L1 rules made in `scope`, whichever stack the groups are of, so that the file system can wait for them.
    """
    rules: list[CfnResource] = []
    for first, last in PORTS:
        for name, source, destination in (
            ("ClientsToServers", clients, servers),
            ("ServersToClients", servers, clients),
            ("AmongServers", servers, servers),
        ):
            rules += _both_ends(scope, f"{name}{first}", source, destination, first, last)
    return rules


def _both_ends(
    scope: Construct,
    name: str,
    source: ec2.ISecurityGroup,
    destination: ec2.ISecurityGroup,
    first: int,
    last: int,
) -> tuple[CfnResource, CfnResource]:
    egress = ec2.CfnSecurityGroupEgress(
        scope,
        f"{name}Egress",
        group_id=source.security_group_id,
        destination_security_group_id=destination.security_group_id,
        ip_protocol="tcp",
        from_port=first,
        to_port=last,
        description="Lustre",
    )
    ingress = ec2.CfnSecurityGroupIngress(
        scope,
        f"{name}Ingress",
        group_id=destination.security_group_id,
        source_security_group_id=source.security_group_id,
        ip_protocol="tcp",
        from_port=first,
        to_port=last,
        description="Lustre",
    )
    return egress, ingress
