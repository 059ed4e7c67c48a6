"""`trainfabric plan draw`: a picture of an environment."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from typer.testing import CliRunner

from trainfabric_cli.main import app

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENTS = sorted((ROOT / "environments").glob("*.yaml"))


@pytest.mark.parametrize("environment", ENVIRONMENTS, ids=lambda path: path.stem)
def test_every_environment_is_drawn_as_valid_svg(environment: Path, tmp_path: Path) -> None:
    picture = tmp_path / "picture.svg"

    result = CliRunner().invoke(app, ["plan", "draw", str(environment), "--output", str(picture)])

    assert result.exit_code == 0, result.output
    assert ElementTree.parse(picture).getroot().tag.endswith("svg")


def test_the_picture_in_the_readme_is_current(tmp_path: Path) -> None:
    picture = tmp_path / "picture.svg"

    CliRunner().invoke(app, ["plan", "draw", str(ROOT / "environments/demo.yaml"), "--output", str(picture)])

    assert picture.read_text() == (ROOT / "docs/pictures/environment.svg").read_text()


@pytest.mark.parametrize(("spares", "words"), [(0, "4 × p5.48xlarge<"), (1, "and 1 warm spare<"), (2, "warm spares<")])
def test_the_picture_says_how_many_spares_stand_by(spares: int, words: str, tmp_path: Path) -> None:
    text = (
        (ROOT / "environments/p5_spot.yaml").read_text().replace("workers: spot", f"workers: spot\n  spares: {spares}")
    )
    (tmp_path / "p5.yaml").write_text(text)
    picture = tmp_path / "picture.svg"

    result = CliRunner().invoke(app, ["plan", "draw", str(tmp_path / "p5.yaml"), "--output", str(picture)])

    assert result.exit_code == 0, result.output
    assert words in picture.read_text()


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    picture = tmp_path / "nowhere" / "picture.svg"

    result = CliRunner().invoke(app, ["plan", "draw", str(ROOT / "environments/demo.yaml"), "--output", str(picture)])

    assert result.exit_code == 2
    assert f"{picture}: output must be a file that can be written, got No such file or directory" in result.output
