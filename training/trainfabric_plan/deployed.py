"""What a deployed environment tells whoever works with it: the value of its SSM parameter."""

from __future__ import annotations

from trainfabric_plan.model import Strict


class DeployedEnvironment(Strict):
    """Names of deployed resources, written by the stacks, read by the command line and the nodes.

    `coordinator_group` and `worker_group` are Auto Scaling groups; `worker_group` is `None` for a fleet of one node.
    """

    name: str
    region: str
    data_bucket: str
    checkpoint_bucket: str
    lustre_dns_name: str
    lustre_mount_name: str
    coordinator_group: str
    worker_group: str | None
    nodes: int
    ranks_per_node: int
