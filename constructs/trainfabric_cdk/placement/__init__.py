"""Where nodes stand to each other."""

from __future__ import annotations

from aws_cdk import aws_ec2 as ec2
from constructs import Construct

__all__ = ["EfaClusterPlacementGroup"]


class EfaClusterPlacementGroup(ec2.PlacementGroup):
    """A placement group of strategy cluster: nodes close to each other, in one zone, for the latency EFA is bought for.

    EC2 names the group (`placement_group_name`), so that it can be replaced. Spot nodes in it must terminate when
    interrupted, and a Capacity Block must not use one (EC2 user guide, placement-groups).
    """

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id, strategy=ec2.PlacementGroupStrategy.CLUSTER)
