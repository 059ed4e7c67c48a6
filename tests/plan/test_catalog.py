"""The catalog's rows against DescribeInstanceTypes as moto ships it (data only: nothing of moto is imported)."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from trainfabric_plan.catalog import INSTANCE_TYPES, InstanceType, instance_type, on_demand_price, spot_saving
from trainfabric_plan.catalog.prices import fsx_lustre_price, nat_gateway_price
from trainfabric_plan.errors import NotFound

ACCEPTED: Mapping[tuple[str, str], str] = {
    ("m7i.large", "network_gbps"): "EC2 says 'Up to 12.5 Gigabit'; ours is that bound",
    ("m7i.2xlarge", "network_gbps"): "EC2 says 'Up to 12.5 Gigabit'; ours is that bound",
    ("c7i.4xlarge", "network_gbps"): "EC2 says 'Up to 12.5 Gigabit'; ours is that bound",
}
"""Where a row and the snapshot may differ, and why."""

ROWS = pytest.mark.parametrize("row", INSTANCE_TYPES.values(), ids=lambda row: row.name)


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    spec = find_spec("moto")
    assert spec and spec.origin
    data = Path(spec.origin).parent / "ec2" / "resources" / "instance_types.json.gz"
    loaded: dict[str, Any] = json.loads(gzip.decompress(data.read_bytes()))
    return loaded


def _network_gbps(text: str) -> float | str:
    """`3200 Gigabit` and `4x 100 Gigabit` as a number; other texts as they stand."""
    amount, _, unit = text.rpartition(" ")
    count, times, each = amount.rpartition("x")
    try:
        return float(each) * (int(count) if times else 1) if unit == "Gigabit" else text
    except ValueError:
        return text


def _accelerators(described: Mapping[str, Any]) -> tuple[str | None, int, int]:
    known = described.get("GpuInfo", {}).get("Gpus") or described.get("NeuronInfo", {}).get("NeuronDevices") or []
    if not known:
        return None, 0, 0
    (only,) = known
    return only["Name"], only["Count"], only["MemoryInfo"]["SizeInMiB"]


def _facts_of_ec2(described: Mapping[str, Any]) -> dict[str, Any]:
    network = described["NetworkInfo"]
    name, count, memory = _accelerators(described)
    return {
        "vcpus": described["VCpuInfo"]["DefaultVCpus"],
        "memory_gib": described["MemoryInfo"]["SizeInMiB"] / 1024,
        "architecture": described["ProcessorInfo"]["SupportedArchitectures"],
        "accelerator": name,
        "accelerators": count,
        "accelerator_memory_mib": memory,
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
        "efa": row.efa_interface_count,
        "interfaces_per_card": [card.interfaces for card in row.known_cards],
        "network_gbps": row.network_gbps,
    }


@ROWS
def test_a_row_says_what_ec2_says(row: InstanceType, described: dict[str, Any]) -> None:
    theirs, ours = _facts_of_ec2(described[row.name]), _facts_of_ours(row)

    different = {name for name in ours if ours[name] != theirs[name]}

    assert different == {name for instance, name in ACCEPTED if instance == row.name}


@ROWS
def test_a_row_names_its_source_and_date(row: InstanceType) -> None:
    assert row.source
    assert row.date.startswith("20")


def test_an_unknown_type_is_refused_with_the_nearest_and_how_to_add_one() -> None:
    with pytest.raises(NotFound) as caught:
        instance_type("p5n.48xlarge")

    assert str(caught.value) == (
        "catalog: instance type must be a known one, got p5n.48xlarge; did you mean p5en.48xlarge or p5.48xlarge? "
        "(docs/how-to/add-an-instance-type.md says how to add one)"
    )


def test_the_how_to_that_messages_name_exists() -> None:
    assert (Path(__file__).parents[2] / "docs" / "how-to" / "add-an-instance-type.md").is_file()


def test_every_price_is_positive_and_names_its_source_and_date() -> None:
    prices = {name: price for name in INSTANCE_TYPES if (price := on_demand_price(name))}

    assert set(INSTANCE_TYPES) - set(prices) == {"p5e.48xlarge"}
    for price in prices.values():
        assert price.value > 0
        assert price.source.startswith("github.com/aws/karpenter-provider-aws")
        assert price.date in {"2026-02-09", "2026-07-20"}


def test_every_spot_saving_is_a_share_of_a_known_price_and_names_its_source_and_date() -> None:
    regions = ("us-east-1", "us-east-2", "us-west-2")
    savings = {
        (name, region): found for name in INSTANCE_TYPES for region in regions if (found := spot_saving(name, region))
    }

    assert {name for name, _ in savings} == {
        "p4d.24xlarge",
        "p4de.24xlarge",
        "p5.48xlarge",
        "p5en.48xlarge",
        "g6e.48xlarge",
        "trn1.32xlarge",
    }
    for (name, _), saving in savings.items():
        assert 0 < saving.value < 1
        assert saving.date == "2025-06-28"
        assert saving.source == "Spot Advisor data in github.com/alexei-led/spotinfo at 5eedf20"
        assert on_demand_price(name)


def test_prices_of_storage_and_network_name_their_source_and_an_unconfirmed_one_is_absent() -> None:
    lustre, nat = fsx_lustre_price(125), nat_gateway_price()

    assert lustre and (lustre.value, lustre.source, lustre.date) == (
        0.145,
        "c3x.dev aws_fsx_lustre_file_system",
        "undated, read 2026-11",
    )
    assert (nat.value, nat.date) == (0.045, "2026-02")
    assert fsx_lustre_price(250) is None
    assert on_demand_price("p5e.48xlarge") is None
    assert spot_saving("p6-b300.48xlarge", "us-east-1") is None
