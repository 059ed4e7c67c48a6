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

_REPLACED_S = 1800
"""Once a run has trained, a coordinator that is lost may take as long to be there again, whatever the deadline of the
start."""

_APART_S = 60.0
"""Between two nodes that would give the same fleet back, so that neither ends the other halfway."""


class Lookout:
    """Keeps the address of the run's controller, and notices that the run is over.

    Until a controller has answered, the node itself reports that it is joining. If none answers for longer than nodes
    may take to come up, and for no less than half an hour once the run has trained, and none writes its records either,
    the node gives the fleet back: nodes would wait, and cost, without an end.

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
        self._concluded = False
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
        if attempt(self._gone if self._concluded else self._is_over) or self._is_headless():
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
        silence = self._desk.silence(self._clock())
        if self._concluded or silence <= self._spec.policy.start_deadline_s:
            return False
        limit = attempt(self._longest_silence)
        if limit is None or silence <= limit + self._turn() * _APART_S or attempt(self._hears_others) is not False:
            return False
        return attempt(lambda: self._conclude(limit)) is True

    def _longest_silence(self) -> int:
        """Seconds without a controller after which none is expected any more."""
        limit = self._spec.policy.start_deadline_s
        return max(limit, _REPLACED_S) if self._records.epochs() else limit

    def _turn(self) -> int:
        """How many nodes of the run give it up before this one does."""
        there = sorted(one.instance_id for one in attempt(self._records.nodes) or () if not one.state.ended)
        name = self._host.node.instance_id
        return there.index(name) if name in there else len(there)

    def _hears_others(self) -> bool:
        """Whether a controller that this node does not reach still writes about the nodes."""
        recent = now() - timedelta(seconds=self._spec.policy.start_deadline_s)
        others = (status for status in self._records.nodes() if status.instance_id != self._host.node.instance_id)
        return any(status.updated > recent and status.state is not NodeState.JOINING for status in others)

    def _conclude(self, limit: int) -> bool:
        """Gives the other nodes back, then writes the outcome, frees the environment, and gives this node back.

        Whoever sees the outcome may start the next run, whose nodes must not be released then; and this node's end is
        the end of what it does.
        """
        self._host.fleet(self._spec).release(but=self._host.node.instance_id)
        detail = f"no coordinator for {limit} s; resume the job"
        self._records.conclude(Outcome(state="failed", detail=detail, ended=now()))
        self._host.ledger.release(self._spec)
        self._concluded = True
        return self._gone()

    def _gone(self) -> bool:
        """Gives this node back; to a run that has begun meanwhile the fleet gives another one."""
        fleet, name = self._host.fleet(self._spec), self._host.node.instance_id
        if self._host.ledger.current():
            fleet.replace(name)
        else:
            fleet.give_back(name)
        return True
