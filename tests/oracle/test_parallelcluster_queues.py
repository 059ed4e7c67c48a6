"""How each way to buy nodes reaches a Slurm queue, against ParallelCluster 3.16.1's own schema and validators.

Its validators that ask EC2 about a reservation, a subnet or an image need an account and are not asked.
"""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_s3 as s3

from tests.oracle.conftest import asked
from trainfabric_cdk import Capacity, ParallelClusterStack, SharedHome
from trainfabric_plan.capacity import CAPACITY_RULES, CapacityKind
from trainfabric_plan.catalog import INSTANCE_TYPES

Configuration = dict[str, Any]
RESERVATION = "cr-0123456789abcdef0"
GROUP = "arn:aws:resource-groups:us-east-1:123456789012:group/ours"

BOUGHT = {
    "spot": Capacity.spot(),
    "spot with a price": Capacity.spot(12.5),
    "on demand": Capacity.on_demand(),
    "block": Capacity.block(RESERVATION),
    "reservation": Capacity.reservation(RESERVATION),
    "reservation in a group": Capacity.reservation(RESERVATION, placement_group_name="ours"),
    "resource group": Capacity.reservation_group(GROUP),
    "resource group in a group": Capacity.reservation_group(GROUP, placement_group_name="ours"),
}
"""Every way that a cluster takes; it refuses interruptible reservations, which the release does not know."""

TYPES = (
    "c5n.18xlarge",
    "g6e.48xlarge",
    "hpc7a.96xlarge",
    "p4d.24xlarge",
    "p5.48xlarge",
    "p5.4xlarge",
    "p5en.48xlarge",
    "p6-b200.48xlarge",
    "trn1.32xlarge",
    "trn2.48xlarge",
)

ITS_OWN_GROUP = [
    "WARNING",
    "Placement group is disabled for queue 'train'. This is expected when using a capacity reservation with its own "
    "placement group. Otherwise, enabling a placement group may improve network performance.",
]
"""What it says of a reservation for which no group is named, and cannot know better."""


def configuration(instance_type: str, workers: Capacity, **more: Any) -> Configuration:
    """What a `ParallelClusterStack` with such a queue hands to the provider."""
    app = cdk.App(analytics_reporting=False)
    network = cdk.Stack(app, "Network")
    vpc = ec2.Vpc.from_vpc_attributes(network, "Vpc", vpc_id="vpc-12345678", availability_zones=["us-east-1a"])
    subnet = ec2.Subnet.from_subnet_attributes(
        network, "Subnet", subnet_id="subnet-12345678", availability_zone="us-east-1a", route_table_id="rtb-12345678"
    )
    made = ParallelClusterStack(
        app,
        "Slurm",
        env=cdk.Environment(account="123456789012", region="us-east-1"),
        environment="demo",
        vpc=vpc,
        subnet=subnet,
        security_group=ec2.SecurityGroup.from_security_group_id(network, "Nodes", "sg-12345678"),
        instance_type=instance_type,
        nodes=4,
        workers=workers,
        **{name: value(network, vpc, subnet) if callable(value) else value for name, value in more.items()},
        data_bucket=s3.Bucket.from_bucket_name(network, "Data", "demo-data"),
        checkpoint_bucket=s3.Bucket.from_bucket_name(network, "Checkpoints", "demo-checkpoints"),
        file_system_id="fs-0123456789abcdef0",
    )
    found: Configuration = deployed(made.resolve(made.configuration.as_dict()))
    return found


def home(stack: cdk.Stack, vpc: ec2.IVpc, subnet: ec2.ISubnet) -> SharedHome:
    """One on EFS."""
    group = ec2.SecurityGroup.from_security_group_id(stack, "Clients", "sg-12345678")
    return SharedHome(stack, "Home", kind="efs", vpc=vpc, subnet=subnet, client_security_group=group)


def deployed(value: Any) -> Any:
    """The value as CloudFormation hands it to the provider: the partition put in, texts joined, a file system's id."""
    match value:
        case {"Ref": "AWS::Partition"}:
            return "aws"
        case {"Ref": str()}:
            return "fs-0123456789abcdef0"
        case {"Fn::Join": [separator, parts]}:
            return separator.join(map(deployed, parts))
        case dict():
            return {key: deployed(one) for key, one in value.items()}
        case list():
            return [deployed(one) for one in value]
    return value


def as_text(value: Any) -> Any:
    """The value as CloudFormation sends it on: every number and truth is a text."""
    match value:
        case bool():
            return str(value).lower()
        case int() | float():
            return str(value)
        case dict():
            return {key: as_text(one) for key, one in value.items()}
        case list():
            return [as_text(one) for one in value]
    return value


@pytest.fixture(scope="module")
def configurations() -> dict[str, Configuration]:
    """Of every type with every way in which EC2 sells it, by both."""
    return {
        f"{name}: {way}": configuration(name, workers)
        for name in TYPES
        for way, workers in BOUGHT.items()
        if workers.rule.usage_class in (INSTANCE_TYPES[name].usage_classes or ())
    }


def said(described: dict[str, Any], configurations: dict[str, Configuration]) -> dict[str, list[list[str]]]:
    """Levels and messages by name."""
    given = {"descriptions": described, "configurations": configurations}
    found: dict[str, list[list[str]]] = asked("parallelcluster_queues.py", given)
    return found


def test_every_way_that_a_cluster_takes_is_tried() -> None:
    tried = {workers.kind for workers in BOUGHT.values()}

    assert tried == set(CAPACITY_RULES) - {CapacityKind.INTERRUPTIBLE_RESERVATION}


def test_the_package_takes_every_way_to_buy_every_type_and_warns_only_of_groups_that_reservations_bring(
    described: dict[str, Any], configurations: dict[str, Configuration]
) -> None:
    found = said(described, configurations)

    assert len(found) > 50
    without_group = {name for name in found if name.endswith((": reservation", ": resource group"))}
    assert {name: one for name, one in found.items() if one} == {name: [ITS_OWN_GROUP] for name in without_group}


def test_the_package_says_the_same_of_numbers_and_truths_that_come_as_texts(
    described: dict[str, Any], configurations: dict[str, Configuration]
) -> None:
    texts = {name: as_text(one) for name, one in configurations.items()}
    assert texts["p5.48xlarge: spot"]["Scheduling"]["SlurmQueues"][0]["ComputeResources"][0]["MaxCount"] == "4"

    assert said(described, texts) == said(described, configurations)


def test_the_package_takes_every_setting_of_a_cluster(described: dict[str, Any]) -> None:
    boundary = "arn:aws:iam::123456789012:policy/boundary"
    on_demand = Capacity.on_demand()
    given = {
        "static nodes": configuration("p5.48xlarge", on_demand, static_nodes=4),
        "checked GPUs": configuration("p5.48xlarge", on_demand, gpu_health_checks=True),
        "one job a node": configuration("p5.48xlarge", on_demand, exclusive_jobs=True),
        "SSH from a range": configuration("p5.48xlarge", on_demand, ssh_from="10.20.0.0/16"),
        "SSH from a list": configuration("p5.48xlarge", on_demand, ssh_from="pl-0123456789abcdef0"),
        "a boundary": configuration("p5.48xlarge", on_demand, permissions_boundary=boundary),
        "an image": configuration("p5.48xlarge", on_demand, version="3.16.1", custom_ami="ami-0123456789abcdef0"),
        "a shared home": configuration("p5.48xlarge", on_demand, shared_home=home),
        "without EFA": configuration("p5.48xlarge", on_demand, efa=False),
    }

    assert given["a shared home"]["SharedStorage"][1]["EfsSettings"]["FileSystemId"] == "fs-0123456789abcdef0"
    assert {name: found for name, found in said(described, given).items() if found} == {}


def changed(configuration: Configuration, queue: dict[str, Any], resource: dict[str, Any]) -> Configuration:
    copy = deepcopy(configuration)
    (one,) = copy["Scheduling"]["SlurmQueues"]
    one.update(queue)
    one["ComputeResources"][0].update(resource)
    return copy


def test_a_wrong_mapping_would_show(described: dict[str, Any], configurations: dict[str, Configuration]) -> None:
    spot, block = configurations["p5.48xlarge: spot"], configurations["p5.48xlarge: block"]
    grouped = {**block["Scheduling"]["SlurmQueues"][0]["Networking"], "PlacementGroup": {"Enabled": True}}
    hpc = configurations["hpc7a.96xlarge: on demand"]

    found = said(
        described,
        {
            "an unknown word": changed(spot, {"CapacityType": "INTERRUPTIBLE"}, {}),
            "a misspelt key": changed(spot, {}, {"SpotPrices": 12}),
            "a dynamic block": changed(block, {}, {"MinCount": 0}),
            "a block in a group": changed(block, {"Networking": grouped}, {}),
            "a type not sold so": changed(hpc, {"CapacityType": "SPOT"}, {}),
        },
    )

    assert json.loads(found["a misspelt key"][0][1])["Scheduling"]["SlurmQueues"]
    assert [[one[0] for one in messages] for messages in found.values()] == [
        ["SCHEMA"],
        ["SCHEMA"],
        ["ERROR", "ERROR"],
        ["WARNING"],
        ["ERROR"],
    ]
    assert found["a type not sold so"][0][1] == "Usage type 'spot' not supported with instance type 'hpc7a.96xlarge'"
