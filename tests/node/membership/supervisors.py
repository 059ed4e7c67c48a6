"""Supervisors without ranks: they talk to a real controller over TCP, and say what a test wants them to say."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from tests.node.commits import manifest, write_part
from tests.node.membership.said import in_epoch
from trainfabric_node.jobs import JobLedger, JobSpec
from trainfabric_node.membership.client import Channel
from trainfabric_node.membership.protocol import Answer, Beat, Drain, EpochOrder, NodeEpoch, Notice, Pins
from trainfabric_plan.contract import Role
from trainfabric_plan.errors import Refused, Unreachable

BEAT_S = 0.1


class Supervisor:
    """Beats until the run is over, or it is killed; its ranks take a step with each beat, and save each tenth."""

    def __init__(
        self,
        ledger: JobLedger,
        job: JobSpec,
        instance_id: str,
        role: Role,
        address: str,
        ready: bool = True,
        placement: int = 0,
    ) -> None:
        self._placement = placement
        self.instance_id = instance_id
        self.ready = ready
        self.notice: Notice | None = None
        self.epoch: NodeEpoch | None = None
        self.order: EpochOrder | None = None
        self.orders: list[EpochOrder] = []
        self.drains: list[Drain] = []
        self.answers: list[Answer] = []
        self.is_frozen = False
        self.is_over = False
        self._ledger = ledger
        self._job = job
        self._role = role
        self._address = address
        self._lives = 0
        self._sequence = 0
        self._is_killed = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def kill(self) -> None:
        """The node is gone."""
        self._is_killed = True
        self._thread.join(10)

    def start_anew(self) -> None:
        """Only the supervisor; its ranks are gone with it."""
        self._lives += 1
        self.epoch = self.order = None

    def fail(self, detail: str, **more: Any) -> None:
        """One of its ranks."""
        assert self.epoch is not None
        self.epoch = in_epoch(self.epoch.number, "failed", self.epoch.step, detail=detail, **more)

    def _run(self) -> None:
        records = self._ledger.run(self._job.job, self._job.run)
        while not (self._is_killed or self.is_over):
            address = records.controller()
            try:
                if address is None:
                    raise Unreachable("no controller yet")
                with Channel(address.host, address.port) as channel:
                    self._talk(channel)
            except Unreachable:
                time.sleep(BEAT_S)

    def _talk(self, channel: Channel) -> None:
        while not (self._is_killed or self.is_over):
            while self.is_frozen and not self._is_killed:
                time.sleep(BEAT_S / 4)
            answer = channel.exchange(self._beat(), 2.0)
            self.answers.append(answer)
            self._obey(answer)
            self._train()
            time.sleep(BEAT_S)

    def _beat(self) -> Beat:
        self._sequence += 1
        return Beat(
            token=self._job.nonce,
            sequence=self._sequence,
            instance_id=self.instance_id,
            address=self._address,
            role=self._role,
            placement=self._placement,
            incarnation=f"{self.instance_id}.{self._lives}",
            ready=self.ready,
            pins=Pins(),
            notice=self.notice,
            epoch=self.epoch,
        )

    def _obey(self, answer: Answer) -> None:
        self.is_over = answer.concluded
        if answer.order:
            self.order = answer.order
            self.orders.append(answer.order)
            commits = self._ledger.checkpoints(self._job.job).commits()
            self.epoch = in_epoch(answer.order.record.number, "starting", commits[-1].step if commits else 0)
        elif self.epoch and answer.epoch > self.epoch.number:
            self.epoch = self.order = None
        if answer.drain and answer.drain not in self.drains:
            self.drains.append(answer.drain)

    def _train(self) -> None:
        epoch, order = self.epoch, self.order
        if epoch is None or order is None or epoch.state not in ("starting", "running"):
            return
        step = epoch.step + 1
        drain = next((drain for drain in self.drains if drain.epoch == epoch.number), None)
        leaves = drain is not None and (drain.at == "now" or step % 10 == 0)
        is_done = step == self._job.recipe.steps
        if leaves or is_done or step % 10 == 0:
            self._commit(order, step)
        state = "done" if is_done else "resume" if leaves else "running"
        self.epoch = in_epoch(epoch.number, state, step)

    def _commit(self, order: EpochOrder, step: int) -> None:
        if order.record.nodes[0].instance_id != self.instance_id:
            return
        checkpoints, nonce = self._ledger.checkpoints(self._job.job), order.record.nonce
        try:
            checkpoints.commit(manifest(step, nonce, write_part(checkpoints, step, nonce)))
        except Refused:
            return


def until(condition: Callable[[], object], within_s: float = 60.0, what: Callable[[], object] = lambda: "") -> float:
    """Waits until it holds; how long that took."""
    begun = time.monotonic()
    while not condition():
        assert time.monotonic() - begun < within_s, f"not within {within_s} s: {what()}"
        time.sleep(0.02)
    return time.monotonic() - begun
