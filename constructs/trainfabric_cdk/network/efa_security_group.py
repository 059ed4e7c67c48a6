"""The security group of nodes that talk over EFA."""

from __future__ import annotations

from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from trainfabric_cdk.acknowledge import NIST, acknowledge
from trainfabric_cdk.properties import checked_types

_ALL = "-1"


class EfaSecurityGroup(ec2.SecurityGroup):
    """All traffic from and to itself, and everything out.

    EFA traffic is not IP: an egress rule to 0.0.0.0/0 does not cover it, the group must name itself in both directions
    (EC2 user guide, efa-start-security). The egress rule is an L1 resource, because the L2 drops a rule to the group
    itself once all outbound traffic is allowed (aws-cdk issue 38558).
    """

    @checked_types()
    def __init__(self, scope: Construct, id: str, *, vpc: ec2.IVpc, description: str | None = None) -> None:
        super().__init__(
            scope,
            id,
            vpc=vpc,
            description=description or "Nodes that talk over EFA: all traffic among themselves, everything out",
            allow_all_outbound=True,
        )
        ec2.CfnSecurityGroupIngress(
            self,
            "SelfIngress",
            group_id=self.security_group_id,
            source_security_group_id=self.security_group_id,
            ip_protocol=_ALL,
            description="all traffic from nodes of this group",
        )
        acknowledge(
            self,
            f"{NIST}-EC2RestrictedCommonPorts",
            "Open to nodes of this group alone: EFA needs all traffic among them in both directions",
        )
        ec2.CfnSecurityGroupEgress(
            self,
            "SelfEgress",
            group_id=self.security_group_id,
            destination_security_group_id=self.security_group_id,
            ip_protocol=_ALL,
            description="all traffic to nodes of this group: EFA is not IP and needs it",
        )
