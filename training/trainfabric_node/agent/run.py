"""One run of a job, on one node: join, train, watch, report."""

from __future__ import annotations

import logging
import shutil
import time
from dataclasses import dataclass

from trainfabric_node.agent.failure import how_it_failed
from trainfabric_node.agent.host import Host, attempt
from trainfabric_node.agent.launch import Launch, trainer_variables
from trainfabric_node.agent.metrics import StepMetrics
from trainfabric_node.agent.process import TrainerProcess
from trainfabric_node.agent.publisher import Publisher
from trainfabric_node.jobs.records import (
    BECAUSE_OF_ANOTHER,
    JobSpec,
    NodeState,
    NodeStatus,
    Rendezvous,
    StopReason,
    StopRequest,
    now,
)
from trainfabric_plan.contract import Role
from trainfabric_plan.errors import TrainfabricError

_LOG = logging.getLogger(__name__)
_KILL_S = 10.0
"""After SIGTERM; a trainer that is still there then is killed."""


@dataclass(frozen=True)
class NodeEnd:
    """How a run ended on this node."""

    state: NodeState
    detail: str = ""


NEVER_BEGAN = NodeEnd(NodeState.STOPPED, "stopped before training began")


class NodeRun:
    """Takes this node through one run."""

    def __init__(self, host: Host, spec: JobSpec) -> None:
        self._host = host
        self._spec = spec
        self._patience = host.patience
        self._records = host.ledger.run(spec.job, spec.run)
        self._files = host.files(spec)
        self._publisher = Publisher(self._records, self._files, host.node.instance_id, host.patience.publish_s)
        checkpoints = host.ledger.checkpoints(spec.job)
        self._metrics = StepMetrics(
            self._records,
            lambda: commit.step if (commit := checkpoints.newest()) else None,
            host.metrics,
            host.patience.metrics_s,
        )
        self._next_heartbeat = 0.0
        self._next_notice = 0.0
        self._notice: str | None = None

    def follow(self) -> NodeEnd:
        """Joins, trains until the trainer ends or has to, publishes what it left behind, and reports the end."""
        _LOG.info("job %s, run %d: joining as %s", self._spec.job, self._spec.run, self._host.node.role)
        attempt(lambda: self._report(NodeState.JOINING))
        met = self._meet()
        end = self._train(met) if isinstance(met, Rendezvous) else met
        if end.state is NodeState.FAILED:
            attempt(lambda: self._request("failed", f"on {self._host.node.instance_id}"))
        while not attempt(lambda: self._report(end.state, end.detail)) and not self._host.leaving.is_set():
            time.sleep(self._patience.poll_s)
        _LOG.info("job %s, run %d: %s %s", self._spec.job, self._spec.run, end.state, end.detail)
        return end

    def _meet(self) -> Rendezvous | NodeEnd:
        """Where the nodes meet; how the run ended on this node if it is to end before they have."""
        ours = Rendezvous(host=self._host.node.address, port=self._host.rendezvous_port)
        deadline = time.monotonic() + self._patience.meet_s
        while self._stop_reason() is None and self._is_current():
            if self._host.node.role is Role.COORDINATOR:
                attempt(lambda: self._records.announce(ours))
            found = attempt(self._records.rendezvous)
            if found:
                return found
            if time.monotonic() > deadline:
                return NodeEnd(NodeState.FAILED, f"no coordinator came up within {self._patience.meet_s:g} s")
            self._beat(NodeState.JOINING)
            time.sleep(self._patience.poll_s)
        return NEVER_BEGAN

    def _train(self, rendezvous: Rendezvous) -> NodeEnd:
        self._write_files()
        launch = Launch(
            spec=self._spec,
            node=self._host.node,
            rendezvous=rendezvous,
            checkpoints=self._host.checkpoints(self._spec),
            files=self._files,
        )
        variables = trainer_variables(self._host.variables, self._host.region)
        command = self._host.build_command(launch)
        with TrainerProcess(command, variables, self._files.directory, self._files.log) as trainer:
            attempt(lambda: self._report(NodeState.RUNNING))
            forced = self._watch(trainer)
            status = trainer.status
        attempt(self._publisher.publish)
        if self._host.node.role is Role.COORDINATOR:
            attempt(self._metrics.publish)
        return forced or self._judge(trainer, status)

    def _write_files(self) -> None:
        shutil.rmtree(self._files.directory, ignore_errors=True)
        self._files.output.mkdir(parents=True)
        self._files.cache.mkdir(parents=True, exist_ok=True)
        self._files.recipe.write_text(self._spec.recipe.model_dump_json(indent=2))
        self._files.plan.write_text(self._spec.plan.model_dump_json(indent=2))

    def _watch(self, trainer: TrainerProcess) -> NodeEnd | None:
        """Until the trainer has ended; how it ended if that had to be forced or it never began."""
        began, asked_at, reason = False, None, None
        while trainer.status is None:
            attempt(self._publisher.publish_when_due)
            self._beat(NodeState.RUNNING)
            began = began or trainer.has_children
            reason = self._stop_reason()
            if reason and asked_at is None:
                asked_at = time.monotonic()
                self._files.stop_flag.touch()
            allowed = self._patience.after(reason) if began and reason else self._patience.unbegun_s
            if asked_at is not None and time.monotonic() - asked_at >= allowed:
                self._terminate(trainer)
                return _forced(reason, allowed) if began else NEVER_BEGAN
            if not self._is_current():
                self._terminate(trainer)
                return NodeEnd(NodeState.FAILED, "the environment was released while the trainer ran")
            time.sleep(self._patience.poll_s)
        left_unbegun = asked_at is not None and not began and trainer.status != 0
        return NEVER_BEGAN if left_unbegun and reason != "failed" else None

    def _terminate(self, trainer: TrainerProcess) -> None:
        trainer.terminate()
        deadline = time.monotonic() + _KILL_S
        while trainer.status is None and time.monotonic() < deadline:
            time.sleep(0.05)

    def _beat(self, state: NodeState) -> None:
        if self._host.node.role is Role.COORDINATOR:
            attempt(self._metrics.publish_when_due)
        if time.monotonic() >= self._next_heartbeat:
            self._next_heartbeat = time.monotonic() + self._patience.heartbeat_s
            attempt(lambda: self._report(state))

    def _stop_reason(self) -> StopReason | None:
        """Why the run is to end; tells the other nodes if the reason is on this one."""
        request = attempt(self._records.stop_request)
        if request and request.reason == "failed":
            return "failed"
        why = self._interruption()
        if why is None:
            return request.reason if request else None
        if request is None:
            attempt(lambda: self._request("interrupted", f"{self._host.node.instance_id}: {why}"))
        return "interrupted"

    def _interruption(self) -> str | None:
        if self._host.leaving.is_set():
            return "the agent was told to leave"
        if self._notice is None and time.monotonic() >= self._next_notice:
            self._next_notice = time.monotonic() + self._patience.notice_s
            self._notice = attempt(self._host.interruption)
        return self._notice

    def _request(self, reason: StopReason, detail: str) -> None:
        self._records.request_stop(StopRequest(reason=reason, detail=detail, requested=now()))

    def _is_current(self) -> bool:
        """Whether the environment is still this run's, as far as the bucket answers."""
        try:
            holder = self._host.ledger.current()
        except TrainfabricError:
            return True
        return holder is not None and holder.nonce == self._spec.nonce

    def _judge(self, trainer: TrainerProcess, status: int | None) -> NodeEnd:
        if status != 0:
            alone = self._spec.plan.nodes == 1
            return NodeEnd(NodeState.FAILED, how_it_failed(status, trainer.output(), alone=alone))
        deadline = time.monotonic() + self._patience.result_s
        while time.monotonic() < deadline:
            result = attempt(self._records.result)
            if result:
                return NodeEnd(NodeState(result.status), f"at step {result.step}")
            time.sleep(self._patience.poll_s)
        return NodeEnd(NodeState.FAILED, "the trainer left with status 0, but no node published its result")

    def _report(self, state: NodeState, detail: str = "") -> bool:
        node = self._host.node
        self._records.report(
            NodeStatus(instance_id=node.instance_id, role=node.role, state=state, detail=detail, updated=now())
        )
        return True


def _forced(reason: StopReason | None, after_s: float) -> NodeEnd:
    forced = f"ended by force {after_s:g} s after the stop"
    return NodeEnd(NodeState.FAILED, f"{BECAUSE_OF_ANOTHER}: {forced}" if reason == "failed" else forced)
