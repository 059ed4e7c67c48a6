"""Where nodes stand to each other."""

from trainfabric_cdk.placement.efa_cluster_placement_group import EfaClusterPlacementGroup, NodeRange

__all__ = ["EfaClusterPlacementGroup", "NodeRange"]
