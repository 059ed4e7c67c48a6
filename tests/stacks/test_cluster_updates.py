"""What it takes to change a deployed Slurm cluster is said at synth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest

from trainfabric_plan.environment import validate_environment
from trainfabric_stacks import TrainingEnvironment

DESCRIPTION: dict[str, Any] = {
    "name": "demo",
    "region": "us-east-1",
    "availability_zone": "us-east-1a",
    "orchestrator": "parallelcluster",
    "fleet": {"instance_type": "p5.48xlarge", "nodes": 4},
    "training": {"recipe": "gpt_1b3_4x_p5"},
}


def synthesise(outdir: Path, **changes: Any) -> list[str]:
    """Synthesises the environment with some keys changed; the warnings about its cluster."""
    sections = {
        name: {**DESCRIPTION.get(name, {}), **value} if isinstance(value, dict) else value
        for name, value in changes.items()
    }
    app = cdk.App(outdir=str(outdir), analytics_reporting=False)
    TrainingEnvironment(app, validate_environment({**DESCRIPTION, **sections}, "demo.yaml"))
    artifact = app.synth().get_stack_by_name("demo-Cluster")
    return [str(message.entry.data) for message in artifact.messages if message.level.name == "WARNING"]


@pytest.mark.parametrize(
    ("changes", "warnings"),
    [
        ({}, []),
        ({"fleet": {"nodes": 8}}, []),
        (
            {"fleet": {"max_spot_price": 30.5}},
            [
                "Scheduling.SlurmQueues[train].ComputeResources[train-nodes].SpotPrice: the change replaces the "
                "queue's nodes, each when its job has ended [ack: trainfabric:clusterUpdate:Scheduling.SlurmQueues"
                "[train].ComputeResources[train-nodes].SpotPrice]"
            ],
        ),
        (
            {"fleet": {"nodes": 2}},
            [
                "Scheduling.SlurmQueues[train].ComputeResources[train-nodes].MaxCount: the change needs stopped nodes "
                "first (pcluster update-compute-fleet): a deploy fails before that [ack: trainfabric:clusterUpdate:"
                "Scheduling.SlurmQueues[train].ComputeResources[train-nodes].MaxCount]"
            ],
        ),
        (
            {"parallelcluster": {"head_node_instance_type": "m7i.4xlarge"}},
            [
                "HeadNode.InstanceType: the change is not possible in place: it takes a new cluster, and a deploy "
                "fails [ack: trainfabric:clusterUpdate:HeadNode.InstanceType]"
            ],
        ),
        ({"parallelcluster": {"ssh_from": "10.20.0.0/16"}}, []),
        ({"parallelcluster": {"version": "3.16.0", "head_node_instance_type": "m7i.4xlarge"}}, []),
    ],
)
def test_a_change_of_a_deployed_cluster_says_what_it_takes(
    tmp_path: Path, changes: dict[str, Any], warnings: list[str]
) -> None:
    assert synthesise(tmp_path) == []

    assert synthesise(tmp_path, **changes) == warnings
