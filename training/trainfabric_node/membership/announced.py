"""What EC2 announces about nodes through EventBridge and a queue: a second source of notices beside each node's own.

Sources (read 2026-11-30), all of the EC2 User Guide: "Spot Instance interruption notices" and "EC2 instance rebalance
recommendations" (`detail` names `instance-id`, the first `instance-action` as well); "Monitor interruptible Capacity
Reservations", whose copies name one event in two ways, two minutes ahead, with `instance-termination-time`; "Monitor
Capacity Blocks using EventBridge", whose copies name the event in two ways as well: 40 minutes before the end, with
`capacity-reservation-id` and `end-date`, as instances are terminated from 30 minutes before the end on.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from trainfabric_node.jobs.aws import aws_client, aws_errors
from trainfabric_node.membership.protocol import Notice
from trainfabric_plan.errors import TrainfabricError

_LOG = logging.getLogger(__name__)

STALE = timedelta(minutes=5)
"""An older event says nothing about now: a notice is two minutes long, a Capacity Block's ten."""

_LONG_POLL_S = 20
"""The longest that SQS waits for a message (Amazon SQS API reference, ReceiveMessage)."""

_MOST = 10
"""Messages in one answer (the same)."""

_REBALANCE = "EC2 Instance Rebalance Recommendation"
_TAKEN = (
    "EC2 Spot Instance Interruption Warning",
    "EC2 Capacity Reservation Instance Interruption Warning",
    "EC2 Interruptible Capacity Reservation Instance Interruption Warning",
)
_BLOCK_ENDS = ("Capacity Block Expiration Warning", "Capacity Block Reservation Expiration Warning")


@dataclass(frozen=True, kw_only=True)
class NodeNotice:
    """EC2 takes one node back, or may: what the node may have read in its own metadata as well."""

    instance_id: str
    notice: Notice


@dataclass(frozen=True, kw_only=True)
class BlockEnds:
    """A Capacity Block ends at this time (as EC2 writes it), and all of its nodes go."""

    reservation: str
    end: str


Announcement = NodeNotice | BlockEnds


def announcement(event: Mapping[str, Any]) -> Announcement | None:
    """What an EventBridge event says to a controller; `None` if nothing, or if it is no event of EC2."""
    kind, detail = event.get("detail-type"), event.get("detail")
    if event.get("source") != "aws.ec2" or not isinstance(detail, Mapping):
        return None
    if kind in _BLOCK_ENDS:
        reservation, end = detail.get("capacity-reservation-id"), detail.get("end-date")
        return BlockEnds(reservation=str(reservation), end=str(end)) if reservation else None
    instance = detail.get("instance-id")
    if not instance:
        return None
    if kind == _REBALANCE:
        notice = Notice(kind="rebalance", detail=f"recommended at {event.get('time')}")
    elif kind in _TAKEN:
        notice = Notice(kind="spot", detail=_when(event, detail))
    else:
        return None
    return NodeNotice(instance_id=str(instance), notice=notice)


def _when(event: Mapping[str, Any], detail: Mapping[str, Any]) -> str:
    """As the node's own metadata say it, if the time is told; a spot warning names only its own."""
    action, at = detail.get("instance-action", "terminate"), detail.get("instance-termination-time")
    return f"{action} at {at}" if at else f"{action} two minutes after {event.get('time')}"


def is_stale(event: Mapping[str, Any], now: datetime) -> bool:
    """Whether an event is too old to say anything about now; one without a time is not believed."""
    try:
        sent = datetime.fromisoformat(str(event.get("time")))
    except ValueError:
        return True
    return now - (sent if sent.tzinfo else sent.replace(tzinfo=UTC)) > STALE


class Announcements:
    """Reads the queue of one environment, a long poll a call; training goes on without it if it does not answer.

    Messages are deleted whatever they say, as there is nobody else who reads them: EC2's events name no environment, so
    that most of them are about nodes of others.

    Args:
        queue_url: Of the queue.
        region: Where it is.
        take: Called with each announcement that is not too old.
        is_over: Whether the run has ended; then nothing is read any more, as the next one reads for itself.
    """

    def __init__(
        self, queue_url: str, region: str, take: Callable[[Announcement], None], is_over: Callable[[], bool]
    ) -> None:
        self._url = queue_url
        self._take = take
        self._is_over = is_over
        self._where = f"events queue {queue_url}"
        self._client: Any = aws_client("sqs", region, self._where)
        self._is_in_trouble = False

    def work(self) -> None:
        """Waits for messages and takes them; that the queue does not answer is told once."""
        if self._is_over():
            return
        try:
            self._receive()
        except TrainfabricError as error:
            if not self._is_in_trouble:
                _LOG.warning("%s; notices of the nodes' own metadata are still seen", error)
            self._is_in_trouble = True
        else:
            self._is_in_trouble = False

    def _receive(self) -> None:
        with aws_errors(self._where, "sqs"):
            messages = self._client.receive_message(
                QueueUrl=self._url, MaxNumberOfMessages=_MOST, WaitTimeSeconds=_LONG_POLL_S
            ).get("Messages", [])
        for message in messages:
            if self._is_over():  # it is seen again after its time of invisibility, by the controller of the next run
                return
            self._read(message["Body"])
            with aws_errors(self._where, "sqs"):
                self._client.delete_message(QueueUrl=self._url, ReceiptHandle=message["ReceiptHandle"])

    def _read(self, body: str) -> None:
        try:
            event = json.loads(body)
        except ValueError:
            return
        found = announcement(event) if isinstance(event, dict) else None
        if found and not is_stale(event, datetime.now(UTC)):
            self._take(found)
