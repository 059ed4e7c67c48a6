"""One run of a job, on one node: what its controller wants is done, until it is over or the node has to go."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from types import TracebackType

from trainfabric_node.agent.beats import Beats
from trainfabric_node.agent.bell import Bell
from trainfabric_node.agent.crew import Crew
from trainfabric_node.agent.desk import Desk
from trainfabric_node.agent.epoch import Epoch
from trainfabric_node.agent.host import Host
from trainfabric_node.agent.launcher import Launcher
from trainfabric_node.agent.lease import LeaseKeeper
from trainfabric_node.agent.lookout import Lookout
from trainfabric_node.agent.notices import NoticeWatch
from trainfabric_node.agent.publisher import Uploads
from trainfabric_node.jobs.records import JobSpec
from trainfabric_node.membership.protocol import Answer, EpochOrder, Notice, most_urgent

_LOG = logging.getLogger(__name__)
_FENCE_S = 2.0
"""For the launcher to kill the ranks when the lease is lost; then it is killed itself."""

_FAREWELL_S = 2.0
"""For a node without ranks to tell the controller that it leaves."""

_UPLOAD_S = 15.0
_THREADS_S = 5.0


class NodeRun:
    """Takes this node through one run.

    The main loop, which calls `look`, holds all decisions. Around it, each on a thread of its own so that none waits
    for another: beats, the lease, notices, the bucket, uploads, and the connection to the launcher.

    Args:
        host: This node.
        spec: The run.
        launcher: Starts and kills ranks.
        bell: Rung whenever there is something to look at.
        leaving: Whether the supervisor was told to leave.
    """

    def __init__(self, host: Host, spec: JobSpec, launcher: Launcher, bell: Bell, leaving: Callable[[], bool]) -> None:
        records, files, timing = host.ledger.run(spec.job, spec.run), host.files(spec), host.timing(spec)
        self._host = host
        self._spec = spec
        self._timing = timing
        self._launcher = launcher
        self._bell = bell
        self._leaving = leaving
        self._leaving_since: float | None = None
        self._epoch: Epoch | None = None
        self._newest = 0
        self._lease_lost = False
        self._desk = Desk(host.node, spec.nonce, bell.ring, time.monotonic())
        self._lease = LeaseKeeper(timing.lease_s, self._fence)
        self._lookout = Lookout(host, spec, self._desk, bell.ring)
        self._beats = Beats(
            self._desk, lambda: self._lookout.controller, self._lease.renew, self._lookout.hurry, timing
        )
        self._notices = NoticeWatch(host.notices, timing.notice_s, bell.ring)
        self._uploads = Uploads(records, files, host.node.instance_id, timing.publish_s, bell.ring)
        self._crew = Crew(bell)

    def follow(self) -> None:
        """Takes part until the run is over, or until the node has left it."""
        _LOG.info("job %s, run %d: taking part", self._spec.job, self._spec.run)
        with self:
            while not self.look(time.monotonic()):
                self._bell.wait(self._timing.look_s)
        _LOG.info("job %s, run %d: over on this node", self._spec.job, self._spec.run)

    def __enter__(self) -> NodeRun:
        for name, worker in (
            ("lease", self._lease),
            ("lookout", self._lookout),
            ("beats", self._beats),
            ("notices", self._notices),
            ("uploads", self._uploads),
        ):
            self._crew.start(name, worker.run, worker.stop)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self._epoch is not None:
            self._epoch.kill()
        if error is None:
            self._await_uploads()
        self._crew.stop(_THREADS_S)

    def look(self, now: float) -> bool:
        """Looks at everything once, does what follows, and says how the node is; whether the run is over here."""
        self._crew.check()
        answer = self._desk.take()
        if self._lookout.over or (answer is not None and answer.concluded):
            return True
        if self._lease_lost:
            self._lose_lease(now)
        if answer is not None:
            self._obey(answer, now)
        self._say(now)
        return self._may_leave(now)

    def _obey(self, answer: Answer, now: float) -> None:
        if answer.order is not None:
            self._begin(answer.order, now)
        elif self._epoch is not None and answer.epoch > self._epoch.number:
            _LOG.info("epoch %d goes on without this node", answer.epoch)
            self._epoch.kill()
            self._epoch = None
        drain = answer.drain
        if drain is not None and self._epoch is not None and drain.epoch == self._epoch.number:
            self._epoch.ask_to_leave(drain.at)

    def _begin(self, order: EpochOrder, now: float) -> None:
        """Starts an epoch once; the launcher kills what is left of an earlier one."""
        node = self._host.node
        own = [(member.instance_id, member.incarnation) for member in order.record.nodes]
        if order.record.number <= self._newest or (node.instance_id, node.incarnation) not in own:
            return
        self._newest = order.record.number
        place = own.index((node.instance_id, node.incarnation))
        _LOG.info("epoch %d: rank %d of %d nodes", self._newest, place, len(own))
        self._epoch = Epoch(self._host, self._spec, order, place, self._launcher, self._uploads, now)

    def _say(self, now: float) -> None:
        epoch = None if self._epoch is None else self._epoch.look(now)
        self._desk.say(ready=self._launcher.ready, notice=self._notice(), epoch=epoch)

    def _notice(self) -> Notice | None:
        leave = Notice(kind="leave", detail="the supervisor was told to leave") if self._leaving() else None
        return most_urgent(self._notices.notice, leave)

    def _fence(self) -> None:
        """Called by the lease's thread."""
        self._lease_lost = True
        self._launcher.end(_FENCE_S)
        self._bell.ring()

    def _lose_lease(self, now: float) -> None:
        self._lease_lost = False
        _LOG.warning("no answer of the controller for %g s: the ranks are ended", self._timing.lease_s)
        if self._epoch is not None:
            self._epoch.fail(f"no answer of the controller for {self._timing.lease_s:g} s", now)

    def _may_leave(self, now: float) -> bool:
        """Whether the supervisor was told to leave and its ranks have: in order, unless that takes too long."""
        if not self._leaving():
            return False
        if self._leaving_since is None:
            _LOG.info("told to leave")
            self._leaving_since = now
        waited = now - self._leaving_since
        if self._epoch is None or self._epoch.ended:
            return self._desk.has_heard() or waited > _FAREWELL_S
        return waited > self._timing.drain_s

    def _await_uploads(self) -> None:
        asked, deadline = self._uploads.ask(), time.monotonic() + _UPLOAD_S
        while not self._uploads.has_finished(asked) and time.monotonic() < deadline:
            self._bell.wait(deadline - time.monotonic())
