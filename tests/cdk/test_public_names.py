from __future__ import annotations

import subprocess
import sys

import pytest

import trainfabric_cdk
from trainfabric_cdk import testing

NAMES = [
    "Capacity",
    "CheckpointBucket",
    "Coordinator",
    "DataBucket",
    "EfaClusterPlacementGroup",
    "EfaSecurityGroup",
    "ExistingLustre",
    "LustreAlarms",
    "LustreLink",
    "LustreLinkedToS3",
    "LustreMount",
    "LustreStorage",
    "ParallelClusterStack",
    "PropertyError",
    "SharedHome",
    "SharedHomeMount",
    "SpotTrainingFleet",
    "TrainingAsset",
    "TrainingDashboard",
    "TrainingKey",
    "TrainingVpc",
    "warn_of_replacements",
]


def test_the_public_names_of_the_constructs_are_these() -> None:
    assert trainfabric_cdk.__all__ == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_can_be_imported(name: str) -> None:
    assert getattr(trainfabric_cdk, name).__name__ == name


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError) as unknown:
        trainfabric_cdk.SpotFleet  # noqa: B018

    assert str(unknown.value) == "module 'trainfabric_cdk' has no attribute 'SpotFleet'"


def test_importing_the_package_alone_does_not_start_the_cdk() -> None:
    code = "import sys, trainfabric_cdk; print({'aws_cdk', 'jsii', 'constructs'} & set(sys.modules))"

    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=True)

    assert done.stdout.strip() == "set()"


def test_the_helper_for_tests_of_others_is_public() -> None:
    assert callable(testing.normalised_template)
