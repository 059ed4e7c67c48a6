"""One snapshot of every stack of every environment: for surprises. `make snapshots` accepts what has changed."""

from __future__ import annotations

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.json import JSONSnapshotExtension

from trainfabric_cdk.testing import normalised_template
from trainfabric_plan.environment.file import read_environment
from trainfabric_stacks import TrainingEnvironment, training_app

ENVIRONMENTS = Path(__file__).parents[2] / "environments"


@pytest.mark.parametrize("name", sorted(file.stem for file in ENVIRONMENTS.glob("*.yaml")))
def test_templates_are_unchanged(name: str, snapshot: SnapshotAssertion) -> None:
    environment = TrainingEnvironment(training_app(), read_environment(ENVIRONMENTS / f"{name}.yaml"))

    for stack in environment.stacks:
        assert normalised_template(stack) == snapshot(name=stack.stack_name, extension_class=JSONSnapshotExtension)
