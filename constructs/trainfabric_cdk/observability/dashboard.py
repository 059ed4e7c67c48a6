"""The CloudWatch dashboard of a training environment."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from trainfabric_cdk.properties import checked_types
from trainfabric_plan.contract import METRIC_DIMENSION, METRIC_NAMESPACE, Metric

_MINUTE = Duration.minutes(1)
_HALF, _FULL = 12, 24

_LUSTRE_METRICS = {
    "FreeDataStorageCapacity": "Sum",
    "DataReadBytes": "Sum",
    "DataWriteBytes": "Sum",
}
"""Metrics of the namespace AWS/FSx by file system, with their statistic (FSx for Lustre user guide, 2026)."""


class TrainingDashboard(Construct):
    """Loss, speed and checkpoints of the run, nodes in service, space and throughput of the file system.

    Args:
        scope: Parent construct.
        id: Construct id.
        environment: Name of the environment, the dimension of its metrics.
        file_system_id: The Lustre file system.
        groups: Auto Scaling group names by what the dashboard calls them; empty for a cluster.

    Attributes:
        dashboard: The CloudWatch dashboard, named `trainfabric-<environment>`.
    """

    @checked_types()
    def __init__(
        self, scope: Construct, id: str, *, environment: str, file_system_id: str, groups: Mapping[str, str]
    ) -> None:
        super().__init__(scope, id)
        self._environment = environment
        self.dashboard = cloudwatch.Dashboard(self, "Dashboard", dashboard_name=f"trainfabric-{environment}")
        self.dashboard.add_widgets(self._run("Loss", Metric.LOSS), self._run("Gradient norm", Metric.GRADIENT_NORM))
        self.dashboard.add_widgets(
            self._run("Tokens per second", Metric.TOKENS_PER_SECOND), self._run("Seconds per step", Metric.STEP_SECONDS)
        )
        self.dashboard.add_widgets(
            self._run("Step of the newest committed checkpoint", Metric.CHECKPOINT_STEP, "Maximum"),
            *([_nodes(groups)] if groups else []),
        )
        self.dashboard.add_widgets(_lustre(file_system_id))

    def _run(self, title: str, metric: Metric, statistic: str = "Average") -> cloudwatch.GraphWidget:
        shown = cloudwatch.Metric(
            namespace=METRIC_NAMESPACE,
            metric_name=metric.value,
            dimensions_map={METRIC_DIMENSION: self._environment},
            statistic=statistic,
            period=_MINUTE,
        )
        return cloudwatch.GraphWidget(title=title, left=[shown], width=_HALF)


def _nodes(groups: Mapping[str, str]) -> cloudwatch.GraphWidget:
    shown = [
        cloudwatch.Metric(
            namespace="AWS/AutoScaling",
            metric_name="GroupInServiceInstances",
            dimensions_map={"AutoScalingGroupName": name},
            statistic="Maximum",
            period=_MINUTE,
            label=label,
        )
        for label, name in groups.items()
    ]
    return cloudwatch.GraphWidget(title="Nodes in service", left=shown, stacked=True, width=_HALF)


def _lustre(file_system_id: str) -> cloudwatch.GraphWidget:
    free, *throughput = [
        cloudwatch.Metric(
            namespace="AWS/FSx",
            metric_name=name,
            dimensions_map={"FileSystemId": file_system_id},
            statistic=statistic,
            period=_MINUTE,
        )
        for name, statistic in _LUSTRE_METRICS.items()
    ]
    return cloudwatch.GraphWidget(
        title="Lustre: free bytes, and bytes per minute (right)", left=[free], right=throughput, width=_FULL
    )
