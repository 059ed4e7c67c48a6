"""The agent of an epoch on one node: torch elastic, which forks the ranks, watches them and ends them together."""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn

import torch
from torch.distributed.elastic.agent.server.api import WorkerSpec
from torch.distributed.elastic.agent.server.local_elastic_agent import LocalElasticAgent
from torch.distributed.elastic.multiprocessing.api import DefaultLogsSpecs, MultiprocessContext

from trainfabric_node.launch.processes import die_with_parent
from trainfabric_plan.contract import ExitStatus
from trainfabric_training.__main__ import leave, run
from trainfabric_training.failure import end_by, end_without_word
from trainfabric_training.launch.rendezvous import FixedRendezvous
from trainfabric_training.launch.wire import Start
from trainfabric_training.settings import enter_epoch, read_settings, threads
from trainfabric_training.telemetry import End, end_of, write_end

_MONITOR_S = 0.1
_SHUTDOWN_S = 1
_EXIT_BARRIER_S = 60.0
_LOG_TAIL = 1024 * 1024
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)


def run_agent(start: Start, launcher: int) -> int:
    """Runs the ranks of an epoch in this process's children; the exit status of the epoch on this node.

    Args:
        start: The epoch.
        launcher: Process id of the parent.
    """
    os.setsid()
    die_with_parent(launcher)
    _write_to(start)
    enter_epoch(start.environment)
    try:
        agent = _agent(start)
        result = agent.run()
    except Exception as error:
        for rank in start.ranks:
            _say_unless_said(start, rank, end_by(error, rank=rank, step=0))
        raise
    if result.is_failed():
        return _failed(start, next(iter(result.failures)), agent.exit_statuses())
    return ExitStatus.RESUME if ExitStatus.RESUME in result.return_values.values() else ExitStatus.DONE


class _Agent(LocalElasticAgent):
    """torch elastic's, which tells how each of its processes ended and not only the one that it saw first."""

    def exit_statuses(self) -> dict[int, tuple[int, int | None]]:
        """By global rank: process id and exit status, negative if a signal ended it."""
        assert isinstance(self._pcontext, MultiprocessContext)
        assert self._pcontext._pc is not None
        processes = self._pcontext._pc.processes
        return {
            worker.global_rank: (process.pid, process.exitcode)
            for worker, process in zip(self.get_worker_group().workers, processes, strict=True)
        }


def _agent(start: Start) -> _Agent:
    """An agent of exactly these nodes, which restarts nothing."""
    own = os.getpid()

    def trainer() -> int:
        return run_rank(start, own)

    host, _, port = start.rendezvous.rpartition(":")
    spec = WorkerSpec(
        role="trainer",
        local_world_size=start.ranks_per_node,
        rdzv_handler=FixedRendezvous(
            host=host, port=int(port), run_id=start.run_id, node_rank=start.node_rank, nodes=start.nodes
        ),
        entrypoint=trainer,
        max_restarts=0,
        monitor_interval=_MONITOR_S,
        local_addr=start.address,
    )
    logs = DefaultLogsSpecs(log_dir=os.devnull)
    return _Agent(spec, logs, start_method="fork", exit_barrier_timeout=_EXIT_BARRIER_S, shutdown_timeout=_SHUTDOWN_S)


def run_rank(start: Start, agent: int) -> int:
    """Runs the trainer in this process; returns its status when it has ended in order, and does not when it failed.

    Args:
        start: The epoch.
        agent: Process id of the parent.
    """
    die_with_parent(agent)
    for one in _SIGNALS:  # those of the agent would raise in Python, which a rank that waits for others does not run
        signal.signal(one, signal.SIG_DFL)
    torch.set_num_threads(threads())

    def failed(status: int, error: Exception) -> NoReturn:
        rank = read_settings().rank
        _say_unless_said(start, rank, end_by(error, rank=rank, step=0))
        leave(status)

    return run(start.arguments, store_prefix=f"{start.run_id}/ranks", on_failure=failed)


def _write_to(start: Start) -> None:
    """Sends what this process and the ranks print to the epoch's log, each line at once."""
    start.rank_files.mkdir(parents=True, exist_ok=True)
    log = os.open(start.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    os.close(log)
    os.close(nothing)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]


def _failed(start: Start, first: int, statuses: dict[int, tuple[int, int | None]]) -> int:
    """Says of ranks that could not say it themselves how they ended."""
    printed = _tail(start)
    ends = [
        _say_unless_said(start, rank, end_without_word(rank, process, status, first=first, printed=printed))
        for rank, (process, status) in statuses.items()
    ]
    return ExitStatus.USER_ERROR if any(end.hopeless for end in ends) else ExitStatus.FAILED


def _say_unless_said(start: Start, rank: int, end: End) -> End:
    """The last word of a rank: its own, or this one, which is written for it."""
    said = end_of(start.rank_files, rank)
    if said is None:
        write_end(start.rank_files, rank, end)
    return said or end


def _tail(start: Start) -> str:
    """What the ranks have printed last."""
    with start.log.open("rb") as log:
        log.seek(max(0, log.seek(0, os.SEEK_END) - _LOG_TAIL))
        return log.read().decode(errors="replace")
