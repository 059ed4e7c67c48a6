"""The agent of an epoch on one node: torch elastic, which forks the ranks, watches them and ends them together."""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn

import torch
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from trainfabric_plan.contract import ExitStatus
from trainfabric_training.__main__ import leave, run
from trainfabric_training.failure import end_by
from trainfabric_training.launch.processes import die_with_parent
from trainfabric_training.launch.rendezvous import BACKEND, register
from trainfabric_training.launch.wire import Start
from trainfabric_training.settings import enter_epoch, read_settings, threads
from trainfabric_training.telemetry import End, end_of, write_end

_MONITOR_S = 0.1
_SHUTDOWN_S = 1
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
    register()
    agent = os.getpid()

    def rank() -> int:
        return run_rank(start, agent)

    try:
        statuses = elastic_launch(_configuration(start), rank)()
    except ChildFailedError as error:
        return _failed(start, error.failures)
    return ExitStatus.RESUME if ExitStatus.RESUME in statuses.values() else ExitStatus.DONE


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
        place = read_settings().rank
        if end_of(start.rank_files, place) is None:
            write_end(start.rank_files, place, end_by(error, rank=place, step=0))
        leave(status)

    return run(start.arguments, store_prefix=f"{start.run_id}/ranks", on_failure=failed)


def _configuration(start: Start) -> LaunchConfig:
    return LaunchConfig(
        min_nodes=start.nodes,
        max_nodes=start.nodes,
        nproc_per_node=start.ranks_per_node,
        run_id=start.run_id,
        role="trainer",
        rdzv_backend=BACKEND,
        rdzv_endpoint=start.rendezvous,
        rdzv_configs={"node_rank": start.node_rank},
        max_restarts=0,
        monitor_interval=_MONITOR_S,
        start_method="fork",
        local_addr=start.address,
        shutdown_timeout=_SHUTDOWN_S,
    )


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


def _failed(start: Start, failures: dict[int, ProcessFailure]) -> int:
    """Says of ranks that could not say it themselves how they ended."""
    first = next(iter(failures))
    for rank in range(start.node_rank * start.ranks_per_node, (start.node_rank + 1) * start.ranks_per_node):
        if end_of(start.rank_files, rank) is None:
            write_end(start.rank_files, rank, _silent_end(rank, failures.get(rank), first))
    ends = [end_of(start.rank_files, rank) for rank in failures]
    return ExitStatus.USER_ERROR if any(end and end.hopeless for end in ends) else ExitStatus.FAILED


def _silent_end(rank: int, failure: ProcessFailure | None, first: int) -> End:
    if failure is None:
        return End(status="failed", detail=f"ended because rank {first} of this node failed", of_others=True)
    if failure.exitcode < 0:
        name = signal.Signals(-failure.exitcode).name
        return End(status="failed", detail=f"rank {rank} (process {failure.pid}) was ended by {name}")
    return End(status="failed", detail=f"rank {rank} left with status {failure.exitcode}")
