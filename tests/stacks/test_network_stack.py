from __future__ import annotations

from typing import Any

import pytest
from aws_cdk.assertions import Annotations, Match

from trainfabric_cdk import PropertyError
from trainfabric_plan.environment import Environment, validate_environment
from trainfabric_stacks import NetworkStack, training_app
from trainfabric_stacks.network_stack import addresses_taken, fleet_addresses

VPC = {"vpc_id": "vpc-12345678", "subnet_id": "subnet-12345678"}


def environment(network: dict[str, Any], nodes: int = 2, storage: dict[str, Any] | None = None) -> Environment:
    data = {
        "name": "demo",
        "region": "us-east-1",
        "availability_zone": "us-east-1a",
        "network": network,
        "storage": storage or {},
        "fleet": {"instance_type": "p5.48xlarge", "nodes": nodes, "spares": 1},
        "training": {"recipe": "gpt_1b3_4x_p5"},
    }
    return validate_environment(data, "demo.yaml")


@pytest.mark.parametrize(
    ("network", "warnings"),
    [
        (VPC, 1),
        ({**VPC, "has_s3_endpoint": True}, 0),
        ({**VPC, "route_table_id": "rtb-12345678"}, 0),
        ({}, 0),
    ],
    ids=["nothing said", "said to have one", "gets one", "made here"],
)
def test_an_existing_network_without_an_s3_endpoint_in_sight_is_warned_of(
    network: dict[str, Any], warnings: int
) -> None:
    stack = NetworkStack(training_app(), "Network", environment=environment(network))

    found = Annotations.from_stack(stack).find_warning("*", Match.string_like_regexp("trainfabric:noS3Endpoint"))
    assert len(found) == warnings


def test_a_range_too_small_for_nodes_and_spares_is_refused() -> None:
    with pytest.raises(PropertyError) as refused:
        NetworkStack(training_app(), "Network", environment=environment({"cidr": "10.9.0.0/24"}, nodes=123))

    assert str(refused.value) == (
        "Network/Network: cidr must be large enough for 126 addresses in its private half, "
        "got 123 free in 10.9.0.0/25; choose a larger range, up to /16, or fewer nodes; file systems take addresses "
        "as well"
    )


EXISTING = {"file_system_id": "fs-0123456789abcdef0", "mount_name": "abcdefgh"}


@pytest.mark.parametrize(
    ("storage", "taken"),
    [
        ({}, 5),
        ({"shared_home": "efs"}, 6),
        ({"shared_home": "openzfs"}, 6),
        ({"lustre": EXISTING}, 3),
        ({"lustre": EXISTING, "shared_home": "efs"}, 4),
    ],
)
def test_file_systems_that_are_made_here_have_room_kept_beside_the_nodes(storage: dict[str, Any], taken: int) -> None:
    given = environment({}, storage=storage)

    assert (fleet_addresses(given), addresses_taken(given)) == (3, taken)
