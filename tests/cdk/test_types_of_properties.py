"""Properties of the wrong Python type are refused, with their place, before anything is made of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

import trainfabric_cdk
from trainfabric_cdk import (
    CheckpointBucket,
    DataBucket,
    EfaClusterPlacementGroup,
    EfaSecurityGroup,
    PropertyError,
    SharedHome,
    SpotTrainingFleet,
    TrainingVpc,
)

IMPORT = "import what exists, such as with Vpc.from_lookup or Bucket.from_bucket_name"
FLAG = "text counts as true whatever it says: compare it"


def refusal(make: Callable[[], object]) -> list[str]:
    with pytest.raises(PropertyError) as refused:
        make()
    return str(refused.value).splitlines()


@pytest.mark.parametrize("bucket", [DataBucket, CheckpointBucket])
@pytest.mark.parametrize("value", ["false", "", None, 0])
def test_data_is_not_kept_or_deleted_by_a_word(stack: cdk.Stack, bucket: Any, value: Any) -> None:
    assert refusal(lambda: bucket(stack, "Bucket", retain=value)) == [
        f"Demo/Bucket: retain must be True or False, got {value!r}; {FLAG}"
    ]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"efa": "false"}, f"Demo/Fleet: efa must be True or False, got 'false'; {FLAG}"),
        ({"own_command": "no"}, f"Demo/Fleet: own_command must be True or False, got 'no'; {FLAG}"),
        (
            {"boot_commands": "echo hi"},
            "Demo/Fleet: boot_commands must be a list of texts, got 'echo hi'; put it into a list",
        ),
        (
            {"boot_commands": ["echo hi", 7]},
            "Demo/Fleet: boot_commands must be a list of texts, got ['echo hi', 7]; put it into a list",
        ),
        (
            {"vpc": "vpc-0123456789abcdef0"},
            f"Demo/Fleet: vpc must be an IVpc of the CDK, got 'vpc-0123456789abcdef0'; {IMPORT}",
        ),
        ({"data_bucket": "ours"}, f"Demo/Fleet: data_bucket must be an IBucket of the CDK, got 'ours'; {IMPORT}"),
        ({"lustre": "fs-0123456789abcdef0"}, "Demo/Fleet: lustre must be a LustreMount, got 'fs-0123456789abcdef0'"),
        ({"coordinator": "control"}, "Demo/Fleet: coordinator must be a Coordinator, got 'control'"),
        ({"image_id": 7}, "Demo/Fleet: image_id must be text, got 7"),
    ],
)
def test_a_fleet_takes_values_of_the_types_that_it_declares(
    make_fleet: Callable[..., SpotTrainingFleet], given: dict[str, Any], message: str
) -> None:
    assert refusal(lambda: make_fleet(**given)) == [message]


def test_all_of_them_are_told_at_once_at_the_place_of_the_construct(stack: cdk.Stack) -> None:
    inner = Construct(stack, "Inner")

    assert refusal(lambda: EfaSecurityGroup(inner, "Nodes", vpc=None, description=7)) == [  # type: ignore[arg-type]
        f"Demo/Inner/Nodes: vpc must be an IVpc of the CDK, got None; {IMPORT}",
        "Demo/Inner/Nodes: description must be text, got 7",
    ]


def test_tokens_of_every_kind_are_taken_for_what_they_stand_for(stack: cdk.Stack) -> None:
    name = cdk.Fn.import_value("zone")

    home: dict[str, Any] = {"capacity_gib": cdk.Token.as_number(cdk.Fn.ref("Size")), "kind": "openzfs"}

    network = TrainingVpc(stack, "Network", availability_zone=name)
    nodes = EfaSecurityGroup(stack, "Nodes", vpc=network.vpc)
    SharedHome(stack, "Home", vpc=network.vpc, subnet=network.private_subnet, client_security_group=nodes, **home)


def test_a_proxy_of_the_cdk_is_one_of_its_interfaces(stack: cdk.Stack) -> None:
    vpc = ec2.Vpc.from_vpc_attributes(stack, "Vpc", vpc_id="vpc-12345678", availability_zones=["us-east-1a"])

    EfaSecurityGroup(stack, "Nodes", vpc=vpc)


def test_every_construct_checks_the_types_of_its_properties() -> None:
    unchecked = {
        name
        for name in trainfabric_cdk.__all__
        if inspect.isclass(made := getattr(trainfabric_cdk, name))
        and issubclass(made, Construct)
        and any(one.kind is one.KEYWORD_ONLY for one in inspect.signature(made.__init__).parameters.values())
        and not hasattr(made.__init__, "__wrapped__")
    }

    assert unchecked == set()
    assert hasattr(EfaClusterPlacementGroup.__init__, "__wrapped__")
