from __future__ import annotations

from typing import Any

from trainfabric_plan.catalog import INSTANCE_TYPES


def test_json_is_a_list_with_a_row_for_every_type(trainfabric: Any) -> None:
    ended = trainfabric("catalog", "--json")

    assert (ended.status, ended.err) == (0, "")
    assert [row["instance_type"] for row in ended.json] == list(INSTANCE_TYPES)


def test_a_row_has_the_interfaces_of_a_node_and_the_price_with_date_and_source(trainfabric: Any) -> None:
    (row,) = trainfabric("catalog", "p6-b300.48xlarge", "--json").json

    assert row == {
        "instance_type": "p6-b300.48xlarge",
        "accelerator": "B300",
        "accelerators": 8,
        "accelerator_memory_mib": 275040,
        "vcpus": 192,
        "memory_gib": 4096,
        "architecture": "x86_64",
        "network_gbps": 6400,
        "cards": 17,
        "efa": 16,
        "efa_interfaces": [
            {"card": 0, "device": 0, "type": "interface"},
            *({"card": card, "device": 1, "type": "efa-only"} for card in range(1, 17)),
        ],
        "source": "Karpenter zz_generated.vpclimits.go and instance-type reference; moto 5.2.5 DescribeInstanceTypes",
        "date": "2026-08",
        "price": {
            "usd_per_hour": 142.416,
            "region": "us-east-1",
            "date": "2026-07-20",
            "source": "github.com/aws/karpenter-provider-aws zz_generated.pricing_aws.go, us-east-1 on-demand Linux",
        },
    }


def test_a_type_whose_price_nobody_could_confirm_has_none(trainfabric: Any) -> None:
    (row,) = trainfabric("catalog", "p5e.48xlarge", "--json").json

    assert row["price"] is None
    assert "no source found" in trainfabric("catalog", "p5e.48xlarge").out


def test_people_get_a_line_for_every_type(trainfabric: Any) -> None:
    lines = [" ".join(line.split()) for line in trainfabric("catalog").out.splitlines()]

    assert "p5.48xlarge 8 × H100 192 2048 3200 32 32 55.04 2026-07-20, us-east-1, on demand" in lines
    assert sum(line.split(" ")[0] in INSTANCE_TYPES for line in lines) == len(INSTANCE_TYPES)


def test_people_get_the_interfaces_of_a_single_type(trainfabric: Any) -> None:
    lines = [" ".join(line.split()) for line in trainfabric("catalog", "g6e.24xlarge").out.splitlines()]

    start = lines.index("Network interfaces of a node")
    assert [line for line in lines[start:] if line[:1].isdigit()] == ["0 0 interface", "0 1 efa-only", "1 1 efa-only"]


def test_an_unknown_type_ends_with_status_2_and_the_nearest(trainfabric: Any) -> None:
    ended = trainfabric("catalog", "p6-b200.24xlarge", "--json")

    assert (ended.status, ended.out) == (2, "")
    assert ended.err == (
        "catalog: instance type must be a known one, got p6-b200.24xlarge; did you mean p6-b200.48xlarge or "
        "p6-b300.48xlarge? (docs/how-to/add-an-instance-type.md says how to add one)\n"
    )
