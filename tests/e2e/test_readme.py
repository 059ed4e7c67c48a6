"""The README's snippets are run as they stand."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from trainfabric_plan.environment.file import read_environment

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()


def _snippets(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def test_the_python_snippet_synthesises(tmp_path: Path) -> None:
    (snippet,) = _snippets("python")
    app = tmp_path / "app.py"
    app.write_text(snippet)

    done = subprocess.run(
        [sys.executable, app], cwd=tmp_path, env=_variables(tmp_path), capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "cdk.out/Training.template.json").exists()


def _variables(directory: Path) -> dict[str, str]:
    import os

    return {**os.environ, "CDK_OUTDIR": str(directory / "cdk.out"), "CDK_VALIDATION": "false"}


def test_the_python_snippet_has_about_ten_lines() -> None:
    (snippet,) = _snippets("python")

    assert len([line for line in snippet.splitlines() if line.strip()]) <= 16


def test_the_environment_snippet_is_valid(tmp_path: Path) -> None:
    (snippet,) = _snippets("yaml")
    file = tmp_path / "research.yaml"
    file.write_text(snippet)

    assert read_environment(file).name == "research"


def test_every_make_target_that_the_readme_names_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))

    assert set(re.findall(r"make ([a-z-]+)", README)) <= targets


def test_every_file_that_the_readme_links_exists() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README)

    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
