from __future__ import annotations

from typing import Any

import pytest

from trainfabric_plan.catalog import INSTANCE_TYPES


def words(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def test_json_is_a_list_with_a_row_for_every_type(trainfabric: Any) -> None:
    ended = trainfabric("catalog", "--json")

    assert (ended.status, ended.err) == (0, "")
    assert [row["instance_type"] for row in ended.json] == list(INSTANCE_TYPES)


def test_a_row_has_the_interfaces_of_a_node_and_the_price_with_date_and_source(trainfabric: Any) -> None:
    (row,) = trainfabric("catalog", "p6-b300.48xlarge", "--json").json

    guide = "EC2 user guide, efa-acc-inst-types, read 2026-11"
    plugin = "aws-ofi-nccl src/platform-aws.cpp requires it, 2026-08"
    page = "the public page GPU & Network Constants of 2026-01-25"
    quoted = f"NVIDIA HGX and NVL72 datasheets, as quoted in {page}, one direction doubled"
    assert row == {
        "instance_type": "p6-b300.48xlarge",
        "accelerator": "B300",
        "accelerators": 8,
        "accelerator_memory_mib": 275040,
        "maker": "nvidia",
        "peak_tflops": {"bf16": 2250, "fp16": 2250, "fp8": 4500},
        "memory_gbytes_per_s": 8000,
        "links": {"kind": "NVLink", "generation": 5, "gbytes_per_s": 1800, "source": quoted},
        "vcpus": 192,
        "memory_gib": 4096,
        "nvme_gb": 30400,
        "architecture": "x86_64",
        "network_gbps": 6400,
        "efa_gbps": 6400,
        "ip_gbps": 3870,
        "gpudirect_rdma": True,
        "cards": 17,
        "interfaces_per_card": [4] * 17,
        "efa": 16,
        "efa_interfaces": [
            {"card": 0, "device": 0, "type": "interface"},
            *({"card": card, "device": 1, "type": "efa-only"} for card in range(1, 17)),
        ],
        "bandwidth_interfaces": [
            {"card": 0, "device": 0, "type": "interface"},
            *(
                {"card": card, "device": device, "type": kind}
                for card in range(1, 17)
                for device, kind in enumerate(("efa-only", "interface"))
            ),
        ],
        "usage_classes": ["capacity-block", "on-demand", "spot"],
        "cluster_placement": True,
        "ultraserver_nodes": [],
        "source": "Karpenter zz_generated.vpclimits.go and instance-type reference; moto 5.2.5 DescribeInstanceTypes",
        "date": "2026-08",
        "sources": {"ip_gbps": guide, "ip_cards": guide, "gpudirect_rdma": plugin},
        "unknown": {},
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
    assert "on demand unknown no source found" in words(trainfabric("catalog", "p5e.48xlarge").out)


def test_what_nobody_could_confirm_is_null_and_shown_with_the_reason(trainfabric: Any) -> None:
    (row,) = trainfabric("catalog", "p6e-gb200.36xlarge", "--json").json

    reason = "the EC2 user guide gives 100 Gbps for card 0 and up to 200 Gbps for each even card, and no sum"
    assert (row["ip_gbps"], row["unknown"]["ip_gbps"]) == (None, reason)
    lines = words(trainfabric("catalog", "p6e-gb200.36xlarge").out)
    assert any(line.startswith("IP, at most unknown the EC2 user guide gives 100 Gbps") for line in lines)


def test_a_type_of_ultraservers_says_how_many_nodes_make_one(trainfabric: Any) -> None:
    (row,) = trainfabric("catalog", "p6e-gb200.36xlarge", "--json").json

    assert row["ultraserver_nodes"] == [9, 18]
    lines = words(trainfabric("catalog", "trn2u.48xlarge").out)
    assert any(line.startswith("nodes of an UltraServer 4 AWS Neuron documentation") for line in lines)
    assert not any("UltraServer" in line for line in words(trainfabric("catalog", "p5.48xlarge").out))


def test_people_get_a_line_for_every_type(trainfabric: Any) -> None:
    lines = words(trainfabric("catalog").out)

    assert "p5.48xlarge 8 × H100 192 2048 3200 32 55.04 2026-07-20" in lines
    assert "p5e.48xlarge 8 × H200 192 2048 3200 32 no source" in lines
    assert sum(line.split(" ")[0] in INSTANCE_TYPES for line in lines) == len(INSTANCE_TYPES)


def test_the_table_fits_a_hundred_columns(trainfabric: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainfabric_cli.output._WIDTH_OF_A_PIPE", 100)

    lines = trainfabric("catalog").out.splitlines()

    assert max(map(len, lines)) <= 100
    assert sum(line.split(" ")[1] in INSTANCE_TYPES for line in lines if " " in line) == len(INSTANCE_TYPES)


def test_people_get_the_interfaces_of_a_single_type(trainfabric: Any) -> None:
    lines = words(trainfabric("catalog", "g6e.24xlarge").out)

    start = lines.index("Network interfaces of a node (1 with an address)")
    assert [line for line in lines[start:] if line[:1].isdigit()] == ["0 0 interface", "0 1 efa-only", "1 1 efa-only"]


def test_an_unknown_type_ends_with_status_2_and_the_nearest(trainfabric: Any) -> None:
    ended = trainfabric("catalog", "p6-b200.24xlarge", "--json")

    assert (ended.status, ended.out) == (2, "")
    assert ended.err == (
        "catalog: instance type must be a known one, got p6-b200.24xlarge; did you mean p6-b200.48xlarge or "
        "p6-b300.48xlarge? (docs/how-to/add-an-instance-type.md says how to add one)\n"
    )


@pytest.mark.parametrize(
    ("given", "near"),
    [
        ("P5.48XLARGE", "p5.48xlarge or p5e.48xlarge"),
        ("p5", "p5.4xlarge or p5.48xlarge"),
        ("P6-B200", "p6-b200.48xlarge"),
    ],
)
def test_suggestions_know_families_and_do_not_mind_the_case(trainfabric: Any, given: str, near: str) -> None:
    assert trainfabric("catalog", given).err == (
        f"catalog: instance type must be a known one, got {given}; did you mean {near}? "
        "(docs/how-to/add-an-instance-type.md says how to add one)\n"
    )
