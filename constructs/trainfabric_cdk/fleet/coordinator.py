"""What the coordinator of a fleet is: a node that trains, or a small one beside them that only controls."""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from trainfabric_plan.contract import CONTROL_PORT, RENDEZVOUS_PORT

CONTROL_INSTANCE_TYPE = "m7i.large"
"""What a coordinator that only controls is, unless something else is asked for."""


@dataclass(frozen=True, kw_only=True)
class Coordinator:
    """The node with the controller and the rendezvous: made by `Coordinator.training()` or `Coordinator.control()`.

    Attributes:
        control_instance_type: Type of a node that only controls; `None` if the coordinator is one of those that train.
    """

    control_instance_type: str | None = None

    @classmethod
    def training(cls) -> Coordinator:
        """One of the nodes that train, of their type and in the first placement group."""
        return cls()

    @classmethod
    def control(cls, *, instance_type: str = CONTROL_INSTANCE_TYPE) -> Coordinator:
        """A small node on demand that no loss of a training node takes along.

        It stands outside the placement group, has one interface, and of it nothing but the rendezvous and the control
        port is open, to the nodes alone. All of the fleet's `nodes` are then workers.

        Args:
            instance_type: A type of the catalog, of the architecture of the nodes: all share one image.
        """
        return cls(control_instance_type=instance_type)

    @property
    def trains(self) -> bool:
        """Whether it is one of the nodes that train."""
        return self.control_instance_type is None


class ControlSecurityGroup(ec2.SecurityGroup):
    """Of a coordinator that only controls: its two ports, open to the nodes alone, and everything out."""

    def __init__(self, scope: Construct, id: str, *, vpc: ec2.IVpc, nodes: ec2.ISecurityGroup) -> None:
        super().__init__(
            scope,
            id,
            vpc=vpc,
            description="Coordinator of a training fleet: rendezvous and controller for its nodes, everything out",
            allow_all_outbound=True,
        )
        for name, port in (("Rendezvous", RENDEZVOUS_PORT), ("Control", CONTROL_PORT)):
            # An L1 rule: that of an L2 lies in the stack of the nodes' group and could tie two stacks in a circle.
            ec2.CfnSecurityGroupIngress(
                self,
                name,
                group_id=self.security_group_id,
                source_security_group_id=nodes.security_group_id,
                ip_protocol="tcp",
                from_port=port,
                to_port=port,
                description=f"{name.lower()} port from the nodes",
            )
