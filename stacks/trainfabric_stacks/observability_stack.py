"""What people see of an environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aws_cdk import CfnOutput, Stack
from constructs import Construct

from trainfabric_cdk.observability import TrainingDashboard
from trainfabric_plan.environment import Environment
from trainfabric_stacks.storage_stack import StorageStack


class ObservabilityStack(Stack):
    """The dashboard.

    Attributes:
        dashboard: Run, nodes and file system on one page.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        environment: Environment,
        storage: StorageStack,
        groups: Mapping[str, str],
        **stack: Any,
    ) -> None:
        super().__init__(scope, id, **stack)
        self.dashboard = TrainingDashboard(
            self,
            "Training",
            environment=environment.name,
            file_system_id=storage.lustre.file_system_id,
            groups=groups,
        )
        CfnOutput(self, "DashboardName", value=self.dashboard.dashboard.dashboard_name)
