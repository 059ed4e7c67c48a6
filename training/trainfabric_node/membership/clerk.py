"""What a controller writes into the bucket and asks of it, on a thread of its own: slowness there delays no answer."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from trainfabric_node.checkpoint import LogEntry
from trainfabric_node.jobs.ledger import JobLedger
from trainfabric_node.jobs.records import REPORT_S, JobSpec, NodeStatus, StopRequest, now
from trainfabric_plan.contract import Event

_REPORT = timedelta(seconds=REPORT_S / 2)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the bucket says.

    Attributes:
        stop: That the run is to end.
        controller: Incarnation that is announced as the run's controller, if any is.
        holder: Nonce of the run that holds the environment, if any does.
        commits: All commits of the job.
    """

    stop: StopRequest | None
    controller: str | None
    holder: str | None
    commits: list[LogEntry]


class Clerk:
    """Keeps the events and the nodes' statuses of a run in the bucket, and asks it what others want.

    Args:
        ledger: The jobs of the environment.
        spec: The run.
        incarnation: Of the controller.
        statuses: How far each node is now.
        hear: Called with what the bucket says.
        ask_s: Seconds between two questions.
        clock: Seconds, monotonic.
    """

    def __init__(
        self,
        ledger: JobLedger,
        spec: JobSpec,
        incarnation: str,
        statuses: Callable[[], list[NodeStatus]],
        hear: Callable[[Asked], None],
        ask_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ledger = ledger
        self._spec = spec
        self._incarnation = incarnation
        self._statuses = statuses
        self._hear = hear
        self._ask_s = ask_s
        self._clock = clock
        self._records = ledger.run(spec.job, spec.run)
        self._checkpoints = ledger.checkpoints(spec.job)
        self._events: list[bytes] = []
        self._published = 0
        self._reported: dict[str, NodeStatus] = {}
        self._asked = clock() - ask_s

    def say(self, event: Event, fields: dict[str, Any]) -> None:
        """Adds an event, as of now; it is published with the next call of `work`."""
        time = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._events.append(json.dumps({"event": event.value, "time": time, **fields}).encode() + b"\n")

    def work(self) -> None:
        """Publishes what has changed, and asks when it is time to; raises `Unreachable`."""
        if self._clock() - self._asked >= self._ask_s:
            self._asked = self._clock()
            self._ask()
        self.publish()

    def publish(self) -> None:
        """Publishes events and statuses that have changed; raises `Unreachable`."""
        count = len(self._events)
        if count > self._published:
            self._records.publish_events(self._incarnation, b"".join(self._events[:count]))
            self._published = count
        for status in self._statuses():
            if self._is_news(status):
                self._records.report(status)
                self._reported[status.instance_id] = status

    def _is_news(self, status: NodeStatus) -> bool:
        told = self._reported.get(status.instance_id)
        if told is None or told.model_copy(update={"updated": status.updated}) != status:
            return True
        return not status.state.ended and now() - told.updated > _REPORT

    def _ask(self) -> None:
        controller, holder = self._records.controller(), self._ledger.current()
        self._hear(
            Asked(
                stop=self._records.stop_request(),
                controller=controller.incarnation if controller else None,
                holder=holder.nonce if holder else None,
                commits=self._checkpoints.commits(),
            )
        )
