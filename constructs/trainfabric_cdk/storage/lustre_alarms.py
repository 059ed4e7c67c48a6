"""Alarms of a Lustre file system: a storage target that fills up, and changes that do not reach the bucket.

Metrics: `AWS/FSx` (FSx for Lustre user guide, fs-metrics, read 2026-11). FreeDataStorageCapacity has one sample a
minute for each storage target, so that its minimum is the fullest one and its sample count their number;
AgeOfOldestQueuedMessage is in seconds, with the publisher as its second dimension.
"""

from __future__ import annotations

from aws_cdk import Duration, Token
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns
from constructs import Construct

from trainfabric_cdk.acknowledge import acknowledge
from trainfabric_cdk.properties import checked_types

LEAST_FREE_PERCENT = 10
"""Writes to a target fail when it is full, though others are not; striping and retries need room before that."""

OLDEST_EXPORT_S = 3600
"""An hour. A million small files have been seen to take 85 minutes, so such an export alarms although it goes on."""

_GIB = 1024**3
_NO_TOPIC = "Whoever wants to be called gives alarm_topic; without one the alarm is seen on the console"


class LustreAlarms(Construct):
    """Free space of the fullest storage target below a tenth, and an export queue older than an hour.

    `LustreLinkedToS3` has them by itself; they are public for a file system that exists (`ExistingLustre`).

    Args:
        scope: Parent construct.
        id: Construct id.
        file_system_id: FSx's id.
        capacity_gib: Size of the file system; `None` for one that grows by itself, which has no alarm of free space.
        exports: Whether a link writes to a bucket by itself.
        topic: Where alarms and their end are told; nowhere if not given.

    Attributes:
        free_space: The first alarm, or `None`.
        export_age: The second, or `None`.
    """

    @checked_types()
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        file_system_id: str,
        capacity_gib: float | None,
        exports: bool,
        topic: sns.ITopic | None = None,
    ) -> None:
        super().__init__(scope, id)
        self._file_system_id, self._topic = file_system_id, topic
        self.free_space = None if capacity_gib is None else self._free_space(capacity_gib)
        self.export_age = self._export_age() if exports else None

    def _free_space(self, capacity_gib: float) -> cloudwatch.Alarm:
        free = {"least": self._metric("Minimum"), "targets": self._metric("SampleCount")}
        capacity = Token.as_string(capacity_gib) if Token.is_unresolved(capacity_gib) else str(capacity_gib)
        percent = cloudwatch.MathExpression(
            expression=f"100 * least * targets / ({capacity} * {_GIB})",
            using_metrics=free,
            label="free percent of the fullest storage target",
            period=Duration.minutes(1),
        )
        return self._alarm(
            "FreeSpace",
            percent,
            threshold=LEAST_FREE_PERCENT,
            minutes=5,
            operator=cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD,
            description=f"Lustre: less than {LEAST_FREE_PERCENT} % are free on the fullest storage target",
        )

    def _export_age(self) -> cloudwatch.Alarm:
        age = cloudwatch.Metric(
            namespace="AWS/FSx",
            metric_name="AgeOfOldestQueuedMessage",
            dimensions_map={"FileSystemId": self._file_system_id, "Publisher": "AutoExport"},
            statistic="Maximum",
            period=Duration.minutes(1),
        )
        return self._alarm(
            "ExportAge",
            age,
            threshold=OLDEST_EXPORT_S,
            minutes=15,
            operator=cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
            description="Lustre: a change has waited for more than an hour to be exported to its bucket",
        )

    def _metric(self, statistic: str) -> cloudwatch.Metric:
        return cloudwatch.Metric(
            namespace="AWS/FSx",
            metric_name="FreeDataStorageCapacity",
            dimensions_map={"FileSystemId": self._file_system_id},
            statistic=statistic,
            period=Duration.minutes(1),
        )

    def _alarm(
        self,
        id: str,
        metric: cloudwatch.IMetric,
        *,
        threshold: float,
        minutes: int,
        operator: cloudwatch.ComparisonOperator,
        description: str,
    ) -> cloudwatch.Alarm:
        alarm = cloudwatch.Alarm(
            self,
            id,
            metric=metric,
            threshold=threshold,
            evaluation_periods=minutes,
            comparison_operator=operator,
            alarm_description=description,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )
        if self._topic is None:
            acknowledge(alarm, "NIST.800.53.R5-CloudWatchAlarmAction", _NO_TOPIC)
        else:
            told = actions.SnsAction(self._topic)
            alarm.add_alarm_action(told)
            alarm.add_ok_action(told)
        return alarm
