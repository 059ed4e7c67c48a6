"""The user's own facts: how the file is read, and what they change."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from trainfabric_plan.catalog import INSTANCE_TYPES, efa_interfaces, find_instance_type, instance_type
from trainfabric_plan.catalog.overrides import Described, with_facts
from trainfabric_plan.errors import InvalidInput, NotFound

TOLD: dict[str, Any] = {
    "region": "us-east-2",
    "date": "2026-11-30",
    "source": "DescribeInstanceTypes",
    "accelerator": "B400",
    "accelerators": 8,
    "accelerator_memory_mib": 300000,
    "maker": "nvidia",
    "vcpus": 192,
    "memory_gib": 4096,
    "nvme_gb": 30400,
    "architecture": "x86_64",
    "network_gbps": 6400,
    "cards": [{"interfaces": 4, "efa": False}, {"interfaces": 1, "efa": True}],
    "usage_classes": ["capacity-block"],
    "cluster_placement": True,
}


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Writes the override file of the working directory."""
    monkeypatch.chdir(tmp_path)

    def written(types: Any, form: Any = 1) -> Path:
        path = tmp_path / "trainfabric.catalog.json"
        path.write_text(json.dumps({"format": form, "instance_types": types}))
        return path

    return written


def test_a_type_that_only_the_file_knows_has_a_row_and_what_ec2_does_not_tell_is_unknown(write: Any) -> None:
    write({"p7.48xlarge": TOLD})

    row = instance_type("p7.48xlarge")

    assert (row.accelerator, row.maker, row.usage_classes) == ("B400", "nvidia", frozenset({"capacity-block"}))
    assert (row.source, row.date) == ("DescribeInstanceTypes in us-east-2", "2026-11-30")
    assert [(one.card, one.device, str(one.type)) for one in efa_interfaces(row)] == [
        (0, 0, "interface"),
        (1, 0, "efa-only"),
    ]
    assert row.gpudirect_rdma is None
    assert row.unknown["gpudirect_rdma"] == "EC2 does not tell it, and the catalog has no row of this type"


def test_what_the_file_says_goes_before_the_row_and_the_rest_of_the_row_stays(write: Any) -> None:
    ours = INSTANCE_TYPES["p5.48xlarge"]
    write({"p5.48xlarge": {**TOLD, "nvme_gb": 7}})

    row = instance_type("p5.48xlarge")

    assert (row.nvme_gb, len(row.known_cards)) == (7, 2)
    assert (row.ip_gbps, row.links, row.gpudirect_rdma) == (ours.ip_gbps, ours.links, ours.gpudirect_rdma)
    assert row.ip_cards == (0,), "our cards for bandwidth are those of another number of cards"
    assert instance_type("p4d.24xlarge") is INSTANCE_TYPES["p4d.24xlarge"]


def test_what_a_row_knows_better_than_ec2_stays() -> None:
    told = Described(**{**TOLD, "accelerator_memory_mib": 524288})

    row = with_facts(INSTANCE_TYPES["trn2.48xlarge"], "trn2.48xlarge", told)

    assert row.accelerator_memory_mib == 98304
    assert "EC2 errs: " in row.sources["accelerator_memory_mib"]


def test_a_fact_that_the_file_fills_in_is_no_longer_unknown() -> None:
    row = with_facts(INSTANCE_TYPES["p6e-gb200.36xlarge"], "p6e-gb200.36xlarge", Described(**TOLD))

    assert row.nvme_gb == 30400
    assert "nvme_gb" not in row.unknown
    assert "cards" not in row.sources


def test_the_variable_names_another_file(write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write({"p7.48xlarge": TOLD}).rename(tmp_path / "elsewhere.json")
    assert find_instance_type("p7.48xlarge") is None

    monkeypatch.setenv("TRAINFABRIC_CATALOG", str(tmp_path / "elsewhere.json"))

    assert find_instance_type("p7.48xlarge")


def test_a_file_that_changes_is_read_again(write: Any) -> None:
    write({"p7.48xlarge": TOLD})
    assert instance_type("p7.48xlarge").vcpus == 192

    path = write({"p7.48xlarge": {**TOLD, "vcpus": 96}})
    os.utime(path, ns=(1, 1))

    assert instance_type("p7.48xlarge").vcpus == 96


def test_without_a_file_an_unknown_type_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    with pytest.raises(NotFound):
        instance_type("p7.48xlarge")


REMEDY = "write it with `trainfabric catalog refresh --region R`, or remove it"


def test_every_mistake_of_the_file_is_reported(write: Any) -> None:
    path = write({"p7.48xlarge": {**TOLD, "vcpus": "many", "cards": [], "speed": 1}}, form=2)

    with pytest.raises(InvalidInput) as caught:
        instance_type("p5.48xlarge")

    rule = "must be as this version writes it"
    assert str(caught.value).splitlines() == [
        f"{path}: format {rule} (input should be 1), got 2; {REMEDY}",
        f"{path}: instance_types.p7.48xlarge.vcpus {rule} (input should be a valid integer), got many; {REMEDY}",
        f"{path}: instance_types.p7.48xlarge.cards {rule} (list should have at least 1 item after validation, not 0), "
        f"got []; {REMEDY}",
        f"{path}: instance_types.p7.48xlarge.speed {rule} (extra inputs are not permitted), got 1; {REMEDY}",
    ]


def test_a_file_that_is_no_json_is_refused(write: Any) -> None:
    path = write({})
    path.write_text("{")

    with pytest.raises(InvalidInput) as caught:
        instance_type("p5.48xlarge")

    assert str(caught.value) == (
        f"{path}: the file must be JSON, got Expecting property name enclosed in double quotes: line 1 column 2 "
        f"(char 1); {REMEDY}"
    )
