from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

# Before aws_cdk is imported. The validator costs tens of seconds a stack, cfn-lint checks the same here.
os.environ["CDK_VALIDATION"] = "false"
os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "20")

EXAMPLES = Path(__file__).parents[2] / "examples"


@dataclass(frozen=True)
class Example:
    """What an example has synthesised, and what cdk-nag found in it and nobody has explained."""

    directory: Path
    findings: list[str]

    @property
    def files(self) -> list[Path]:
        """Its templates."""
        return sorted(self.directory.glob("*.template.json"))

    @property
    def templates(self) -> dict[str, dict[str, Any]]:
        """Its templates by stack."""
        return {file.name.removesuffix(".template.json"): json.loads(file.read_text()) for file in self.files}

    def types(self) -> dict[str, set[str]]:
        """Types of the resources in each stack."""
        return {
            name: {one["Type"] for one in template["Resources"].values()} for name, template in self.templates.items()
        }

    def of_type(self, kind: str) -> list[dict[str, Any]]:
        """Properties of all resources of a type."""
        every = (one for template in self.templates.values() for one in template["Resources"].values())
        return [one["Properties"] for one in every if one["Type"] == kind]


@pytest.fixture(scope="session")
def example(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Example]:
    """An example by name, run once: without credentials, from another directory."""

    @cache
    def run(name: str) -> Example:
        directory = tmp_path_factory.mktemp(name)
        variables = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
        done = subprocess.run(
            [sys.executable, Path(__file__).parent / "run_example.py", EXAMPLES / name / "app.py"],
            cwd=directory,
            env={**variables, "CDK_OUTDIR": str(directory / "out")},
            text=True,
            capture_output=True,
            check=False,
        )
        assert (done.returncode, warnings_in(done.stderr)) == (0, [])
        report = directory / "out" / "validation-report.json"
        plugins = json.loads(report.read_text())["pluginReports"] if report.exists() else []
        findings = [violation for plugin in plugins for violation in plugin.get("violations", [])]
        return Example(directory / "out", [f"{one['ruleName']} {_places(one)}" for one in findings])

    return run


def warnings_in(stderr: str) -> list[str]:
    """What an example is told besides the findings, which its report has as well."""
    return [line for line in stderr.splitlines() if line.startswith(("[Warning", "[Error"))]


def _places(violation: dict[str, Any]) -> str:
    return ", ".join(one.get("constructPath") or "?" for one in violation["violatingConstructs"])
