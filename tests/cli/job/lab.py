"""What tests of `trainfabric job` share: an environment "demo", whose nodes are played by the tests."""

from __future__ import annotations

import json
from typing import Any

from trainfabric_node.jobs import ControllerAddress, Member, NodeState, NodeStatus, RunRecords
from trainfabric_node.jobs.records import now
from trainfabric_plan.contract import Role
from trainfabric_plan.deployed import DeployedEnvironment, NodeGroup

DEPLOYED = DeployedEnvironment(
    name="demo",
    region="us-east-1",
    data_bucket="demo-data",
    checkpoint_bucket="demo-checkpoints",
    lustre_dns_name="fs-1.fsx",
    lustre_mount_name="fsx",
    groups=(
        NodeGroup(name="coordinator", role=Role.COORDINATOR, launch_template=None, nodes=1),
        NodeGroup(name="workers", role=Role.WORKER, launch_template=None, nodes=3, spares=2),
    ),
    ranks_per_node=2,
    asset_bucket="",
    asset_key="",
)


BEGIN = "2126-07-01T19:02:00+00:00"


class Nodes:
    """Stands for the Auto Scaling groups: nodes that are asked for are there at once."""

    def __init__(self) -> None:
        self.asked = 0

    def scale_up(self, nodes: int, spares: int = 0) -> None:
        self.asked = nodes + spares

    def release(self) -> None:
        self.asked = 0

    def members(self) -> list[Member]:
        return [self._member(number) for number in range(self.asked)]

    def _member(self, number: int) -> Member:
        return Member(
            instance_id=instance(number),
            group="workers" if number else "coordinator",
            role=role(number),
            life_cycle_state="InService",
            launch_template_version=None,
            protected=False,
        )


def instance(number: int) -> str:
    return f"i-{number:017x}"


def role(number: int) -> Role:
    return Role.WORKER if number else Role.COORDINATOR


def node(number: int, state: NodeState, detail: str = "") -> NodeStatus:
    return NodeStatus(instance_id=instance(number), role=role(number), state=state, detail=detail, updated=now())


def play(run: RunRecords, steps: int = 0, nodes: int = 4, state: NodeState = NodeState.RUNNING) -> None:
    """A controller announces itself, forms an epoch of all nodes, and its rank 0 publishes steps."""
    run.announce(
        ControllerAddress(
            host="10.0.0.5",
            port=29401,
            rendezvous_port=29400,
            incarnation="c",
            instance_id=instance(0),
            announced=now(),
        )
    )
    for number in range(nodes):
        run.report(node(number, state))
    publish_events(run, epoch_event(nodes))
    lines = [{"step": n, "loss": 8 / n, "tokens": 2048, "seconds": 0.5} for n in range(1, steps + 1)]
    run.publish(1, "steps.jsonl", "".join(f"{json.dumps(line)}\n" for line in lines).encode())


def epoch_event(nodes: int) -> dict[str, Any]:
    fields = {"epoch": 1, "nodes": nodes, "layout": "data 2", "ranks": 2 * nodes, "detail": ""}
    return {"time": BEGIN, "event": "epoch", **fields}


def publish_events(run: RunRecords, *events: dict[str, Any]) -> None:
    run.publish_events("c", "".join(f"{json.dumps(event)}\n" for event in events).encode())
