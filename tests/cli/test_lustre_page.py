"""The page about choosing a Lustre file system says what the code says, and its example is run."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest
import yaml

from benchmarks import lustre_sizes
from trainfabric_plan.environment import validate_environment
from trainfabric_plan.lustre import LustreWish, lustre_size
from trainfabric_plan.lustre.facts import EFA_STEP_GIB, METADATA_SMALL_IOPS, QUOTA_GIB, THROUGHPUTS_MBPS_PER_TIB
from trainfabric_plan.planning.storage_prices import SCRATCH_PER_GB_MONTH, lustre_price

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "choose-a-lustre-file-system.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)


def test_the_example_prints_what_the_page_says() -> None:
    (example,), (said,) = blocks("python"), blocks("text")
    printed = io.StringIO()

    with contextlib.redirect_stdout(printed):
        exec(compile(example, "the example", "exec"), {})

    assert printed.getvalue() == said


def test_the_environment_of_the_page_gets_the_file_system_of_the_example() -> None:
    (given,) = blocks("yaml")
    usual = {
        "name": "demo",
        "region": "us-east-1",
        "availability_zone": "us-east-1a",
        "fleet": {"instance_type": "p5.48xlarge", "nodes": 8},
        "training": {"recipe": "gpt_1b3_4x_p5"},
    }

    environment = validate_environment({**usual, **yaml.safe_load(given)}, "demo.yaml")

    assert f"least capacity: {lustre_size(environment.storage.lustre.wish).in_words}," in PAGE


def test_the_numbers_of_the_table_are_those_of_the_code() -> None:
    tiers = [str(tier) for tier in THROUGHPUTS_MBPS_PER_TIB]
    steps = [str(EFA_STEP_GIB[tier]) for tier in THROUGHPUTS_MBPS_PER_TIB]
    ssd = [lustre_price(lustre_size(LustreWish(throughput_mbps_per_tib=tier))) for tier in THROUGHPUTS_MBPS_PER_TIB]

    assert f"| {', '.join(tiers[:-1])} or {tiers[-1]} MB/s per TiB |" in PAGE
    assert f"| with {', '.join(steps[:-1])} or {steps[-1]} GiB, by throughput," in PAGE
    assert f"{', '.join(map(str, METADATA_SMALL_IOPS))}, or multiples of 12000" in PAGE
    assert f"{QUOTA_GIB:,} GiB" in PAGE
    assert ssd[0] is not None
    assert f"| ${ssd[0].value} at 125 MB/s per TiB; the others unconfirmed |" in PAGE
    assert ssd[1:] == [None] * 3
    assert f"${SCRATCH_PER_GB_MONTH.value}, approximate" in PAGE


@pytest.mark.parametrize("link", re.findall(r"\]\((\.\./[^)]+)\)", PAGE))
def test_every_link_of_the_page_leads_somewhere(link: str) -> None:
    assert (ROOT / "docs" / "how-to" / link).is_file()


def test_the_picture_draws_the_sizes_of_the_code() -> None:
    drawn = lustre_sizes.capacities()

    at = lustre_sizes.REQUIRED_MBPS.index(10_000)
    assert {name: gib[at] for name, gib in drawn.items()} == {
        "PERSISTENT_2, 125 MB/s per TiB": 84_000,
        "PERSISTENT_2, 250 MB/s per TiB": 43_200,
        "PERSISTENT_2, 500 MB/s per TiB": 21_600,
        "PERSISTENT_2, 1000 MB/s per TiB": 12_000,
        "SCRATCH_2, 200 MB/s per TiB": 52_800,
    }


def test_the_committed_picture_is_the_generated_one(tmp_path: Path) -> None:
    lustre_sizes.draw(tmp_path / "drawn.svg")

    assert (tmp_path / "drawn.svg").read_text() == (ROOT / "docs" / "pictures" / "lustre_sizes.svg").read_text()
