"""What is given of one VPC is of that VPC."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_s3 as s3

from trainfabric_cdk import (
    EfaSecurityGroup,
    LustreLinkedToS3,
    ParallelClusterStack,
    PropertyError,
    SharedHome,
    TrainingVpc,
)

Warnings = Callable[[], list[str]]
FOREIGN = "in the VPC that is given, {own}, got one in {other}"


def refusal(make: Callable[[], object]) -> list[str]:
    with pytest.raises(PropertyError) as refused:
        make()
    return str(refused.value).splitlines()


@pytest.fixture
def networks(stack: cdk.Stack) -> tuple[TrainingVpc, TrainingVpc]:
    one, other = (
        TrainingVpc(stack, id, availability_zone="us-east-1a", cidr=f"10.{number}.0.0/16")
        for number, id in enumerate(["One", "Other"], start=1)
    )
    return one, other


def imported(stack: cdk.Stack, vpc_id: str) -> ec2.IVpc:
    return ec2.Vpc.from_vpc_attributes(
        stack,
        vpc_id,
        vpc_id=vpc_id,
        availability_zones=["us-east-1a"],
        private_subnet_ids=[f"subnet-{vpc_id[4:]}"],
        private_subnet_route_table_ids=[f"rtb-{vpc_id[4:]}"],
    )


def test_a_fleet_takes_no_subnet_and_no_group_of_another_vpc(
    stack: cdk.Stack, make_fleet: Any, networks: tuple[TrainingVpc, TrainingVpc]
) -> None:
    _, other = networks
    group = EfaSecurityGroup(stack, "Foreign", vpc=other.vpc)

    foreign = FOREIGN.format(own="Demo/Network/Vpc", other="Demo/Other/Vpc")
    assert refusal(lambda: make_fleet(subnet=lambda _: other.private_subnet, security_group=lambda _: group)) == [
        f"Demo/Fleet: subnet must be {foreign}",
        f"Demo/Fleet: security_group must be {foreign}",
    ]


def file_system(kind: str, stack: cdk.Stack, **place: Any) -> object:
    if kind == "lustre":
        bucket = s3.Bucket.from_bucket_name(stack, "Linked", "demo-data")
        return LustreLinkedToS3(stack, "Made", bucket=bucket, **place)
    return SharedHome(stack, "Made", kind="efs", **place)


@pytest.mark.parametrize("kind", ["lustre", "home"])
def test_a_file_system_takes_no_subnet_of_another_vpc(
    stack: cdk.Stack, networks: tuple[TrainingVpc, TrainingVpc], kind: str
) -> None:
    one, other = networks
    nodes = EfaSecurityGroup(stack, "Nodes", vpc=one.vpc)
    place: dict[str, Any] = {"vpc": one.vpc, "subnet": other.private_subnet, "client_security_group": nodes}

    foreign = FOREIGN.format(own="Demo/One/Vpc", other="Demo/Other/Vpc")
    assert refusal(lambda: file_system(kind, stack, **place)) == [f"Demo/Made: subnet must be {foreign}"]


@pytest.mark.parametrize("kind", ["lustre", "home"])
@pytest.mark.parametrize("foreign", [True, False])
def test_clients_of_another_vpc_are_warned_of_since_something_has_to_join_both(
    stack: cdk.Stack, networks: tuple[TrainingVpc, TrainingVpc], warnings: Warnings, kind: str, foreign: bool
) -> None:
    one, other = networks
    nodes = EfaSecurityGroup(stack, "Nodes", vpc=(other if foreign else one).vpc)
    place: dict[str, Any] = {"vpc": one.vpc, "subnet": one.private_subnet, "client_security_group": nodes}

    file_system(kind, stack, **place)

    assert [text for text in warnings() if "clientsOfAnotherVpc" in text] == [
        "client_security_group is in Demo/Other/Vpc, the file system in Demo/One/Vpc: nodes mount it only where a "
        "peering or a transit gateway joins both [ack: trainfabric:clientsOfAnotherVpc]"
    ] * foreign


@pytest.mark.parametrize("kind", ["lustre", "home"])
@pytest.mark.parametrize("where", ["there", "elsewhere", "other nodes"])
def test_a_mount_that_nodes_do_not_reach_by_themselves_is_warned_of(
    stack: cdk.Stack,
    make_fleet: Any,
    networks: tuple[TrainingVpc, TrainingVpc],
    warnings: Warnings,
    kind: str,
    where: str,
) -> None:
    one, other = networks
    of = other if where == "elsewhere" else one
    nodes = EfaSecurityGroup(stack, "Theirs", vpc=one.vpc)
    clients = nodes if where == "there" else EfaSecurityGroup(stack, "Clients", vpc=of.vpc)
    made: Any = file_system(kind, stack, vpc=of.vpc, subnet=of.private_subnet, client_security_group=clients)
    mount = {"lustre": made.mount} if kind == "lustre" else {"shared_home": made.mount}

    make_fleet(vpc=lambda _: one.vpc, subnet=lambda _: one.private_subnet, security_group=lambda _: nodes, **mount)

    name = "lustre" if kind == "lustre" else "sharedHome"
    texts = {
        "there": [],
        "elsewhere": [
            f"{name} is in Demo/Other/Vpc, the nodes in Demo/One/Vpc: they mount it only where a peering or a transit "
            f"gateway joins both [ack: trainfabric:{name}OfAnotherVpc]"
        ],
        "other nodes": [
            f"{name} lets in the nodes of another security group than theirs: the mount times out unless it is opened "
            "to them as well. Give the file system the nodes' group as client_security_group "
            f"[ack: trainfabric:{name}OfOtherNodes]"
        ],
    }
    assert [text for text in warnings() if f"trainfabric:{name}Of" in text] == texts[where]


def test_a_cluster_takes_no_subnet_and_no_group_of_another_vpc(
    stack: cdk.Stack, networks: tuple[TrainingVpc, TrainingVpc]
) -> None:
    one, other = networks
    group = EfaSecurityGroup(stack, "Nodes", vpc=other.vpc)
    bucket = s3.Bucket.from_bucket_name(stack, "Data", "demo-data")

    found = refusal(
        lambda: ParallelClusterStack(
            cast(cdk.App, cdk.App.of(stack)),
            "Slurm",
            environment="demo",
            vpc=one.vpc,
            subnet=other.private_subnet,
            security_group=group,
            instance_type="p4d.24xlarge",
            nodes=2,
            data_bucket=bucket,
            checkpoint_bucket=s3.Bucket.from_bucket_name(stack, "Saves", "demo-saves"),
            file_system_id="fs-0123456789abcdef0",
        )
    )

    foreign = FOREIGN.format(own="Demo/One/Vpc", other="Demo/Other/Vpc")
    assert found == [f"Slurm: subnet must be {foreign}", f"Slurm: security_group must be {foreign}"]


def test_imported_vpcs_are_told_apart_by_their_ids(stack: cdk.Stack, make_fleet: Any) -> None:
    one, other = imported(stack, "vpc-11111111"), imported(stack, "vpc-22222222")
    group = EfaSecurityGroup(stack, "Foreign", vpc=other)
    given = {"vpc": lambda _: one, "subnet": lambda _: other.private_subnets[0], "security_group": lambda _: group}

    foreign = FOREIGN.format(own="vpc-11111111", other="vpc-22222222")
    assert refusal(lambda: make_fleet(**given)) == [
        f"Demo/Fleet: subnet must be {foreign}",
        f"Demo/Fleet: security_group must be {foreign}",
    ]


def test_nothing_is_said_of_a_vpc_settled_when_deployed(stack: cdk.Stack, make_fleet: Any) -> None:
    later = ec2.Vpc.from_vpc_attributes(
        stack, "Later", vpc_id=cdk.Fn.import_value("vpc"), availability_zones=["us-east-1a"]
    )

    fleet = make_fleet(vpc=lambda _: later)

    assert fleet.node_groups


def test_the_same_vpc_given_twice_is_one(stack: cdk.Stack, make_fleet: Any) -> None:
    again = lambda network: ec2.Vpc.from_vpc_attributes(  # noqa: E731
        stack, "Again", vpc_id=network.vpc.vpc_id, availability_zones=["us-east-1a"]
    )

    assert make_fleet(vpc=again).node_groups


@pytest.mark.parametrize("cidr", ["172.17.0.0/16", "172.16.0.0/12", "172.17.4.0/24"])
def test_an_existing_vpc_in_the_range_of_dockers_bridge_is_warned_about(
    stack: cdk.Stack, make_fleet: Any, warnings: Warnings, cidr: str
) -> None:
    theirs = ec2.Vpc.from_vpc_attributes(
        stack, "Theirs", vpc_id="vpc-11111111", vpc_cidr_block=cidr, availability_zones=["us-east-1a"]
    )
    make_fleet(vpc=lambda _: theirs, has_s3_endpoint=True)

    assert warnings() == [
        f"the VPC's range {cidr} overlaps 172.17.0.0/16, which Docker routes to its own containers: nodes reach no "
        "peer or file system there. Use another VPC, or an image whose Docker has another bridge (bip in "
        "/etc/docker/daemon.json) [ack: trainfabric:rangeOfDocker]"
    ]


def test_a_vpc_of_the_cdk_in_the_range_of_dockers_bridge_is_warned_about(
    stack: cdk.Stack, make_fleet: Any, warnings: Warnings
) -> None:
    own = ec2.CfnVPC(stack, "Own", cidr_block="172.17.0.0/16")
    vpc = ec2.Vpc.from_vpc_attributes(stack, "Same", vpc_id=own.ref, availability_zones=["us-east-1a"])
    subnet = ec2.CfnSubnet(stack, "Subnet", vpc_id=own.ref, cidr_block="172.17.0.0/17")
    given = ec2.Subnet.from_subnet_attributes(
        stack, "Given", subnet_id=subnet.ref, availability_zone="us-east-1a", route_table_id="rtb-11111111"
    )
    group = EfaSecurityGroup(stack, "Group", vpc=vpc)
    make_fleet(vpc=lambda _: vpc, subnet=lambda _: given, security_group=lambda _: group, has_s3_endpoint=True)

    assert [one for one in warnings() if "rangeOfDocker" in one] != []


@pytest.mark.parametrize("cidr", ["10.0.0.0/16", None])
def test_other_and_unknown_ranges_of_an_existing_vpc_are_taken(
    stack: cdk.Stack, make_fleet: Any, warnings: Warnings, cidr: str | None
) -> None:
    theirs = ec2.Vpc.from_vpc_attributes(
        stack, "Theirs", vpc_id="vpc-11111111", vpc_cidr_block=cidr, availability_zones=["us-east-1a"]
    )
    make_fleet(vpc=lambda _: theirs, has_s3_endpoint=True)

    assert warnings() == []
