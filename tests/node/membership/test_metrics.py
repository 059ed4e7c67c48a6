from __future__ import annotations

import json
from pathlib import Path

import pytest

from trainfabric_node.jobs import JobLedger, RunRecords
from trainfabric_node.membership.metrics import StepMetrics
from trainfabric_node.store import open_store
from trainfabric_plan.contract import Metric


@pytest.fixture
def records(tmp_path: Path) -> RunRecords:
    return JobLedger(open_store(str(tmp_path / "bucket"))).run("first", 1)


class Sink:
    def __init__(self) -> None:
        self.put_values: list[dict[Metric, float]] = []

    def put(self, values: dict[Metric, float]) -> None:
        self.put_values.append(values)


def line(step: int) -> bytes:
    values = {"step": step, "loss": 8.0 - step, "grad_norm": 1.5, "tokens": 2048, "seconds": 0.25 * step}
    return json.dumps(values).encode() + b"\n"


def test_metrics_are_made_of_new_steps_only(records: RunRecords) -> None:
    sink = Sink()
    metrics = StepMetrics(records, lambda: 1, lambda: 10, sink, pause_s=0)

    metrics.publish()
    records.publish(1, "steps.jsonl", line(1) + line(2) + b'{"step": 3')
    metrics.publish()
    metrics.publish()
    records.publish(1, "steps.jsonl", line(1) + line(2) + line(3))
    metrics.publish()

    assert sink.put_values == [
        {
            Metric.LOSS: 6.0,
            Metric.GRADIENT_NORM: 1.5,
            Metric.STEP_SECONDS: 0.375,
            Metric.TOKENS_PER_SECOND: 4096 / 0.75,
            Metric.CHECKPOINT_STEP: 10.0,
        },
        {
            Metric.LOSS: 5.0,
            Metric.GRADIENT_NORM: 1.5,
            Metric.STEP_SECONDS: 0.75,
            Metric.TOKENS_PER_SECOND: 2048 / 0.75,
            Metric.CHECKPOINT_STEP: 10.0,
        },
    ]


def test_there_is_no_checkpoint_metric_before_the_first_commit(records: RunRecords) -> None:
    sink = Sink()
    records.publish(1, "steps.jsonl", line(1))

    StepMetrics(records, lambda: 1, lambda: None, sink, pause_s=0).publish_when_due()

    assert Metric.CHECKPOINT_STEP not in sink.put_values[0]


def test_there_are_no_metrics_before_the_first_epoch(records: RunRecords) -> None:
    sink = Sink()

    StepMetrics(records, lambda: 0, lambda: None, sink, pause_s=0).publish()

    assert sink.put_values == []


def test_the_next_epoch_is_read_from_its_beginning_after_the_rest_of_the_one_before(records: RunRecords) -> None:
    sink, epoch = Sink(), [1]
    metrics = StepMetrics(records, lambda: epoch[0], lambda: None, sink, pause_s=0)
    records.publish(1, "steps.jsonl", line(1))
    metrics.publish()
    records.publish(1, "steps.jsonl", line(1) + line(2))
    records.publish(2, "steps.jsonl", line(3))
    epoch[0] = 2
    metrics.publish()
    metrics.publish()

    assert [values[Metric.LOSS] for values in sink.put_values] == [7.0, 5.0]
    assert sink.put_values[1][Metric.STEP_SECONDS] == pytest.approx((0.5 + 0.75) / 2)


@pytest.mark.parametrize("odd", [b'{"step": 2}', b"{", b"[]", line(2).replace(b"6.0", b"null").strip()])
def test_a_line_that_is_not_whole_is_left_out(records: RunRecords, odd: bytes) -> None:
    sink = Sink()
    records.publish(1, "steps.jsonl", line(1) + odd + b"\n")
    StepMetrics(records, lambda: 1, lambda: None, sink, pause_s=0).publish()

    assert [values[Metric.LOSS] for values in sink.put_values] == [7.0]


def test_nothing_is_published_twice_within_the_pause(records: RunRecords) -> None:
    sink, clock = Sink(), [0.0]
    metrics = StepMetrics(records, lambda: 1, lambda: None, sink, pause_s=10, clock=lambda: clock[0])
    for second in range(25):
        clock[0] = float(second)
        records.publish(1, "steps.jsonl", b"".join(line(step) for step in range(1, second + 2)))
        metrics.publish_when_due()

    assert len(sink.put_values) == 3
