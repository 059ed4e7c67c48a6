"""CloudWatch alarms in moto, and the CDK's own metadata."""

from __future__ import annotations

import re
from typing import Any

from moto.cloudwatch.models import MetricDataQuery, cloudwatch_backends

from sandbox.aws.models.base import Kind, Resource


class Alarm(Resource):
    """An alarm on a metric or on a metric expression."""

    TYPE = "AWS::CloudWatch::Alarm"
    KIND = Kind.REAL
    NAME_PROPERTY = "AlarmName"
    ATTRIBUTES = ("Arn",)
    API = ("cloudwatch", "PutMetricAlarm")

    def create(self) -> str:
        """Put the alarm."""
        parameters = {_snake(key): value for key, value in self.properties.items() if key not in _NOT_MOTOS}
        missing = {key: value for key, value in _MANDATORY.items() if key not in parameters}
        queries = parameters.pop("metrics", None)
        self.alarm = cloudwatch_backends[self.account][self.region].put_metric_alarm(
            name=self.name,
            metric_data_queries=queries and [_query(query) for query in queries],
            **missing,
            **parameters,
        )
        return self.name

    def remove(self) -> None:
        """Delete the alarm."""
        cloudwatch_backends[self.account][self.region].delete_alarms([self.name])

    def attribute(self, name: str) -> str:
        """The ARN."""
        return str(self.alarm.alarm_arn)

    @classmethod
    def api_parameters(cls, properties: dict[str, Any]) -> dict[str, Any]:
        """PutMetricAlarm asks for a name, which CloudFormation makes up if it has none."""
        return {"AlarmName": "named-by-cloudformation", **properties}


_NOT_MOTOS = {"AlarmName", "EvaluateLowSampleCountPercentile"}
_MANDATORY: dict[str, Any] = {
    **dict.fromkeys(("namespace", "metric_name", "comparison_operator", "evaluation_periods")),
    **dict.fromkeys(("period", "threshold", "statistic", "description")),
    "dimensions": [],
    "alarm_actions": [],
}
_RENAMED = {"AlarmDescription": "description", "OKActions": "ok_actions"}


def _snake(name: str) -> str:
    return _RENAMED.get(name) or re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def _query(query: dict[str, Any]) -> MetricDataQuery:
    return MetricDataQuery(
        query_id=query["Id"],
        label=query.get("Label", ""),
        period=query.get("Period", 60),
        return_data=query.get("ReturnData", True),
        expression=query.get("Expression"),
    )


class CdkMetadata(Resource):
    """What the CDK adds to a template to count its users; CloudFormation itself only records it."""

    TYPE = "AWS::CDK::Metadata"
