"""The thread that looks into the bucket: where the controller is, and whether the run is over or has no controller."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

from trainfabric_node.agent.bell import Bell
from trainfabric_node.agent.desk import Desk
from trainfabric_node.agent.host import Host, attempt
from trainfabric_node.jobs.records import ControllerAddress, JobSpec, NodeState, NodeStatus, Outcome, now

_SELDOM = 5
"""While the controller answers, the bucket is asked so many times less often."""


class Lookout:
    """Keeps the address of the run's controller, and notices that the run is over.

    Until a controller has answered, the node itself reports that it is joining. If none answers for longer than nodes
    may take to come up, and none writes its records either, the node gives the fleet back: nodes would wait, and cost,
    without an end.

    Args:
        host: This node.
        spec: The run.
        desk: Tells whether the controller answers.
        ring: Called when the run is over.
        clock: Seconds, monotonic.
    """

    def __init__(
        self,
        host: Host,
        spec: JobSpec,
        desk: Desk,
        ring: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._host = host
        self._spec = spec
        self._desk = desk
        self._ring = ring
        self._clock = clock
        self._records = host.ledger.run(spec.job, spec.run)
        self._every_s = host.timing(spec).ask_s
        self._bell = Bell()
        self._stopped = False
        self._reported = False
        self.controller: ControllerAddress | None = None
        self.over = False

    def run(self) -> None:
        """Looks until `stop`, or until the run is over."""
        while not (self._stopped or self.over):
            self.look()
            self._bell.wait(self._every_s * (_SELDOM if self._desk.controller else 1))

    def hurry(self) -> None:
        """Lets the next look be now."""
        self._bell.ring()

    def stop(self) -> None:
        """Lets `run` return."""
        self._stopped = True
        self._bell.ring()

    def look(self) -> None:
        """Looks once."""
        self.controller = attempt(self._records.controller) or self.controller
        if not self._reported:
            self._reported = bool(self._desk.controller) or bool(attempt(self._report_joining))
        if attempt(self._is_over) or self._is_headless():
            self.over = True
            self._ring()

    def _report_joining(self) -> bool:
        node = self._host.node
        known = {status.instance_id for status in self._records.nodes()}
        if node.instance_id not in known:
            self._records.report(
                NodeStatus(instance_id=node.instance_id, role=node.role, state=NodeState.JOINING, updated=now())
            )
        return True

    def _is_over(self) -> bool:
        holder = self._host.ledger.current()
        return holder is None or holder.nonce != self._spec.nonce

    def _is_headless(self) -> bool:
        """Whether no controller is there for too long; the run has failed then, and its nodes are given back."""
        limit = self._spec.policy.start_deadline_s
        if self._desk.silence(self._clock()) <= limit or attempt(self._hears_others) is not False:
            return False
        return attempt(self._conclude) is True

    def _hears_others(self) -> bool:
        """Whether a controller that this node does not reach still writes about the nodes."""
        recent = now() - timedelta(seconds=self._spec.policy.start_deadline_s)
        others = (status for status in self._records.nodes() if status.instance_id != self._host.node.instance_id)
        return any(status.updated > recent and status.state is not NodeState.JOINING for status in others)

    def _conclude(self) -> bool:
        """In this order: whoever sees the outcome may start the next run, whose nodes must not be released then."""
        limit = self._spec.policy.start_deadline_s
        self._host.release_nodes(self._spec)
        detail = f"no coordinator for {limit} s; resume the job"
        self._records.conclude(Outcome(state="failed", detail=detail, ended=now()))
        self._host.ledger.release(self._spec)
        return True
