from __future__ import annotations

from typing import Any

import pytest

from trainfabric_plan.environment import validate_environment
from trainfabric_plan.planning import cost_per_hour

VPC = {"network.vpc_id": "vpc-12345678", "network.subnet_id": "subnet-12345678"}
PREPARED = {"fleet.prepared_image": True, "fleet.ami_id": "ami-0123456789abcdef0"}
CLOSED = {"network.egress": "endpoints", **PREPARED}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param(
            {"network.egress": "endpoints"},
            "demo.yaml: fleet.prepared_image must be true with egress endpoints: boot installs Python packages and the "
            "Lustre client from outside, got false; prepare an image (docs/how-to/run-without-internet.md), or use "
            "network.egress: nat",
            id="endpoints alone and a boot that installs",
        ),
        pytest.param(
            {**CLOSED, **VPC, "network.has_s3_endpoint": True},
            "demo.yaml: network.egress must be left out with an existing VPC, which has its own way out, "
            "got endpoints; remove network.egress",
            id="endpoints of an existing network",
        ),
        pytest.param(
            {**CLOSED, "network.assign_public_ips": True, "fleet.efa": False},
            "demo.yaml: network.assign_public_ips must be false with egress endpoints: there is no way to the "
            "internet, got true; remove network.assign_public_ips",
            id="public addresses without a way to the internet",
        ),
        pytest.param(
            {"network.egress": "endpoints", "orchestrator": "parallelcluster"},
            "demo.yaml: network.egress must be nat with parallelcluster, whose nodes call more services than ours, "
            "got endpoints; remove network.egress",
            id="endpoints alone with parallelcluster",
        ),
        pytest.param(
            {**VPC, "network.route_table_id": "rtb-12345678", "network.has_s3_endpoint": True},
            "demo.yaml: network.has_s3_endpoint must be left out beside route_table_id, to which an endpoint is added, "
            "got true; remove one of them",
            id="an S3 endpoint twice",
        ),
        pytest.param(
            {"network.has_s3_endpoint": True},
            "demo.yaml: network.has_s3_endpoint must be given only of an existing VPC: one that is made here has an S3 "
            "endpoint, got true; remove it",
            id="an S3 endpoint of a network that is made here",
        ),
    ],
)
def test_a_broken_rule_of_the_network_is_named(mistakes: Any, changes: dict[str, Any], message: str) -> None:
    assert [str(found) for found in mistakes(changes)] == [message]


ECR = "123456789012.dkr.ecr.us-east-1.amazonaws.com/megatron:2026-11"


@pytest.mark.parametrize(
    "image", ["nvcr.io/nvidia/pytorch:26.10-py3", "megatron:1", ECR.replace("us-east-1", "us-west-2")]
)
def test_an_image_that_endpoints_do_not_reach_is_refused(mistakes: Any, image: str) -> None:
    training = {"command": "./train.sh", "image": image}

    assert mistakes({**CLOSED, "training": training}) == [
        "demo.yaml: training.image must be one in Amazon ECR of the network's own region with endpoints alone: nodes "
        f"reach no other registry, got {image}; push it there, or set up a pull-through cache, or use "
        "network.egress: nat"
    ]


@pytest.mark.parametrize(("network", "image"), [({}, "megatron:1"), (CLOSED, ECR)])
def test_an_image_within_reach_is_taken(environment_data: Any, network: dict[str, Any], image: str) -> None:
    data = environment_data({**network, "training": {"command": "./train.sh", "image": image}})

    assert validate_environment(data, "demo.yaml").training.image == image


def test_a_closed_network_with_a_prepared_image_costs_its_endpoints_instead_of_nat(environment_data: Any) -> None:
    usual = [item.item for item in cost_per_hour(validate_environment(environment_data({}), "demo.yaml")).items]
    closed = cost_per_hour(validate_environment(environment_data(CLOSED), "demo.yaml")).items

    assert "NAT gateway" in usual
    assert [item.item for item in closed] == [
        *(item for item in usual if item != "NAT gateway"),
        "5 interface endpoints",
    ]
    assert closed[-1].usd_per_hour == 0.05
    assert closed[-1].basis.startswith("awsnegotiations.com/privatelink-cost-analysis.html, per zone, 2026-05")


@pytest.mark.parametrize("first", ["0.0.0.0", "127.0.0.0", "169.254.0.0", "224.0.0.0", "239.1.0.0", "250.0.0.0"])
def test_a_range_whose_addresses_no_host_has_is_refused(mistakes: Any, first: str) -> None:
    assert mistakes({"network.cidr": f"{first}/16"}) == [
        "demo.yaml: network.cidr must be a range whose addresses hosts can have: no loopback, link-local, multicast or "
        f"reserved one, got {first}/16; use a private range such as 10.20.0.0/16"
    ]


@pytest.mark.parametrize("cidr", ["172.17.0.0/16", "172.17.255.0/24"])
def test_the_range_of_dockers_bridge_is_refused(mistakes: Any, cidr: str) -> None:
    assert mistakes({"network.cidr": cidr}) == [
        "demo.yaml: network.cidr must be outside 172.17.0.0/16, which Docker routes to its own containers on every "
        f"node, got {cidr}; use another private range such as 10.20.0.0/16"
    ]


@pytest.mark.parametrize("cidr", ["10.20.0.1/16", "300.0.0.0/16"])
def test_a_range_that_is_none_is_refused(mistakes: Any, cidr: str) -> None:
    assert mistakes({"network.cidr": cidr}) == [
        f"demo.yaml: network.cidr must be a range whose first address is that of the network, got {cidr}; "
        "use 10.20.0.0/16"
    ]


@pytest.mark.parametrize("cidr", ["172.16.0.0/16", "172.18.0.0/16", "100.64.0.0/20", "52.0.0.0/16"])
def test_other_ranges_are_taken(environment_data: Any, cidr: str) -> None:
    given = validate_environment(environment_data({"network.cidr": cidr}), "demo.yaml")

    assert given.network.cidr == cidr
