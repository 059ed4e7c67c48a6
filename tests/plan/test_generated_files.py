"""What is generated from the environment's types lies in the tree as the types are now."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path

import pytest

from trainfabric_plan.catalog.reference import reference_text as catalog_text
from trainfabric_plan.environment.reference import reference_text
from trainfabric_plan.environment.schema import schema_text
from trainfabric_plan.lint import reference as lint_reference

ROOT = Path(__file__).parents[2]


def test_the_committed_schema_is_the_generated_one() -> None:
    assert (ROOT / "environments" / "environment.schema.json").read_text(encoding="utf-8") == schema_text()


def test_the_committed_reference_is_the_generated_one() -> None:
    assert (ROOT / "docs" / "environment-file.md").read_text(encoding="utf-8") == reference_text()


def test_the_committed_page_about_the_lint_rules_is_the_generated_one() -> None:
    assert (ROOT / "docs" / "lint-rules.md").read_text(encoding="utf-8") == lint_reference.reference_text()


def test_the_committed_page_of_instance_types_is_the_generated_one() -> None:
    assert (ROOT / "docs" / "instance-types.md").read_text(encoding="utf-8") == catalog_text()


@pytest.mark.parametrize("environment", sorted((ROOT / "environments").glob("*.yaml")), ids=lambda path: path.name)
def test_every_environment_of_this_repository_names_the_schema_for_editors(environment: Path) -> None:
    first_line = environment.read_text(encoding="utf-8").splitlines()[0]

    assert first_line == "# yaml-language-server: $schema=environment.schema.json"


def test_the_schema_refuses_unknown_keys_and_describes_every_key() -> None:
    schema = json.loads(schema_text())

    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    for section in (schema, *schema["$defs"].values()):
        assert section["additionalProperties"] is False
        for key, value in section["properties"].items():
            assert value.get("description") or "$ref" in value, key


def test_the_reference_has_the_default_and_the_meaning_of_a_key() -> None:
    assert '| `compression` | `lz4` or `none` | `"lz4"` | Compression of the data on disk. |' in reference_text()


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("trainfabric_plan.environment.schema", schema_text()),
        ("trainfabric_plan.environment.reference", reference_text()),
        ("trainfabric_plan.lint.reference", lint_reference.reference_text()),
        ("trainfabric_plan.catalog.reference", catalog_text()),
    ],
)
def test_the_generators_write_the_file_they_are_given(
    module: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "written"
    monkeypatch.setattr(sys, "argv", [module, str(target)])
    monkeypatch.delitem(sys.modules, module)

    runpy.run_module(module, run_name="__main__")

    assert target.read_text(encoding="utf-8") == text
