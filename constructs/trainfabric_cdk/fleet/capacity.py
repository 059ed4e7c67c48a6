"""How nodes are bought."""

from __future__ import annotations

import math
from dataclasses import dataclass

from aws_cdk import Tokenization
from aws_cdk import aws_ec2 as ec2

from trainfabric_cdk.errors import is_known, is_number
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
            max_price: Most US dollars per instance-hour; the on-demand price if not given. A token is not judged.

        Raises:
            InvalidInput: If `max_price` is no finite number above zero.
        """
        if max_price is not None and is_known(max_price) and not _is_price(max_price):
            raise mistake("Capacity.spot", "max_price", "a number of more than 0 US dollars per hour", repr(max_price))
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
                max_price=None if self.max_price is None else _text(self.max_price),
            ),
        )


def _is_price(value: object) -> bool:
    return is_number(value) and math.isfinite(value) and value > 0


def _text(price: float) -> str:
    """A token stays one: the text of its placeholder would be a price of its own."""
    return str(price) if is_known(price) else Tokenization.stringify_number(price)
