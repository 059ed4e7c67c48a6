from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import aws_cdk as cdk
import pytest

from trainfabric_cdk import TrainingDashboard
from trainfabric_plan.contract import METRIC_NAMESPACE, Metric

Metrics = Callable[..., list[list[Any]]]


@pytest.fixture
def metrics(stack: cdk.Stack, properties: Callable[[str], list[dict[str, Any]]]) -> Metrics:
    """All metrics of a dashboard: namespace, name, dimensions and values, options."""

    def shown(groups: dict[str, str]) -> list[list[Any]]:
        TrainingDashboard(stack, "Training", environment="demo", file_system_id="fs-1", groups=groups)
        (dashboard,) = properties("AWS::CloudWatch::Dashboard")
        assert dashboard["DashboardName"] == "trainfabric-demo"
        body = dashboard["DashboardBody"]
        text = body if isinstance(body, str) else "".join(map(str, body["Fn::Join"][1]))
        return [metric for widget in json.loads(text)["widgets"] for metric in widget["properties"]["metrics"]]

    return shown


def test_every_metric_of_the_contract_is_shown_for_the_environment(metrics: Metrics) -> None:
    ours = [m[:4] for m in metrics({}) if m[0] == METRIC_NAMESPACE]

    assert ours == [[METRIC_NAMESPACE, metric.value, "Environment", "demo"] for metric in Metric]


def test_nodes_in_service_are_shown_by_role(metrics: Metrics) -> None:
    nodes = [m for m in metrics({"coordinator": "group-c", "worker": "group-w"}) if m[0] == "AWS/AutoScaling"]

    assert [(m[1], m[3], m[4]["label"]) for m in nodes] == [
        ("GroupInServiceInstances", "group-c", "coordinator"),
        ("GroupInServiceInstances", "group-w", "worker"),
    ]


def test_space_and_throughput_of_the_file_system_are_shown(metrics: Metrics) -> None:
    lustre = [m for m in metrics({}) if m[0] == "AWS/FSx"]

    assert [(m[1], m[3]) for m in lustre] == [
        ("FreeDataStorageCapacity", "fs-1"),
        ("DataReadBytes", "fs-1"),
        ("DataWriteBytes", "fs-1"),
    ]
