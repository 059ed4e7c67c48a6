"""What would break the house without anybody noticing where."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE_ROOTS = ("constructs", "stacks", "training")
PACKAGES = sorted(path.parent for root in SOURCE_ROOTS for path in (ROOT / root).glob("*/__init__.py"))


@pytest.mark.parametrize("root", SOURCE_ROOTS)
def test_a_source_root_is_no_package_or_it_would_shadow_the_package_of_that_name(root: str) -> None:
    assert not (ROOT / root / "__init__.py").exists()


@pytest.mark.parametrize("folder", ["tests/constructs", "tests/__init__.py"])
def test_no_test_folder_shadows_the_package_constructs(folder: str) -> None:
    assert not (ROOT / folder).exists()


def test_the_package_constructs_is_the_installed_one_from_the_root_of_the_repository() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import constructs; print(constructs.__file__)"],
        cwd=ROOT,
        text=True,
        capture_output=True,
        check=True,
    )

    assert "site-packages" in Path(done.stdout.strip()).parts


def test_the_app_makes_no_decisions() -> None:
    assert len((ROOT / "app.py").read_text().splitlines()) <= 40


@pytest.mark.parametrize("package", [path.name for path in PACKAGES])
def test_every_package_is_typed(package: str) -> None:
    (directory,) = (path for path in PACKAGES if path.name == package)

    assert (directory / "py.typed").exists()


def test_no_file_of_the_infrastructure_is_too_long_to_be_read() -> None:
    lengths = {
        str(file.relative_to(ROOT)): len(file.read_text().splitlines())
        for root in ("constructs", "stacks")
        for file in (ROOT / root).rglob("*.py")
    }

    assert {name: lines for name, lines in lengths.items() if lines > 400} == {}


def test_the_infrastructure_reads_no_environment_variables() -> None:
    readers = [
        str(file.relative_to(ROOT))
        for root in ("constructs", "stacks")
        for file in (ROOT / root).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv")
    ]

    assert readers == []
