"""A controller on a node that only controls, with workers in two placement groups and a queue of EC2's events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3
import pytest

from tests.node.membership.controller_lab import BUCKET, Lab, begin, running_lab
from tests.node.membership.supervisors import until
from tests.node.samples import deployed
from tests.node.seaweed import Seaweed
from trainfabric_node.jobs import NodeState
from trainfabric_node.jobs.records import GroupPins, JobPins
from trainfabric_plan.contract import Role
from trainfabric_plan.deployed import NodeGroup

GROUPS = (
    NodeGroup(name="lab-coordinator", role=Role.COORDINATOR, launch_template=None, nodes=0),
    NodeGroup(name="lab-worker", role=Role.WORKER, launch_template=None, nodes=2, spares=1),
    NodeGroup(name="lab-worker-2", role=Role.WORKER, launch_template=None, nodes=2, placement=1),
)
ENVIRONMENT = deployed(4, checkpoint_bucket=BUCKET, groups=GROUPS)


@pytest.fixture
def lab(tmp_path: Path, seaweed: Seaweed, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    with running_lab(tmp_path, seaweed, monkeypatch, ENVIRONMENT) as made:
        queue = boto3.client("sqs").create_queue(QueueName="notices")["QueueUrl"]
        made.more = {"TRAINFABRIC_TRAINS": "0", "TRAINFABRIC_EVENTS_QUEUE": queue}
        yield made


def members(lab: Lab, group: str) -> list[str]:
    return [one.instance_id for one in lab.fleet.members() if one.group == group and not one.leaving]


def send(lab: Lab, kind: str, **detail: str) -> None:
    event: dict[str, Any] = {"source": "aws.ec2", "detail-type": kind, "detail": detail}
    body = json.dumps({**event, "time": datetime.now(UTC).isoformat()})
    boto3.client("sqs").send_message(QueueUrl=lab.more["TRAINFABRIC_EVENTS_QUEUE"], MessageBody=body)


def test_the_workers_of_both_groups_train_in_their_order_and_the_coordinator_controls(lab: Lab) -> None:
    begin(lab)
    (control,) = members(lab, "lab-coordinator")
    near, far = members(lab, "lab-worker"), members(lab, "lab-worker-2")
    records = lab.ledger.run("first", 1)
    states = dict.fromkeys([*near, *far], NodeState.RUNNING) | {control: NodeState.CONTROLLING}

    assert (len(near), len(far)) == (2, 2)
    assert lab.epochs() == [[*near, *far]]
    until(lambda: {one.instance_id: one.state for one in records.nodes()} == states, what=lab.log)
    assert lab.wanted() == [1, 2, 2]


def test_a_node_that_a_queued_event_announces_leaves_and_is_replaced_in_its_own_group(lab: Lab) -> None:
    begin(lab)
    near, far = members(lab, "lab-worker"), members(lab, "lab-worker-2")
    send(lab, "EC2 Spot Instance Interruption Warning", **{"instance-id": "i-foreign", "instance-action": "terminate"})
    send(lab, "EC2 Spot Instance Interruption Warning", **{"instance-id": far[0], "instance-action": "terminate"})
    until(lambda: lab.told("node_replaced"), what=lab.log)
    until(lambda: len(members(lab, "lab-worker-2")) == 2, what=lab.log)
    lab.supervisors[far[0]].kill()
    lab.join()
    until(lambda: len(lab.epochs()[-1]) == 4 and lab.epochs()[-1] != lab.epochs()[0], what=lab.log)

    assert [one["node"] for one in lab.told("spot_notice")] == [far[0]]
    assert set(lab.epochs()[-1][:2]) == set(near)
    assert set(lab.epochs()[-1][2:]) == set(members(lab, "lab-worker-2"))
    assert lab.wanted() == [1, 2, 2]


def test_the_end_of_the_jobs_capacity_block_ends_the_run_with_a_checkpoint_and_that_of_another_does_not(
    lab: Lab,
) -> None:
    pinned = GroupPins(
        launch_template_id="lt-1", launch_template_version="1", image_id="ami-1", capacity_reservation="cr-ours"
    )
    begin(lab, pins=JobPins(groups={"lab-worker": pinned}, asset_key="code.zip"))
    send(lab, "Capacity Block Expiration Warning", **{"capacity-reservation-id": "cr-other", "end-date": "never"})
    lab.reach(max(one.epoch.step for one in lab.supervisors.values() if one.epoch) + 20)
    before = lab.ledger.run("first", 1).stop_request()
    send(lab, "Capacity Block Expiration Warning", **{"capacity-reservation-id": "cr-ours", "end-date": "noon"})

    state, step, detail = lab.outcome()

    assert before is None
    assert (state, detail) == ("stopped", "asked because Capacity Block cr-ours ends at noon")
    assert step is not None
    assert lab.wanted() == [0, 0, 0]
