"""What EC2 announces through EventBridge: as the EC2 User Guide shows it, and in a queue of an embedded AWS."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest

from tests.node.embedded import running_moto
from trainfabric_node.membership.announced import (
    Announcement,
    Announcements,
    BlockEnds,
    NodeNotice,
    announcement,
    is_stale,
)
from trainfabric_node.membership.protocol import Notice

TIME = "2026-11-30T20:58:00Z"


def event(kind: str, detail: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "version": "0",
        "id": "12345678-1234-1234-1234-123456789012",
        "detail-type": kind,
        "source": "aws.ec2",
        "account": "123456789012",
        "time": TIME,
        "region": "us-east-2",
        "resources": ["arn:aws:ec2:us-east-2a:instance/i-1234567890abcdef0"],
        "detail": detail,
        **changes,
    }


SPOT = event(
    "EC2 Spot Instance Interruption Warning", {"instance-id": "i-1234567890abcdef0", "instance-action": "terminate"}
)
REBALANCE = event("EC2 Instance Rebalance Recommendation", {"instance-id": "i-1234567890abcdef0"})
INTERRUPTIBLE = {
    "instance-id": "i-1234567890abcdef0",
    "instance-action": "terminate",
    "instance-termination-time": "2026-11-30T21:00:00Z",
    "azId": "use2-az1",
}
BLOCK = {"capacity-reservation-id": "cr-0123", "end-date": "2026-11-30T21:38:00Z"}


def test_a_spot_warning_is_the_notice_of_its_node() -> None:
    assert announcement(SPOT) == NodeNotice(
        instance_id="i-1234567890abcdef0",
        notice=Notice(kind="spot", detail="terminate two minutes after 2026-11-30T20:58:00Z"),
    )


def test_a_rebalance_recommendation_says_when_as_the_metadata_service_does() -> None:
    assert announcement(REBALANCE) == NodeNotice(
        instance_id="i-1234567890abcdef0", notice=Notice(kind="rebalance", detail=f"recommended at {TIME}")
    )


@pytest.mark.parametrize("kind", ["EC2 Capacity Reservation", "EC2 Interruptible Capacity Reservation"])
def test_an_interruptible_reservation_takes_nodes_back_under_either_of_its_names(kind: str) -> None:
    assert announcement(event(f"{kind} Instance Interruption Warning", INTERRUPTIBLE)) == NodeNotice(
        instance_id="i-1234567890abcdef0", notice=Notice(kind="spot", detail="terminate at 2026-11-30T21:00:00Z")
    )


@pytest.mark.parametrize("kind", ["Capacity Block", "Capacity Block Reservation"])
def test_a_capacity_block_ends_under_either_of_its_names(kind: str) -> None:
    assert announcement(event(f"{kind} Expiration Warning", BLOCK)) == BlockEnds(
        reservation="cr-0123", end="2026-11-30T21:38:00Z"
    )


@pytest.mark.parametrize(
    "other",
    [
        event("Capacity Block Delivered", BLOCK),
        event("EC2 Instance State-change Notification", {"instance-id": "i-1", "state": "running"}),
        event("EC2 Spot Instance Interruption Warning", {}),
        event("Capacity Block Expiration Warning", {"end-date": "2026-11-30T21:38:00Z"}),
        {**SPOT, "source": "com.example"},
        {**SPOT, "detail": None},
        {},
    ],
)
def test_other_events_say_nothing(other: dict[str, Any]) -> None:
    assert announcement(other) is None


def test_an_event_is_stale_after_five_minutes_or_without_a_time() -> None:
    sent = datetime.fromisoformat(TIME)

    assert not is_stale(SPOT, sent + timedelta(seconds=299))
    assert is_stale(SPOT, sent + timedelta(seconds=301))
    assert is_stale({**SPOT, "time": "soon"}, sent)
    assert is_stale({}, sent)


class Queue:
    """A queue of the embedded AWS and its reader, which does not wait for messages."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr("trainfabric_node.membership.announced._LONG_POLL_S", 0)
        self.sqs = boto3.client("sqs")
        self.url = self.sqs.create_queue(QueueName="notices")["QueueUrl"]
        self.taken: list[Announcement] = []
        self.is_over = False
        self.reader = Announcements(self.url, "us-east-1", self.taken.append, lambda: self.is_over)

    def send(self, *events: dict[str, Any] | str) -> None:
        for one in events:
            self.sqs.send_message(QueueUrl=self.url, MessageBody=one if isinstance(one, str) else json.dumps(one))

    @property
    def left(self) -> tuple[int, int]:
        """Messages that may be received, and that are received and not deleted."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        found = self.sqs.get_queue_attributes(QueueUrl=self.url, AttributeNames=names)["Attributes"]
        return int(found[names[0]]), int(found[names[1]])


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Iterator[Queue]:
    with running_moto() as variables:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        yield Queue(monkeypatch)


def test_what_is_in_the_queue_is_taken_and_all_of_it_deleted(queue: Queue) -> None:
    fresh = {**SPOT, "time": datetime.now(UTC).isoformat()}
    queue.send(SPOT, fresh, "no JSON", "[]", {**fresh, "source": "com.example"})

    queue.reader.work()

    assert [one.instance_id for one in queue.taken if isinstance(one, NodeNotice)] == ["i-1234567890abcdef0"]
    assert (len(queue.taken), queue.left) == (1, (0, 0))


def test_nothing_is_read_when_the_run_is_over_and_nothing_lost_that_was_read_meanwhile(queue: Queue) -> None:
    fresh = {**SPOT, "time": datetime.now(UTC).isoformat()}
    queue.send(fresh)
    queue.is_over = True
    queue.reader.work()
    before = queue.left
    answers = iter([False, True])
    late = Announcements(queue.url, "us-east-1", queue.taken.append, lambda: next(answers))

    late.work()

    assert (before, queue.left, queue.taken) == ((1, 0), (0, 1), [])


def test_that_the_queue_does_not_answer_is_told_once_and_again_when_it_has_answered(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    def gone() -> list[str]:
        return [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]

    queue.sqs.delete_queue(QueueUrl=queue.url)
    queue.reader.work()
    queue.reader.work()
    once = gone()
    queue.sqs.create_queue(QueueName="notices")
    queue.reader.work()
    queue.sqs.delete_queue(QueueUrl=queue.url)
    queue.reader.work()

    assert len(once) == 1
    assert once[0].startswith(f"events queue {queue.url}: sqs must accept the request, got An error occurred")
    assert once[0].endswith("; notices of the nodes' own metadata are still seen")
    assert len(gone()) == 2
