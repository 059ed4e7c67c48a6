"""Training metrics in CloudWatch, published by the controller."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any, Protocol

from trainfabric_node.jobs.aws import aws_client, aws_errors
from trainfabric_node.jobs.run_records import RunRecords
from trainfabric_plan.contract import METRIC_DIMENSION, METRIC_NAMESPACE, Metric

_LONGEST_READ = 4 * 1024 * 1024
_FIELDS = ("loss", "grad_norm", "tokens", "seconds")


class MetricSink(Protocol):
    """Where the values of metrics go."""

    def put(self, values: dict[Metric, float]) -> None:
        """Publishes the values as of now; raises `Unreachable`."""
        ...


class CloudWatch:
    """Metrics of one environment in CloudWatch."""

    def __init__(self, environment: str, region: str) -> None:
        self._where = f"environment {environment}"
        self._dimensions = [{"Name": METRIC_DIMENSION, "Value": environment}]
        self._client: Any = aws_client("cloudwatch", region, self._where)

    def put(self, values: dict[Metric, float]) -> None:
        """See `MetricSink.put`."""
        data = [{"MetricName": name, "Dimensions": self._dimensions, "Value": value} for name, value in values.items()]
        with aws_errors(self._where, "cloudwatch"):
            self._client.put_metric_data(Namespace=METRIC_NAMESPACE, MetricData=data)


class StepMetrics:
    """Turns new lines of the current epoch's published steps into metrics.

    It reads them from the bucket: rank 0, which writes them, is not always on the controller's node.

    Args:
        records: Of the run.
        epoch: Number of the current epoch, 0 if there is none.
        newest_checkpoint: Step of the newest commit, if there is one.
        sink: Where the metrics go.
        pause_s: Seconds between two publications.
        clock: Seconds, monotonic.
    """

    def __init__(
        self,
        records: RunRecords,
        epoch: Callable[[], int],
        newest_checkpoint: Callable[[], int | None],
        sink: MetricSink,
        pause_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._records = records
        self._epoch = epoch
        self._newest_checkpoint = newest_checkpoint
        self._sink = sink
        self._pause_s = pause_s
        self._clock = clock
        self._next = clock()
        self._reading = 0
        self._offset = 0

    def publish_when_due(self) -> None:
        """Publishes what is new, unless it did so just now; raises `Unreachable`."""
        if self._clock() >= self._next:
            self._next = self._clock() + self._pause_s
            self.publish()

    def publish(self) -> None:
        """Publishes the newest step's loss and gradient norm, and the mean speed of all new steps."""
        lines = self._new_lines()
        if not lines:
            return
        seconds = sum(line["seconds"] for line in lines)
        values = {
            Metric.LOSS: float(lines[-1]["loss"]),
            Metric.GRADIENT_NORM: float(lines[-1]["grad_norm"]),
            Metric.STEP_SECONDS: seconds / len(lines),
        }
        if seconds > 0:
            values[Metric.TOKENS_PER_SECOND] = sum(line["tokens"] for line in lines) / seconds
        checkpoint = self._newest_checkpoint()
        if checkpoint is not None:
            values[Metric.CHECKPOINT_STEP] = float(checkpoint)
        self._sink.put(values)

    def _new_lines(self) -> list[dict[str, Any]]:
        """What the epoch has written since; the rest of the epoch before, once there is another."""
        lines, current = self._lines_of(self._reading), self._epoch()
        if current != self._reading:
            self._reading, self._offset = current, 0
            lines += self._lines_of(current)
        return lines

    def _lines_of(self, epoch: int) -> list[dict[str, Any]]:
        if epoch == 0:
            return []
        data = self._records.steps_from(epoch, self._offset, _LONGEST_READ)
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        return [found for line in whole.splitlines() if (found := _step(line))]


def _step(line: bytes) -> dict[str, Any] | None:
    """A line that has all that metrics are made of; the controller must not end because of one that has not."""
    try:
        found = json.loads(line)
    except ValueError:
        return None
    whole = isinstance(found, dict) and all(isinstance(found.get(name), int | float) for name in _FIELDS)
    return found if whole else None
