"""What one queue of equal nodes may ask for."""

from __future__ import annotations

from trainfabric_plan.catalog import InstanceType


def static_nodes_rule(static_nodes: int, nodes: int | None, *, block: bool) -> str | None:
    """What the number of static nodes of one queue must be, if it is not that.

    Args:
        static_nodes: Nodes that are up from the start and stay.
        nodes: All nodes of the queue, if known.
        block: Whether they are of a Capacity Block, whose nodes are all static (aws-parallelcluster 3.16.1,
            `ComputeResourceSizeValidator`).
    """
    if static_nodes < 0:
        return "at least 0"
    if nodes is not None and static_nodes > nodes:
        return f"at most the {nodes} of nodes"
    if block and static_nodes not in (0, nodes):
        return "left out for a Capacity Block, whose nodes are all static"
    return None


def gpu_health_rule(instance: InstanceType) -> str | None:
    """What checks of GPUs must be on this type, if they have nothing to check: DCGM knows NVIDIA's GPUs alone."""
    return None if instance.maker == "nvidia" else f"off for {instance.name}, which has no GPUs of NVIDIA"
