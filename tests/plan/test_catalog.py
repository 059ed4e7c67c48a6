"""The catalog's rows against DescribeInstanceTypes as moto ships it (data only: nothing of moto is imported)."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from trainfabric_plan.catalog import INSTANCE_TYPES, InstanceType, instance_type
from trainfabric_plan.errors import NotFound

ABSENT: Mapping[str, str] = {
    "p6e-gb200.36xlarge": "EC2 describes it only to accounts that may use UltraServers; the row names its sources"
}
"""Rows that the snapshot has no counterpart of, and why."""

ROWS = pytest.mark.parametrize("row", INSTANCE_TYPES.values(), ids=lambda row: row.name)


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    spec = find_spec("moto")
    assert spec and spec.origin
    data = Path(spec.origin).parent / "ec2" / "resources" / "instance_types.json.gz"
    loaded: dict[str, Any] = json.loads(gzip.decompress(data.read_bytes()))
    return loaded


def _network_gbps(text: str) -> float | str:
    """`3200 Gigabit`, `4x 100 Gigabit` and the bound of `Up to 12.5 Gigabit` as a number; other texts as they stand."""
    amount, _, unit = text.removeprefix("Up to ").rpartition(" ")
    count, times, each = amount.rpartition("x")
    try:
        return float(each) * (int(count) if times else 1) if unit == "Gigabit" else text
    except ValueError:
        return text


MAKERS = {"NVIDIA": "nvidia", None: "aws"}


def _accelerators(described: Mapping[str, Any]) -> tuple[str | None, int, int, str | None]:
    known = described.get("GpuInfo", {}).get("Gpus") or described.get("NeuronInfo", {}).get("NeuronDevices") or []
    if not known:
        return None, 0, 0, None
    (only,) = known
    return only["Name"], only["Count"], only["MemoryInfo"]["SizeInMiB"], MAKERS[only.get("Manufacturer")]


def _facts_of_ec2(described: Mapping[str, Any]) -> dict[str, Any]:
    network = described["NetworkInfo"]
    name, count, memory, maker = _accelerators(described)
    return {
        "vcpus": described["VCpuInfo"]["DefaultVCpus"],
        "memory_gib": described["MemoryInfo"]["SizeInMiB"] / 1024,
        "architecture": described["ProcessorInfo"]["SupportedArchitectures"],
        "accelerator": name,
        "accelerators": count,
        "accelerator_memory_mib": memory,
        "maker": maker,
        "nvme_gb": described.get("InstanceStorageInfo", {}).get("TotalSizeInGB", 0),
        "usage_classes": frozenset(described["SupportedUsageClasses"]),
        "cluster_placement": "cluster" in described["PlacementGroupInfo"]["SupportedStrategies"],
        "efa_of_each_card": ["efa-only" in card["InterfaceTypes"] for card in network["NetworkCards"]]
        if network["EfaSupported"]
        else [False] * len(network["NetworkCards"]),
        "efa": network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0),
        "interfaces_per_card": [card["MaximumNetworkInterfaces"] for card in network["NetworkCards"]],
        "network_gbps": _network_gbps(network["NetworkPerformance"]),
    }


def _facts_of_ours(row: InstanceType) -> dict[str, Any]:
    return {
        "vcpus": row.vcpus,
        "memory_gib": row.memory_gib,
        "architecture": [row.architecture],
        "accelerator": row.accelerator,
        "accelerators": row.accelerators,
        "accelerator_memory_mib": row.accelerator_memory_mib,
        "maker": row.maker,
        "nvme_gb": row.nvme_gb,
        "usage_classes": row.usage_classes,
        "cluster_placement": row.cluster_placement,
        "efa_of_each_card": [card.efa for card in row.known_cards],
        "efa": row.efa_interface_count,
        "interfaces_per_card": [card.interfaces for card in row.known_cards],
        "network_gbps": row.network_gbps,
    }


def test_every_row_is_in_the_snapshot_but_those_that_ec2_describes_to_few(described: dict[str, Any]) -> None:
    assert set(INSTANCE_TYPES) - set(described) == set(ABSENT)


@pytest.mark.parametrize(
    "row", [row for row in INSTANCE_TYPES.values() if row.name not in ABSENT], ids=lambda row: row.name
)
def test_a_row_says_what_ec2_says_or_whose_error_the_difference_is(
    row: InstanceType, described: dict[str, Any]
) -> None:
    theirs, ours = _facts_of_ec2(described[row.name]), _facts_of_ours(row)

    different = {name for name in ours if ours[name] != theirs[name]}

    assert different == row.against_ec2
    for name in different:
        assert "EC2 errs: " in row.sources[name]


@ROWS
def test_a_row_names_its_source_and_date(row: InstanceType) -> None:
    assert row.source
    assert row.date.startswith("20")


@ROWS
def test_what_a_row_does_not_know_has_a_reason_and_nothing_else_has_one(row: InstanceType) -> None:
    blank = {fact.name for fact in fields(row) if getattr(row, fact.name) is None}
    none = {"accelerator", "maker", "accelerator_facts", "links", "gpudirect_rdma"} if row.accelerators == 0 else set()
    if row.accelerators == 1:
        none = {"links"}

    assert blank - none == set(row.unknown) - {"combined_interfaces"}
    assert all(len(reason) > 20 for reason in row.unknown.values())
    assert not set(row.sources) & set(row.unknown)


@ROWS
def test_accelerators_name_the_source_of_their_peaks_and_the_peaks_fall_with_precision(row: InstanceType) -> None:
    facts = row.accelerator_facts
    if facts is None:
        assert row.accelerators == 0
        return
    assert facts.source
    assert facts.date
    known = [
        facts.peak_tflops[dtype] for dtype in ("fp64", "fp32", "tf32", "bf16", "fp8") if dtype in facts.peak_tflops
    ]
    assert known == sorted(known)


def test_an_unknown_type_is_refused_with_the_nearest_and_how_to_add_one() -> None:
    with pytest.raises(NotFound) as caught:
        instance_type("p5n.48xlarge")

    assert str(caught.value) == (
        "catalog: instance type must be a known one, got p5n.48xlarge; did you mean p5en.48xlarge or p5.48xlarge? "
        "(docs/how-to/add-an-instance-type.md says how to add one)"
    )


def test_the_how_to_that_messages_name_exists() -> None:
    assert (Path(__file__).parents[2] / "docs" / "how-to" / "add-an-instance-type.md").is_file()


def test_the_rows_that_contradict_ec2_are_these() -> None:
    against = {name: sorted(row.against_ec2) for name, row in INSTANCE_TYPES.items() if row.against_ec2}

    assert against == {
        "trn2.3xlarge": ["accelerator_memory_mib"],
        "trn2.48xlarge": ["accelerator_memory_mib"],
        "trn2u.48xlarge": ["accelerator", "accelerator_memory_mib", "accelerators", "maker"],
    }
