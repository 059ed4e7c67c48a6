"""Tokens of every kind, and what makes each public construct with one of its properties given so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns

from trainfabric_cdk import (
    Capacity,
    CheckpointBucket,
    Coordinator,
    DataBucket,
    EfaClusterPlacementGroup,
    EfaSecurityGroup,
    ExistingLustre,
    LustreAlarms,
    LustreLink,
    LustreLinkedToS3,
    LustreMount,
    LustreStorage,
    ParallelClusterStack,
    SharedHome,
    SharedHomeMount,
    SpotTrainingFleet,
    TrainingDashboard,
    TrainingKey,
    TrainingVpc,
)
from trainfabric_plan.capacity import CapacityKind

ENV = cdk.Environment(account="123456789012", region="us-east-1")


def text(_: cdk.Stack) -> str:
    return cdk.Fn.import_value("exported")


def number(_: cdk.Stack) -> float:
    return float(cdk.Token.as_number(cdk.Fn.import_value("exported")))


def texts(stack: cdk.Stack) -> list[str]:
    return [text(stack)]


def whole_list(_: cdk.Stack) -> list[str]:
    return list(cdk.Fn.split(",", cdk.Fn.import_value("exported")))


def named(stack: cdk.Stack) -> dict[str, str]:
    return {"name": text(stack)}


def vpc(stack: cdk.Stack) -> ec2.IVpc:
    zones = ["us-east-1a"]
    return ec2.Vpc.from_vpc_attributes(stack, "TokenVpc", vpc_id=text(stack), availability_zones=zones)


def subnet(stack: cdk.Stack) -> ec2.ISubnet:
    token = text(stack)
    return ec2.Subnet.from_subnet_attributes(
        stack, "TokenSubnet", subnet_id=token, availability_zone=token, route_table_id=token, ipv4_cidr_block=token
    )


def group(stack: cdk.Stack) -> ec2.ISecurityGroup:
    return ec2.SecurityGroup.from_security_group_id(stack, "TokenGroup", text(stack))


def bucket(stack: cdk.Stack) -> s3.IBucket:
    return s3.Bucket.from_bucket_name(stack, "TokenBucket", text(stack))


def key(stack: cdk.Stack) -> kms.IKey:
    return kms.Key.from_key_arn(stack, "TokenKey", text(stack))


def topic(stack: cdk.Stack) -> sns.ITopic:
    return sns.Topic.from_topic_arn(stack, "TokenTopic", text(stack))


def placement_group(stack: cdk.Stack) -> ec2.IPlacementGroup:
    return ec2.PlacementGroup.from_placement_group_name(stack, "TokenPlacement", text(stack))


def lustre(stack: cdk.Stack) -> LustreMount:
    return LustreMount(dns_name=text(stack), mount_name=text(stack))


def home(stack: cdk.Stack) -> SharedHomeMount:
    return SharedHomeMount(server=text(stack), path="/")


def spot(stack: cdk.Stack) -> Capacity:
    return Capacity.spot(number(stack))


def place(stack: cdk.Stack) -> dict[str, Any]:
    """A network that exists."""
    group = ec2.SecurityGroup.from_security_group_id(stack, "Group", "sg-12345678")
    return {
        "vpc": ec2.Vpc.from_vpc_attributes(stack, "Vpc", vpc_id="vpc-12345678", availability_zones=["us-east-1a"]),
        "subnet": ec2.Subnet.from_subnet_attributes(
            stack, "Subnet", subnet_id="subnet-12345678", availability_zone="us-east-1a", route_table_id="rtb-12345678"
        ),
        "group": group,
    }


def buckets(stack: cdk.Stack) -> dict[str, s3.IBucket]:
    return {
        "data_bucket": s3.Bucket.from_bucket_name(stack, "Data", "demo-data"),
        "checkpoint_bucket": s3.Bucket.from_bucket_name(stack, "Checkpoints", "demo-checkpoints"),
    }


def fleet(stack: cdk.Stack, **given: Any) -> None:
    here = place(stack)
    if "vpc" in given:  # what is made in it is the group of a small coordinator
        given["coordinator"] = Coordinator.control()
    if "training_image" in given:
        given["own_command"] = True
    usual: dict[str, Any] = {
        "environment": "demo",
        "vpc": here["vpc"],
        "subnet": here["subnet"],
        "security_group": here["group"],
        "instance_type": "p5.48xlarge",
        "nodes": 2,
        **buckets(stack),
        "lustre": LustreMount(dns_name="fs-1.fsx.us-east-1.amazonaws.com", mount_name="abcdefgh"),
    }
    SpotTrainingFleet(stack, "It", **{**usual, **given})


def bought(stack: cdk.Stack, **given: Any) -> None:
    kind = CapacityKind.SPOT if "max_price" in given else CapacityKind.RESERVATION
    fleet(stack, workers=Capacity(**{"kind": kind, **given}))


def cluster(stack: cdk.Stack, **given: Any) -> None:
    here = place(stack)
    usual: dict[str, Any] = {
        "environment": "demo",
        "vpc": here["vpc"],
        "subnet": here["subnet"],
        "security_group": here["group"],
        "instance_type": "p4d.24xlarge",
        "nodes": 8,
        **buckets(stack),
        "file_system_id": "fs-0123456789abcdef0",
        "version": "3.16.1",
    }
    ParallelClusterStack(cdk.App.of(stack), "It", env=ENV, **{**usual, **given})  # type: ignore[arg-type]


def file_system(stack: cdk.Stack, **given: Any) -> None:
    here = place(stack)
    usual: dict[str, Any] = {"vpc": here["vpc"], "subnet": here["subnet"], "client_security_group": here["group"]}
    usual["bucket"] = s3.Bucket.from_bucket_name(stack, "Data", "demo-data")
    LustreLinkedToS3(stack, "It", **{**usual, **given})


def stored(kind: Callable[..., LustreStorage]) -> Callable[..., None]:
    def make(stack: cdk.Stack, **given: Any) -> None:
        file_system(stack, storage=kind(**given))

    return make


def tiered(stack: cdk.Stack, **given: Any) -> None:
    usual = {} if "required_throughput_mbps" in given else {"throughput_mbps": 4000}
    file_system(stack, storage=LustreStorage.intelligent_tiering(**{**usual, **given}), bucket=None)


def link(stack: cdk.Stack, **given: Any) -> None:
    file_system(stack, links=[LustreLink(**{"path": "/data", "prefix": "data/", **given})])


def existing(stack: cdk.Stack, **given: Any) -> None:
    usual: dict[str, Any] = {"file_system_id": "fs-0123456789abcdef0", "mount_name": "abcdefgh"}
    if "group" in str(given):
        usual |= dict.fromkeys(("security_group", "client_security_group"), place(stack)["group"])
    made = ExistingLustre(stack, "It", **{**usual, **given})
    cdk.CfnOutput(stack, "Name", value=f"{made.mount.dns_name}@tcp:/{made.mount.mount_name}")


def shared_home(stack: cdk.Stack, **given: Any) -> None:
    here = place(stack)
    usual: dict[str, Any] = {"vpc": here["vpc"], "subnet": here["subnet"], "client_security_group": here["group"]}
    SharedHome(stack, "It", **{"kind": "openzfs", **usual, **given})


def placed(stack: cdk.Stack, **given: Any) -> None:
    usual = {"nodes": 8} if "max_nodes_per_group" in given else {}
    made = EfaClusterPlacementGroup(stack, "It", **{**usual, **given})
    cdk.CfnOutput(stack, "Name", value=made.placement_group_name)


def of(construct: Any, **usual: Any) -> Callable[..., None]:
    def make(stack: cdk.Stack, **given: Any) -> None:
        construct(stack, "It", **{**usual, **given})

    return make


def group_of(stack: cdk.Stack, **given: Any) -> None:
    EfaSecurityGroup(stack, "It", **{"vpc": place(stack)["vpc"], **given})


MAKERS: dict[str, Callable[..., None]] = {
    "Capacity": bought,
    "Capacity.block": lambda stack, **given: fleet(stack, workers=Capacity.block(**given)),
    "Capacity.interruptible_reservation": lambda stack, **given: fleet(
        stack, workers=Capacity.interruptible_reservation(**{"reservation": "cr-0123456789abcdef0", **given})
    ),
    "Capacity.reservation": lambda stack, **given: fleet(
        stack, workers=Capacity.reservation(**{"reservation": "cr-0123456789abcdef0", **given})
    ),
    "Capacity.reservation_group": lambda stack, **given: fleet(
        stack,
        workers=Capacity.reservation_group(
            **{"arn": "arn:aws:resource-groups:us-east-1:123456789012:group/ours", **given}
        ),
    ),
    "Capacity.spot": lambda stack, **given: fleet(stack, workers=Capacity.spot(**given)),
    "CheckpointBucket": of(CheckpointBucket),
    "Coordinator": lambda stack, **given: fleet(stack, coordinator=Coordinator(**given)),
    "Coordinator.control": lambda stack, **given: fleet(stack, coordinator=Coordinator.control(**given)),
    "DataBucket": of(DataBucket),
    "EfaClusterPlacementGroup": placed,
    "EfaSecurityGroup": group_of,
    "ExistingLustre": existing,
    "LustreAlarms": of(LustreAlarms, file_system_id="fs-0123456789abcdef0", capacity_gib=1200, exports=True),
    "LustreLink": link,
    "LustreLinkedToS3": file_system,
    "LustreMount": lambda stack, **given: fleet(
        stack, lustre=LustreMount(**{"dns_name": "fs-1.fsx.us-east-1.amazonaws.com", "mount_name": "a", **given})
    ),
    "LustreStorage.intelligent_tiering": tiered,
    "LustreStorage.persistent_2": stored(LustreStorage.persistent_2),
    "LustreStorage.scratch_2": stored(LustreStorage.scratch_2),
    "ParallelClusterStack": cluster,
    "SharedHome": shared_home,
    "SharedHomeMount": lambda stack, **given: fleet(
        stack, shared_home=SharedHomeMount(**{"server": "10.20.0.5", "path": "/fsx", **given})
    ),
    "SpotTrainingFleet": fleet,
    "TrainingDashboard": of(TrainingDashboard, environment="demo", file_system_id="fs-0123456789abcdef0", groups={}),
    "TrainingKey": of(TrainingKey),
    "TrainingVpc": of(TrainingVpc, availability_zone="us-east-1a"),
}
"""What makes each of them, with what else it needs."""
