"""From an epoch to what the launcher is told to start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainfabric_node.agent.files import EpochFiles
from trainfabric_node.agent.host import Host
from trainfabric_node.jobs.records import JobSpec
from trainfabric_node.membership.protocol import EpochOrder


def start_message(host: Host, spec: JobSpec, order: EpochOrder, node_rank: int) -> dict[str, Any]:
    """What the launcher forks the ranks of this node by."""
    record = order.record
    return {
        "epoch": record.number,
        "directory": str(host.files(spec).epoch(record.number).directory),
        "environment": dict(host.variables),
        "nodes": len(record.nodes),
        "node_rank": node_rank,
        "ranks_per_node": record.plan.ranks_per_node,
        "run_id": f"{record.job}.{record.nonce}",
        "rendezvous": f"{order.rendezvous_host}:{order.rendezvous_port}",
        "address": host.node.address,
        "arguments": trainer_arguments(host, spec, order),
    }


def trainer_arguments(host: Host, spec: JobSpec, order: EpochOrder) -> list[str]:
    """The trainer's command line."""
    run = host.files(spec)
    files: EpochFiles = run.epoch(order.record.number)
    return [
        *("--recipe", str(files.recipe)),
        *("--plan", str(files.plan)),
        *("--job", spec.job),
        *("--data", spec.data),
        *("--checkpoints", host.checkpoints(spec)),
        *("--output", str(files.output)),
        *("--stop-flag", str(files.stop_flag)),
        *("--cache", str(run.cache)),
        *("--nonce", order.record.nonce),
        *("--rank-files", str(files.ranks)),
        *("--beat-seconds", f"{host.timing(spec).rank_beat_s:g}"),
        *(["--resume"] if order.resume else []),
        *(["--from-step", str(order.from_step)] if order.resume and order.from_step is not None else []),
    ]


def trainer_variables(inherited: Mapping[str, str], region: str) -> dict[str, str]:
    """Environment variables of the ranks: those of the supervisor, and defaults of ours."""
    return {"OMP_NUM_THREADS": "1", "AWS_DEFAULT_REGION": region, **inherited, "PYTHONUNBUFFERED": "1"}
