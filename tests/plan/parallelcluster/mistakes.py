"""Mistakes that users make in ParallelCluster's configuration, one change each to a configuration that has none.

`SUBNET`, `OTHER_SUBNET`, `PUBLIC_SUBNET` and `GROUP` stand for ids of the EC2 that the validators are asked with.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

Configuration = dict[str, Any]

RIGHT: Configuration = {
    "Region": "us-east-1",
    "Image": {"Os": "ubuntu2404"},
    "HeadNode": {"InstanceType": "m5.2xlarge", "Networking": {"SubnetId": "SUBNET"}},
    "Scheduling": {
        "Scheduler": "slurm",
        "SlurmSettings": {"QueueUpdateStrategy": "DRAIN"},
        "SlurmQueues": [
            {
                "Name": "train",
                "CapacityType": "SPOT",
                "Networking": {"SubnetIds": ["SUBNET"], "PlacementGroup": {"Enabled": True}},
                "ComputeResources": [
                    {
                        "Name": "p5",
                        "InstanceType": "p5.48xlarge",
                        "MinCount": 0,
                        "MaxCount": 4,
                        "Efa": {"Enabled": True},
                    }
                ],
            }
        ],
    },
    "SharedStorage": [
        {
            "Name": "lustre",
            "MountDir": "/fsx",
            "StorageType": "FsxLustre",
            "FsxLustreSettings": {"FileSystemId": "fs-0123456789abcdef0"},
        }
    ],
}
"""What nobody has anything to say about."""

LUSTRE = {"StorageCapacity": 1200, "DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 125}


@dataclass(frozen=True)
class Mistake:
    """One mistake.

    Attributes:
        what: In words.
        make: Makes it.
        rule: Ours that refuses it.
    """

    what: str
    make: Callable[[Configuration], None]
    rule: str

    @property
    def configuration(self) -> Configuration:
        """The right configuration with this mistake in it."""
        made = deepcopy(RIGHT)
        self.make(made)
        return made


def queue(made: Configuration) -> Configuration:
    found: Configuration = made["Scheduling"]["SlurmQueues"][0]
    return found


def nodes(made: Configuration) -> Configuration:
    found: Configuration = queue(made)["ComputeResources"][0]
    return found


def put(where: Callable[[Configuration], Configuration], **values: Any) -> Callable[[Configuration], None]:
    """Sets keys of a section; a key with the value `None` goes."""

    def change(made: Configuration) -> None:
        section = where(made)
        for key, value in values.items():
            if value is None:
                section.pop(key, None)
            else:
                section[key] = value

    return change


def both(*changes: Callable[[Configuration], None]) -> Callable[[Configuration], None]:
    def change(made: Configuration) -> None:
        for one in changes:
            one(made)

    return change


def storage(settings: Configuration, **values: Any) -> Callable[[Configuration], None]:
    return put(lambda made: made["SharedStorage"][0], FsxLustreSettings=settings, **values)


def more_queues(number: int) -> Callable[[Configuration], None]:
    def change(made: Configuration) -> None:
        queues = made["Scheduling"]["SlurmQueues"]
        queues += [{**deepcopy(queues[0]), "Name": f"q{index}"} for index in range(number)]

    return change


def another_queue(**values: Any) -> Callable[[Configuration], None]:
    def change(made: Configuration) -> None:
        made["Scheduling"]["SlurmQueues"].append({**deepcopy(queue(made)), **values})

    return change


def another_resource(**values: Any) -> Callable[[Configuration], None]:
    def change(made: Configuration) -> None:
        queue(made)["ComputeResources"].append({**deepcopy(nodes(made)), **values})

    return change


def another_storage(**values: Any) -> Callable[[Configuration], None]:
    def change(made: Configuration) -> None:
        made["SharedStorage"].append({**deepcopy(made["SharedStorage"][0]), **values})

    return change


def networking(made: Configuration) -> Configuration:
    found: Configuration = queue(made)["Networking"]
    return found


def head_network(made: Configuration) -> Configuration:
    found: Configuration = made["HeadNode"]["Networking"]
    return found


def slurm(made: Configuration) -> Configuration:
    found: Configuration = made["Scheduling"]["SlurmSettings"]
    return found


SCRIPT = {"OnNodeConfigured": {"Script": "s3://our-scripts/setup.sh"}}
CPU = put(nodes, InstanceType="c5.large", Efa={"Enabled": False})
NO_GROUP = put(networking, PlacementGroup={"Enabled": False})
GROUP_ARN = "arn:aws:resource-groups:us-east-1:123456789012:group/ours"
SLURMDBD = {"Host": "10.0.0.7", "Port": 6819}
SHAPE = "pcluster-shape"

MISTAKES = (
    Mistake("an unknown key, Efa.Gdr", put(nodes, Efa={"Enabled": True, "Gdr": True}), SHAPE),
    Mistake("EFA on m7i.large", put(nodes, InstanceType="m7i.large"), "pcluster-efa-type"),
    Mistake("CapacityType spot in lower case", put(queue, CapacityType="spot"), SHAPE),
    Mistake("a queue without subnets", put(networking, SubnetIds=None), SHAPE),
    Mistake("a subnet that is no id", put(networking, SubnetIds=["subnet-XYZ"]), SHAPE),
    Mistake(
        "an existing file system with a capacity",
        storage({"FileSystemId": "fs-0123456789abcdef0", "StorageCapacity": 1200}),
        "pcluster-existing-storage",
    ),
    Mistake("EFA without a word about placement", put(networking, PlacementGroup=None), "pcluster-efa-placement"),
    Mistake("EFA over two subnets", put(networking, SubnetIds=["SUBNET", "OTHER_SUBNET"]), "pcluster-subnets"),
    Mistake("MinCount above MaxCount", both(put(nodes, MinCount=5)), "pcluster-sizes"),
    Mistake(
        "a setting of Slurm that ParallelCluster writes",
        put(slurm, CustomSlurmSettings=[{"ResumeTimeout": 600}]),
        "pcluster-slurm-settings",
    ),
    Mistake(
        "InstanceType and Instances", put(nodes, Instances=[{"InstanceType": "p5.48xlarge"}]), "pcluster-instance-types"
    ),
    Mistake(
        "a reservation's id and a group of reservations",
        put(
            queue,
            CapacityReservationTarget={
                "CapacityReservationId": "cr-0123456789abcdef0",
                "CapacityReservationResourceGroupArn": GROUP_ARN,
            },
        ),
        "pcluster-reservation-target",
    ),
    Mistake(
        "a Capacity Block without its id, of 0 to 4 nodes",
        both(put(queue, CapacityType="CAPACITY_BLOCK"), NO_GROUP),
        "pcluster-block-nodes",
    ),
    Mistake("a queue named Train_1", put(queue, Name="Train_1"), "pcluster-name"),
    Mistake("two queues of one name", another_queue(), "pcluster-names-unique"),
    Mistake("an image that is no id", put(lambda made: made["Image"], CustomAmi="ami-zz"), SHAPE),
    Mistake("Os alinux2, which is gone", put(lambda made: made["Image"], Os="alinux2"), SHAPE),
    Mistake(
        "Lustre with settings of EFS",
        put(lambda made: made["SharedStorage"][0], FsxLustreSettings=None, EfsSettings={"Encrypted": True}),
        "pcluster-storage-settings",
    ),
    Mistake(
        "a Script beside a Sequence",
        put(queue, CustomActions={"OnNodeStart": {"Script": "s3://b/a.sh", "Sequence": [{"Script": "s3://b/b.sh"}]}}),
        SHAPE,
    ),
    Mistake(
        "GdrSupport without EFA",
        both(put(nodes, Efa={"Enabled": False, "GdrSupport": True}), NO_GROUP),
        "pcluster-gdr",
    ),
    Mistake(
        "AllocationStrategy with one instance type",
        put(queue, AllocationStrategy="capacity-optimized"),
        "pcluster-idle-strategy",
    ),
    Mistake(
        "a script's address without a scheme",
        put(queue, CustomActions={"OnNodeConfigured": {"Script": "our-scripts/setup.sh"}}),
        "pcluster-script-address",
    ),
    Mistake("51 queues", more_queues(50), "pcluster-counts"),
    Mistake("public addresses for p5", put(networking, AssignPublicIp=True), "pcluster-public-address"),
    Mistake(
        "two file systems in one directory",
        another_storage(Name="more", FsxLustreSettings={"FileSystemId": "fs-0123456789abcdef1"}),
        "pcluster-mount-directories",
    ),
    Mistake(
        "PERSISTENT_2 of 1000 GiB without a throughput",
        storage({"StorageCapacity": 1000, "DeploymentType": "PERSISTENT_2"}),
        "pcluster-lustre-size",
    ),
    Mistake(
        "p5 or p4d in one compute resource with EFA",
        put(nodes, InstanceType=None, Instances=[{"InstanceType": "p5.48xlarge"}, {"InstanceType": "p4d.24xlarge"}]),
        "pcluster-one-type-per-efa-queue",
    ),
    Mistake("MaxCount in words", put(nodes, MaxCount="eight"), SHAPE),
    Mistake("a head node with SubnetIds", put(head_network, SubnetIds=["SUBNET"]), SHAPE),
    Mistake(
        "logs kept for 31 days",
        put(lambda made: made, Monitoring={"Logs": {"CloudWatch": {"RetentionInDays": 31}}}),
        SHAPE,
    ),
    Mistake(
        "an arm64 head node before x86_64 nodes",
        put(lambda made: made["HeadNode"], InstanceType="m7g.2xlarge"),
        "pcluster-architecture",
    ),
    Mistake(
        "a placement group that is named and off",
        put(networking, PlacementGroup={"Enabled": False, "Name": "ours"}),
        "pcluster-placement-names",
    ),
    Mistake(
        "a node of one's own named as ParallelCluster's are",
        put(slurm, CustomSlurmSettings=[{"NodeName": "ours-dy-p5-1", "CPUs": 8}]),
        "pcluster-node-names",
    ),
    Mistake("spot, prioritized", put(queue, AllocationStrategy="prioritized"), "pcluster-allocation-strategy"),
    Mistake("spot on hpc6a", put(nodes, InstanceType="hpc6a.48xlarge"), "pcluster-usage-class"),
    Mistake("a queue's name of 30 letters", put(queue, Name="q" * 30), "pcluster-name"),
    Mistake(
        "Lustre at /opt/slurm",
        put(lambda made: made["SharedStorage"][0], MountDir="/opt/slurm"),
        "pcluster-mount-directories",
    ),
    Mistake("an outside slurmdbd without its key", put(slurm, ExternalSlurmdbd=SLURMDBD), "pcluster-accounting"),
    Mistake("a script that the nodes may not read", put(queue, CustomActions=SCRIPT), "pcluster-script-access"),
    Mistake(
        "two instance types in one queue with EFA",
        another_resource(Name="p4d", InstanceType="p4d.24xlarge"),
        "pcluster-one-type-per-efa-queue",
    ),
    Mistake(
        "a placement group for a Capacity Block",
        both(
            put(
                queue,
                CapacityType="CAPACITY_BLOCK",
                CapacityReservationTarget={"CapacityReservationId": "cr-0123456789abcdef0"},
            ),
            put(nodes, MinCount=4),
        ),
        "pcluster-block-placement",
    ),
    Mistake("static spot nodes", put(nodes, MinCount=4), "pcluster-static-spot"),
    Mistake("no QueueUpdateStrategy", put(slurm, QueueUpdateStrategy=None), "pcluster-update-strategy"),
    Mistake(
        "9 associations of one file system",
        storage(
            {
                **LUSTRE,
                "DataRepositoryAssociations": [
                    {"Name": f"d{n}", "FileSystemPath": f"/d{n}", "DataRepositoryPath": f"s3://ours/d{n}"}
                    for n in range(9)
                ],
            }
        ),
        "pcluster-lustre-links",
    ),
    Mistake(
        "S3Access beside a role of one's own",
        put(queue, Iam={"InstanceRole": "arn:aws:iam::123456789012:role/ours", "S3Access": [{"BucketName": "ours"}]}),
        "pcluster-one-role",
    ),
    Mistake(
        "security groups in place of and beside the cluster's own",
        put(networking, SecurityGroups=["GROUP"], AdditionalSecurityGroups=["GROUP"]),
        "pcluster-security-groups",
    ),
    Mistake("rocky9 without an image", put(lambda made: made["Image"], Os="rocky9"), "pcluster-own-image"),
    Mistake(
        "a head node of 4 GiB for 400 nodes",
        both(put(nodes, MaxCount=400), put(lambda made: made["HeadNode"], InstanceType="c7i.large")),
        "pcluster-head-memory",
    ),
)
"""Each refused by ours; what the schema and the validators say of it, `tests/oracle/test_mistakes.py` asks them."""

MORE = (
    Mistake(
        "storage named default", put(lambda made: made["SharedStorage"][0], Name="default"), "pcluster-storage-name"
    ),
    Mistake(
        "a spot price on demand",
        both(put(queue, CapacityType="ONDEMAND"), put(nodes, SpotPrice=9)),
        "pcluster-spot-price",
    ),
    Mistake(
        "backups at a time of day, kept for no day",
        storage({**LUSTRE, "DailyAutomaticBackupStartTime": "03:00"}),
        "pcluster-backups",
    ),
    Mistake(
        "a placement group for a type that starts in none",
        put(nodes, InstanceType="x9.large", Efa={"Enabled": False}),
        "pcluster-placement-type",
    ),
    Mistake("EFA off", both(put(nodes, Efa={"Enabled": False}), NO_GROUP), "pcluster-efa-off"),
    Mistake("GdrSupport beside EFA", put(nodes, Efa={"Enabled": True, "GdrSupport": True}), "pcluster-gdr-idle"),
    Mistake(
        "two queues in two subnets beside Lustre",
        another_queue(Name="more", Networking={"SubnetIds": ["OTHER_SUBNET"], "PlacementGroup": {"Enabled": True}}),
        "pcluster-one-zone",
    ),
    Mistake(
        "two file systems that ParallelCluster makes",
        both(storage(LUSTRE), another_storage(Name="more", MountDir="/more", FsxLustreSettings=LUSTRE)),
        "pcluster-storage-counts",
    ),
    Mistake("a file system that goes with the cluster", storage(LUSTRE), "pcluster-storage-deleted"),
    Mistake(
        "settings of Slurm given and included",
        put(slurm, CustomSlurmSettings=[{"JobRequeue": 1}], CustomSlurmSettingsIncludeFile="s3://ours/slurm.conf"),
        "pcluster-slurm-include",
    ),
    Mistake("spot jobs that stay lost", put(slurm, CustomSlurmSettings=[{"JobRequeue": 0}]), "pcluster-spot-requeue"),
    Mistake(
        "settings of EFS for a head node with EBS",
        put(lambda made: made["HeadNode"], SharedStorageEfsSettings={"Encrypted": True}),
        "pcluster-head-storage",
    ),
)
"""Mistakes of the rules that those above do not break."""


IDS = {
    "SUBNET": "subnet-0123456789abcdef0",
    "OTHER_SUBNET": "subnet-0123456789abcdef1",
    "GROUP": "sg-0123456789abcdef0",
}
"""Ids of nothing."""


def settled(configuration: Configuration, ids: Mapping[str, str] = MappingProxyType(IDS)) -> str:
    """A configuration as JSON, with ids in place of the words for them."""
    text = json.dumps(configuration)
    for word, id in ids.items():
        text = text.replace(f'"{word}"', f'"{id}"')
    return text
