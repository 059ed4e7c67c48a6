"""How nodes are bought."""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk import aws_ec2 as ec2

from trainfabric_plan.errors import mistake


@dataclass(frozen=True, kw_only=True)
class Capacity:
    """How the workers of a fleet are bought: `Capacity.spot()` or `Capacity.on_demand()`.

    Attributes:
        name: `spot` or `on_demand`.
        max_price: Most US dollars per instance-hour for spot; the on-demand price if `None`.
    """

    name: str
    max_price: float | None = None

    @classmethod
    def on_demand(cls) -> Capacity:
        """At list price, kept until given back."""
        return cls(name="on_demand")

    @classmethod
    def spot(cls, max_price: float | None = None) -> Capacity:
        """Spare capacity that EC2 takes back with two minutes' notice.

        Args:
            max_price: Most US dollars per instance-hour; the on-demand price if not given.

        Raises:
            InvalidInput: If `max_price` is not above zero.
        """
        if max_price is not None and max_price <= 0:
            raise mistake("Capacity.spot", "max_price", "more than 0 US dollars per hour", max_price)
        return cls(name="spot", max_price=max_price)

    @property
    def is_spot(self) -> bool:
        """Whether EC2 may take the nodes back."""
        return self.name == "spot"

    def market_options(self) -> ec2.CfnLaunchTemplate.InstanceMarketOptionsProperty | None:
        """What the launch template says: interrupted nodes terminate, since a stopped one holds its placement group."""
        if not self.is_spot:
            return None
        return ec2.CfnLaunchTemplate.InstanceMarketOptionsProperty(
            market_type="spot",
            spot_options=ec2.CfnLaunchTemplate.SpotOptionsProperty(
                spot_instance_type="one-time",
                instance_interruption_behavior="terminate",
                max_price=None if self.max_price is None else str(self.max_price),
            ),
        )
