"""One epoch on one node: its ranks are started, watched, asked to leave, and judged."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from trainfabric_node.agent.command import start_message
from trainfabric_node.agent.host import Host
from trainfabric_node.agent.launcher import Launcher
from trainfabric_node.agent.procfs import stacks
from trainfabric_node.agent.publisher import Uploads
from trainfabric_node.agent.ranks import RankSight, RankWatch, Standstill, see, steps
from trainfabric_node.agent.verdict import Verdict, first_lost, judge
from trainfabric_node.command.start import command_start
from trainfabric_node.jobs.records import JobSpec
from trainfabric_node.membership.protocol import EpochOrder, EpochState, NodeEpoch, Stall
from trainfabric_node.membership.timing import Timing

_LOG = logging.getLogger(__name__)
_START_S = 30.0
"""For the launcher to kill what is left of an earlier epoch and to fork."""

_LAST_WORDS_S = 2.0
"""After a failure, for the epoch's agent to say which rank began it; then what is left is killed."""

_UPLOAD_S = 15.0
"""For the upload of what an epoch has written, before its end is reported: the node may be taken away after that."""


class Epoch:
    """The ranks of one epoch on this node. Times are in seconds of one clock.

    Args:
        host: This node.
        spec: The run.
        order: The epoch.
        place: The node's rank in it.
        launcher: Starts and kills the ranks.
        uploads: What the ranks write is uploaded before their end is reported.
        now: When it begins.
    """

    def __init__(
        self, host: Host, spec: JobSpec, order: EpochOrder, place: int, launcher: Launcher, uploads: Uploads, now: float
    ) -> None:
        record, count = order.record, order.record.plan.ranks_per_node
        self.number = record.number
        self._node = host.node
        self._alone = len(record.nodes) == 1
        self._launcher = launcher
        self._uploads = uploads
        self._files = host.files(spec).epoch(record.number)
        self._is_own = spec.command is not None  # somebody else's: it counts as one rank of each node
        self._ranks = range(place, place + 1) if self._is_own else range(place * count, (place + 1) * count)
        self._watch = RankWatch(_steps_may_take_any_time(host.timing(spec)) if self._is_own else host.timing(spec), now)
        self._begun = now
        self._sights: list[RankSight] = []
        self._first_lost: list[int] = []
        self._examination: _Examination | None = None
        self._verdict: Verdict | None = None
        self._judged = now
        self._asked = 0
        self._said = NodeEpoch(number=record.number, state="starting")
        self._files.prepare(spec.recipe, record.plan)
        host.files(spec).cache.mkdir(parents=True, exist_ok=True)
        uploads.add(record.number)
        self._over = not launcher.start(_message(host, spec, order, place))
        if self._over:
            self._decide(Verdict(state="failed", detail="the launcher is not warm"), now)

    @property
    def ended(self) -> bool:
        """Whether it is over on this node, and said so."""
        return self._said.state in ("resume", "done", "failed")

    def ask_to_leave(self, at: Literal["now", "checkpoint"]) -> None:
        """Tells the ranks to save and to leave, at the next step or at the next that is saved anyway."""
        if self._verdict is None:
            self._files.ask_to_leave(at)

    def fail(self, detail: str, now: float) -> None:
        """Kills the ranks for a reason of the supervisor; nothing happens if the epoch is over already."""
        if self._verdict is None:
            self._decide(Verdict(state="failed", detail=detail), now)
            self.kill()

    def kill(self) -> None:
        """Kills what is left of the ranks; returns when nothing is."""
        self._launcher.end()
        self._over = True

    def look(self, now: float) -> NodeEpoch:
        """Looks at the ranks and says how far they are."""
        if not self._over:
            self._observe(now)
            self._over = self._launcher.gone or self._launcher.status is not None
            if self._verdict and not self._over and now - self._judged > _LAST_WORDS_S:
                self.kill()
        self._said = self._said_next(now)
        return self._said

    def _observe(self, now: float) -> None:
        gone, status = self._launcher.gone, self._launcher.status
        self._sights = see(self._files, self._ranks)
        self._first_lost = self._first_lost or first_lost(self._sights)
        printed = "" if status is None else self._files.printed()
        verdict = judge(self._sights, self._first_lost, status, printed, alone=self._alone)
        if gone and (verdict is None or (status is None and any(one.lost for one in self._sights))):
            verdict = Verdict(state="failed", detail="the launcher has ended, and the ranks with it")
        if verdict is not None and (self._verdict is None or self._verdict.state == "failed" == verdict.state):
            self._decide(verdict, now)
        if self._verdict is None:
            self._examine(now)

    def _examine(self, now: float) -> None:
        """Fails the epoch when ranks stand still, once it is known what they do."""
        if self._examination is not None:
            if self._examination.done:
                self._stand_still(self._examination, now)
            return
        if not self._launcher.confirmed:
            if now - self._begun > _START_S:
                self.fail(f"the launcher did not start the ranks within {_START_S:g} s", now)
            return
        still = self._watch.look(self._sights, now)
        if still is not None:
            pids = {one.rank: one.beat.pid for one in self._sights if one.rank in still.ranks and one.beat}
            self._examination = _Examination(still, pids)

    def _stand_still(self, found: _Examination, now: float) -> None:
        node = self._node
        stalls = tuple(
            Stall(rank=rank, host=node.address, detail=detail, stack=found.stacks.get(rank, ""))
            for rank, detail in found.still.ranks.items()
        )
        self._said = self._said.model_copy(update={"stalls": stalls})
        for stall in stalls:
            _LOG.warning("rank %d at %s %s\n%s", stall.rank, stall.host, stall.detail, stall.stack)
        self.fail(f"{found.still.detail}, on {node.instance_id} at {node.address}", now)

    def _decide(self, verdict: Verdict, now: float) -> None:
        if self._verdict is None:
            self._judged = now
            self._asked = self._uploads.ask()
        if verdict != self._verdict:
            _LOG.info("epoch %d: %s %s", self.number, verdict.state, verdict.detail)
        self._verdict = verdict

    def _said_next(self, now: float) -> NodeEpoch:
        """A failure is said at once, an end in order when what was written is uploaded."""
        verdict, step = self._verdict, max(self._said.step, steps(self._sights))
        if verdict is None:
            return self._said.model_copy(update={"state": self._state(step), "step": step})
        waited = now - self._judged > _UPLOAD_S
        if verdict.state != "failed" and not (self._uploads.has_finished(self._asked) or waited):
            return self._said.model_copy(update={"step": step})
        said: Mapping[str, object] = {
            "state": verdict.state,
            "step": step,
            "detail": verdict.detail,
            "hopeless": verdict.hopeless,
            "of_others": verdict.of_others,
        }
        return self._said.model_copy(update=said)

    def _state(self, step: int) -> EpochState:
        moving = any(one.beat and one.beat.phase not in ("start", "restore") for one in self._sights)
        return "running" if moving and (step or self._is_own) else self._said.state


def _message(host: Host, spec: JobSpec, order: EpochOrder, place: int) -> dict[str, Any]:
    if spec.command is None:
        return start_message(host, spec, order, place)
    return command_start(host, spec, order, place).model_dump(mode="json")


def _steps_may_take_any_time(timing: Timing) -> Timing:
    """A command need not tell of its steps; that it hangs is not seen, only that its process is stopped or gone."""
    return replace(timing, step_stalled_s=math.inf)


class _Examination:
    """Finds out what ranks that stand still are doing, which takes seconds, in a thread of its own."""

    def __init__(self, still: Standstill, pids: Mapping[int, int]) -> None:
        self.still = still
        self.stacks: dict[int, str] = {}
        self._thread = threading.Thread(target=self._look, args=(dict(pids),), name="stacks", daemon=True)
        self._thread.start()

    @property
    def done(self) -> bool:
        """Whether it is known."""
        return not self._thread.is_alive()

    def _look(self, pids: dict[int, int]) -> None:
        self.stacks = stacks(pids)
