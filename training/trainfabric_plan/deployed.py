"""What a deployed environment tells whoever works with it: the value of its SSM parameter."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from trainfabric_plan.contract import Role
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
    spares: Annotated[int, Field(ge=0)]
    """Workers that the worker group admits beyond `nodes`."""
    launch_templates: dict[Role, str]
    """Ids of the launch templates of the groups; empty if they are not ours to pin."""
    asset_bucket: str
    """Where the training asset lies that the launch templates name; the next deploy may replace it."""
    asset_key: str

    def group(self, role: Role) -> str | None:
        """The Auto Scaling group of a role."""
        return self.groups.get(role)

    @property
    def groups(self) -> dict[Role, str]:
        """The Auto Scaling groups that there are."""
        named = {Role.COORDINATOR: self.coordinator_group, Role.WORKER: self.worker_group}
        return {role: group for role, group in named.items() if group is not None}
