"""What it takes to change a live cluster, against the update policies of aws-parallelcluster 3.16.1."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest

from tests.oracle.conftest import asked
from tests.plan.parallelcluster.mistakes import (
    GROUP_ARN,
    LUSTRE,
    RIGHT,
    Configuration,
    another_queue,
    another_resource,
    another_storage,
    both,
    networking,
    nodes,
    put,
    queue,
    settled,
    slurm,
    storage,
)
from trainfabric_plan.parallelcluster.changes import Takes, changes

EFS = {"StorageType": "Efs", "FsxLustreSettings": None, "Name": "home", "MountDir": "/shared"}
HEAD = put(lambda made: made["HeadNode"], InstanceType="m7i.4xlarge")

CHANGES: dict[str, tuple[Any, Takes]] = {
    "more nodes at most": (put(nodes, MaxCount=8), Takes.NOTHING),
    "fewer nodes at most": (put(nodes, MaxCount=2), Takes.STOP),
    "static nodes out of the same": (put(nodes, MinCount=2), Takes.STOP),
    "static nodes on top": (put(nodes, MinCount=2, MaxCount=6), Takes.NOTHING),
    "on demand": (put(queue, CapacityType="ONDEMAND"), Takes.DRAIN),
    "another queue": (another_queue(Name="more"), Takes.NOTHING),
    "another compute resource": (another_resource(Name="more"), Takes.NOTHING),
    "another type": (put(nodes, InstanceType="p5e.48xlarge"), Takes.STOP),
    "an image": (put(queue, Image={"CustomAmi": "ami-0123456789abcdef0"}), Takes.DRAIN),
    "a spot price": (put(nodes, SpotPrice=12.5), Takes.DRAIN),
    "EFA off": (put(nodes, Efa={"Enabled": False}), Takes.DRAIN),
    "no placement group of the cluster's": (put(networking, PlacementGroup={"Enabled": False}), Takes.STOP),
    "a group of reservations": (
        put(queue, CapacityReservationTarget={"CapacityReservationResourceGroupArn": GROUP_ARN}),
        Takes.DRAIN,
    ),
    "another subnet": (put(networking, SubnetIds=["OTHER_SUBNET"]), Takes.DRAIN),
    "a subnet more": (put(networking, SubnetIds=["SUBNET", "OTHER_SUBNET"]), Takes.NOTHING),
    "exclusive jobs": (put(queue, JobExclusiveAllocation=True), Takes.NOTHING),
    "a setting of Slurm": (put(slurm, CustomSlurmSettings=[{"JobRequeue": 1}]), Takes.NOTHING),
    "another time of idleness": (put(slurm, ScaledownIdletime=20), Takes.STOP),
    "accounting": (
        put(
            slurm,
            Database={
                "Uri": "db:3306",
                "UserName": "it",
                "PasswordSecretArn": "arn:aws:secretsmanager:us-east-1:123456789012:secret:it",
            },
        ),
        Takes.STOP,
    ),
    "another head node": (HEAD, Takes.NEW_CLUSTER),
    "another system": (put(lambda made: made["Image"], Os="ubuntu2204"), Takes.NEW_CLUSTER),
    "what the head node may read": (
        put(lambda made: made["HeadNode"], Iam={"S3Access": [{"BucketName": "ours"}]}),
        Takes.NOTHING,
    ),
    "a file system more, which exists": (
        another_storage(Name="more", MountDir="/more", FsxLustreSettings={"FileSystemId": "fs-0123456789abcdef1"}),
        Takes.NOTHING,
    ),
    "a file system more, of the cluster": (
        another_storage(Name="more", MountDir="/more", FsxLustreSettings=LUSTRE),
        Takes.DRAIN,
    ),
    "another mount directory": (put(lambda made: made["SharedStorage"][0], MountDir="/other"), Takes.NEW_CLUSTER),
    "logs kept longer": (
        put(lambda made: made, Monitoring={"Logs": {"CloudWatch": {"RetentionInDays": 365}}}),
        Takes.NEW_CLUSTER,
    ),
    "tags": (put(lambda made: made, Tags=[{"Key": "team", "Value": "ours"}]), Takes.NOTHING),
    "another region": (put(lambda made: made, Region="us-west-2"), Takes.NEW_CLUSTER),
    "another file system": (storage({"FileSystemId": "fs-0123456789abcdef1"}), Takes.NEW_CLUSTER),
    "a smaller queue and an image": (
        both(put(nodes, MaxCount=2), put(queue, Image={"CustomAmi": "ami-0123456789abcdef0"})),
        Takes.STOP,
    ),
}
ORDER = list(Takes)


def changed(change: Any, strategy: str) -> tuple[Configuration, Configuration]:
    before = deepcopy(RIGHT)
    put(slurm, QueueUpdateStrategy=strategy)(before)
    after = deepcopy(before)
    change(after)
    return json.loads(settled(before)), json.loads(settled(after))


def worst(before: Configuration, after: Configuration) -> Takes:
    return max((one.takes for one in changes(before, after)), key=ORDER.index, default=Takes.NOTHING)


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_takes_what_it_says(name: str) -> None:
    change, takes = CHANGES[name]

    assert worst(*changed(change, "DRAIN")) is takes


@pytest.mark.parametrize("strategy", ["DRAIN", "TERMINATE", "COMPUTE_FLEET_STOP"])
def test_a_cluster_with_nodes_takes_exactly_what_needs_neither_a_stop_nor_a_new_cluster(strategy: str) -> None:
    pairs = [changed(change, strategy) for change, _ in CHANGES.values()]
    theirs = asked("updates.py", pairs)

    ours = {name: worst(*pair) in (Takes.NOTHING, Takes.DRAIN) for name, pair in zip(CHANGES, pairs, strict=True)}
    assert ours == {name: allowed for name, (allowed, _) in zip(CHANGES, theirs, strict=True)}


def test_nothing_is_a_change_of_how_a_value_is_written() -> None:
    text = json.loads(settled(RIGHT))
    text["Scheduling"]["SlurmQueues"][0]["ComputeResources"][0]["MaxCount"] = "4"
    text["Scheduling"]["SlurmQueues"][0]["ComputeResources"][0]["Efa"]["Enabled"] = "true"

    assert changes(json.loads(settled(RIGHT)), text) == ()
