"""No rule finds anything in the templates of our own environments."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trainfabric_plan.lint import Assembly, Template, lint

ROOT = Path(__file__).parents[3]
SNAPSHOTS = ROOT / "tests" / "snapshots" / "__snapshots__" / "test_templates"


@pytest.mark.parametrize("environment", sorted(path.stem for path in (ROOT / "environments").glob("*.yaml")))
def test_our_own_environments_are_clean(environment: str) -> None:
    files = [path for path in SNAPSHOTS.iterdir() if f"[{environment}]" in path.name]
    templates = [Template(name=path.stem, body=json.loads(path.read_text())) for path in files]

    assert templates
    assert [finding.message for finding in lint(Assembly(templates))] == []
