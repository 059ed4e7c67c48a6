"""The table of instance types is read strictly: what is not as it should be is our error, and told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trainfabric_plan.catalog import INSTANCE_TYPES, table
from trainfabric_plan.catalog.lines import read_lines


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[dict[str, str]]]:
    """The tables as they are, to be changed."""
    read = {file: read_lines(file) for file in ("instances.csv", "remarks.csv")}
    monkeypatch.setattr(table, "read_lines", lambda file: read[file])
    return read


def test_a_fact_that_is_unknown_needs_a_reason(tables: dict[str, Any]) -> None:
    tables["instances.csv"][0]["nvme_gb"] = "?"

    with pytest.raises(ValueError, match=r"remarks\.csv: nvme_gb of p3dn\.24xlarge must have a reason, got none"):
        table.read_instance_types()


def test_network_cards_may_be_unknown_and_ask_for_their_reason(tables: dict[str, Any]) -> None:
    tables["instances.csv"][0]["cards"] = "?"
    tables["remarks.csv"].append({"types": "p3dn.*", "attribute": "cards", "kind": "unknown", "text": "nobody says"})

    row = table.read_instance_types()["p3dn.24xlarge"]

    assert row.cards is None
    assert row.unknown["cards"] == "nobody says"


def test_a_line_with_a_cell_too_few_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: "a,b\n1\n")

    with pytest.raises(ValueError, match=r"prices\.csv: a line must have 2 cells, got \['1'\]"):
        read_lines("prices.csv")


def test_every_remark_is_about_a_row_and_names_a_kind_that_is_read() -> None:
    attributes = {"combined_interfaces", *(name for row in INSTANCE_TYPES.values() for name in vars(row))}

    for line in read_lines("remarks.csv"):
        remark = table.Remark(types=tuple(line["types"].split()), **{k: v for k, v in line.items() if k != "types"})
        used = [row for row in INSTANCE_TYPES.values() if remark.is_about(row.name)]
        said = [row.unknown if remark.kind == "unknown" else row.sources for row in used]
        assert remark.kind in ("source", "against", "unknown")
        assert remark.attribute in attributes
        assert any(texts.get(remark.attribute) == remark.text for texts in said), line


def test_prices_are_of_types_that_the_catalog_has() -> None:
    for file in ("prices.csv", "spot_savings.csv"):
        assert {line["instance_type"] for line in read_lines(file)} <= set(INSTANCE_TYPES)
