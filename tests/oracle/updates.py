"""Runs in the virtual environment of ParallelCluster: what its update policies say of changes to a live cluster.

Reads a list of pairs of configurations, prints for each whether an update is taken while nodes are up, and the changes
with their policies.
"""

from __future__ import annotations

import json
import os
import sys
from types import SimpleNamespace
from typing import Any

os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")

import parallelcluster  # type: ignore[import-not-found] # noqa: F401  # puts the absent CDK in place

# isort: split
from pcluster.config.config_patch import ConfigPatch  # type: ignore[import-not-found]


def taken(before: dict[str, Any], after: dict[str, Any]) -> list[Any]:
    """Whether a cluster with running nodes takes the update, and every change with what is said of it."""
    pools = after.get("LoginNodes", {}).get("Pools", [])
    cluster = SimpleNamespace(
        name="it",
        stack_name="it",
        has_running_capacity=lambda: True,
        has_running_login_nodes=lambda pool_name=None: bool(pools),
    )
    try:
        allowed, rows = ConfigPatch(cluster, before, after).check()
    except AttributeError as error:  # of a changed MountDir, which its policy takes for a whole entry
        return [False, [["", str(error), ""]]]
    return [allowed, [[".".join([*row[0], row[1]]), row[4], row[7]] for row in rows[1:]]]


if __name__ == "__main__":
    json.dump([taken(*pair) for pair in json.load(sys.stdin)], sys.stdout)
