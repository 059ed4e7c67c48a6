"""The README's snippets are run as they stand."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from typer.core import TyperGroup
from typer.main import get_command

from trainfabric_cli.main import app
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


def test_what_the_linter_says_in_the_readme_is_what_it_says(tmp_path: Path) -> None:
    case = (ROOT / "tests/plan/lint/cases/efa-self-egress.yaml").read_text().partition("---")[0]
    (tmp_path / "cluster.yaml").write_text(case)
    lint = [
        Path(sys.executable).parent / "trainfabric",
        "lint",
        "--json",
        "--select",
        "efa-self-egress",
        "cluster.yaml",
    ]

    done = subprocess.run([*lint, "cluster.yaml"], cwd=tmp_path, capture_output=True, text=True, check=False)

    (finding,) = json.loads(done.stdout)
    (snippet,) = _snippets("text")
    assert snippet.split() == finding["message"].split()


def test_every_command_of_the_readme_exists() -> None:
    named = [line.split()[1:] for text in _snippets("sh") for line in text.splitlines() if line[:12] == "trainfabric "]

    for words in named:
        command: Any = get_command(app)
        while isinstance(command, TyperGroup) and words[0] in command.commands:
            command, words = command.commands[words[0]], words[1:]
        options = {option for one in command.params for option in one.opts}
        assert {word for word in words if word.startswith("--")} <= options
        assert not isinstance(command, TyperGroup) or command.name in ("plan", "catalog")


def test_every_make_target_that_the_readme_names_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))

    assert set(re.findall(r"make ([a-z-]+)", README)) <= targets


def test_every_file_that_the_readme_links_exists() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README)

    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
