"""What an update of a deployed environment would lose: templates as they are against those of the last release.

`templates/` holds the templates of the last release, normalised; a release replaces them. A stateful resource whose
logical id or type has changed would be made anew, with its data left behind or deleted: that needs a line in the
changelog that names the old logical id.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from cfnlint.schema import PROVIDER_SCHEMA_MANAGER

ROOT = Path(__file__).parents[2]
RELEASED = sorted((Path(__file__).parent / "templates").glob("*.json"))
SNAPSHOTS = ROOT / "tests/snapshots/__snapshots__/test_templates"
STATEFUL = (
    "AWS::EFS::FileSystem",
    "AWS::FSx::DataRepositoryAssociation",
    "AWS::FSx::FileSystem",
    "AWS::FSx::Volume",
    "AWS::KMS::Key",
    "AWS::S3::Bucket",
)

Template = Mapping[str, Any]


def current(stack: str) -> Template:
    """The template of a stack as it is now; tests/snapshots holds these files to the code."""
    (file,) = (path for path in SNAPSHOTS.iterdir() if path.name.endswith(f"[{stack}].json"))
    loaded: Template = json.loads(file.read_text())
    return loaded


def unreleased() -> str:
    """What the changelog says about the next release."""
    text = (ROOT / "CHANGELOG.md").read_text()
    return re.split(r"^## \[", text, flags=re.MULTILINE)[1]


def losses(before: Template, after: Template) -> Iterator[str]:
    """Stateful resources of a template that an update to another would make anew, each in words."""
    for logical_id, resource in before["Resources"].items():
        kind = resource["Type"]
        if kind not in STATEFUL:
            continue
        successor = after["Resources"].get(logical_id)
        if successor is None or successor["Type"] != kind:
            yield f"{logical_id} ({kind}) is gone"
            continue
        for name in create_only(kind):
            was, now = resource["Properties"].get(name), successor["Properties"].get(name)
            if was != now:
                yield f"{logical_id} ({kind}) is made anew: {name} was {json.dumps(was)}, is {json.dumps(now)}"


def create_only(kind: str) -> list[str]:
    """Properties that cannot change without a new resource, by CloudFormation's registry."""
    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", kind).schema
    return [path.split("/")[2] for path in schema.get("createOnlyProperties", ())]


@pytest.mark.parametrize("released", RELEASED, ids=lambda path: path.stem)
def test_an_update_from_the_last_release_makes_nothing_anew_that_holds_data(released: Path) -> None:
    lost = list(losses(json.loads(released.read_text()), current(released.stem)))

    assert [loss for loss in lost if loss.split()[0] not in unreleased()] == []


@pytest.mark.parametrize("released", RELEASED, ids=lambda path: path.stem)
def test_outputs_of_the_last_release_are_still_there(released: Path) -> None:
    template = json.loads(released.read_text())

    outputs = template.get("Outputs", {})
    exports = {name for name, output in outputs.items() if "Export" in output}
    gone = outputs.keys() - exports - current(released.stem).get("Outputs", {}).keys()

    assert {name for name in gone if name not in unreleased()} == set()


def test_a_bucket_that_is_renamed_or_replaced_is_found() -> None:
    bucket = {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": "a"}}
    before = {"Resources": {"Data": bucket, "Old": bucket}}
    after = {"Resources": {"Data": {**bucket, "Properties": {"BucketName": "b"}}, "New": bucket}}

    assert list(losses(before, after)) == [
        'Data (AWS::S3::Bucket) is made anew: BucketName was "a", is "b"',
        "Old (AWS::S3::Bucket) is gone",
    ]


def test_every_stack_of_the_last_release_is_compared() -> None:
    assert len(RELEASED) == 12
