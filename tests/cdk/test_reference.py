from __future__ import annotations

from pathlib import Path

import trainfabric_cdk
from trainfabric_cdk.reference import entries, reference_text, sections

PAGE = Path(__file__).parents[2] / "docs/constructs.md"


def test_the_committed_page_is_the_generated_one() -> None:
    assert PAGE.read_text() == reference_text()


def test_the_page_tells_of_every_public_name() -> None:
    assert [line[3:] for line in reference_text().splitlines() if line.startswith("## ")] == trainfabric_cdk.__all__


def test_every_property_is_told() -> None:
    rows = [line for line in reference_text().splitlines() if line.startswith("| `")]

    assert [row for row in rows if row.endswith("|  |")] == []


def test_a_docstring_is_read_by_its_sections() -> None:
    read = sections(
        """What it is.

        Args:
            size: How large,
                in GiB.
            kind: Of what.

        Raises:
            ValueError: If too large.
        """
    )

    assert read[""].strip() == "What it is."
    assert entries(read["Args"]) == {"size": "How large, in GiB.", "kind": "Of what."}
    assert entries(read["Raises"]) == {"ValueError": "If too large."}
