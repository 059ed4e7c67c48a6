"""Values that tests of jobs and agents share."""

from __future__ import annotations

from typing import Any

from trainfabric_node.jobs import JobSpec
from trainfabric_node.jobs.records import now
from trainfabric_plan.contract import Role
from trainfabric_plan.deployed import DeployedEnvironment, NodeGroup
from trainfabric_plan.layout import Layout
from trainfabric_plan.planning import Plan
from trainfabric_plan.recipes import recipe

RECIPE = recipe("tiny_cpu")


def plan(nodes: int = 2, **changes: Any) -> Plan:
    values: dict[str, Any] = {
        "environment": "lab",
        "recipe": "tiny_cpu",
        "nodes": nodes,
        "ranks_per_node": 2,
        "layout": Layout(data=nodes, tensor=2),
        "micro_batch": 2,
        "accumulation": 4,
        "global_batch": 16,
        "memory_bytes": {"total": 1},
        "accelerator_memory_bytes": None,
        "usd_per_hour": None,
        "usd_per_hour_at_least": 0.0,
        "reasons": [],
    }
    return Plan(**{**values, **changes})


def spec(nodes: int = 2, **changes: Any) -> JobSpec:
    values: dict[str, Any] = {
        "job": "first",
        "environment": "lab",
        "run": 1,
        "resume": False,
        "data": "s3://data/data/corpus",
        "recipe": RECIPE,
        "plan": plan(nodes),
        "groups": deployed(nodes).groups,
        "created": now(),
        "nonce": "a",
    }
    return JobSpec(**{**values, **changes})


def groups(
    nodes: int = 4, workers: str = "lab-workers", templates: dict[str, str] | None = None, spares: int = 0
) -> tuple[NodeGroup, ...]:
    """Of a coordinator that trains, and of the workers beside it."""
    known = templates or {}
    coordinator = NodeGroup(
        name="lab-coordinator", role=Role.COORDINATOR, launch_template=known.get("lab-coordinator"), nodes=1
    )
    beside = NodeGroup(
        name=workers, role=Role.WORKER, launch_template=known.get(workers), nodes=nodes - 1, spares=spares
    )
    return (coordinator, beside) if nodes > 1 else (coordinator,)


def deployed(nodes: int = 4, **changes: Any) -> DeployedEnvironment:
    values: dict[str, Any] = {
        "name": "lab",
        "region": "us-east-1",
        "data_bucket": "data",
        "checkpoint_bucket": "checkpoints",
        "lustre_dns_name": "fs-1.fsx.us-east-1.amazonaws.com",
        "lustre_mount_name": "abc",
        "groups": groups(nodes),
        "ranks_per_node": 2,
        "asset_bucket": "assets",
        "asset_key": "0123abcd.zip",
    }
    return DeployedEnvironment(**{**values, **changes})
