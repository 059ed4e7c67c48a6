"""What CloudFormation keeps of an environment's storage when it is deleted, and when it is replaced."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Template

from trainfabric_cdk import TrainingKey
from trainfabric_plan.environment import Environment, validate_environment
from trainfabric_stacks import TrainingEnvironment, training_app

KEY = "arn:aws:kms:us-east-1:123456789012:key/0f8e7d6c-0000-4000-8000-000000000000"
HOMES = {"efs": "AWS::EFS::FileSystem", "openzfs": "AWS::FSx::FileSystem"}


def described(**storage: Any) -> Environment:
    return validate_environment(
        {
            "name": "demo",
            "region": "us-east-1",
            "availability_zone": "us-east-1a",
            "fleet": {"instance_type": "p5.48xlarge", "nodes": 4},
            "training": {"recipe": "gpt_1b3_4x_p5"},
            "storage": storage,
        },
        "demo.yaml",
    )


def deployed(second_key: str | None = None, **storage: Any) -> TrainingEnvironment:
    app = training_app()
    if second_key:
        app.node.set_context("trainfabric:deleteContents", second_key)
    return TrainingEnvironment(app, described(**storage))


def resources(stack: cdk.Stack | None, kind: str) -> Mapping[str, Mapping[str, Any]]:
    assert stack is not None
    return Template.from_stack(stack).find_resources(kind)


def policies(environment: TrainingEnvironment, *kinds: str) -> set[tuple[str | None, str | None]]:
    """What CloudFormation does with the resources of these types when they are deleted, and when replaced."""
    found = [one for kind in kinds for one in resources(environment.storage, kind).values()]
    assert found, kinds
    return {(one.get("DeletionPolicy"), one.get("UpdateReplacePolicy")) for one in found}


FILE_SYSTEMS = ("AWS::FSx::FileSystem", "AWS::FSx::DataRepositoryAssociation")


@pytest.mark.parametrize(
    ("retain", "second_key", "buckets", "files"),
    [
        (True, None, "Retain", "Retain"),
        (True, "demo", "Retain", "Retain"),
        (False, None, "Delete", "Retain"),
        (False, "another", "Delete", "Retain"),
        (False, "demo", "Delete", "Delete"),
    ],
)
@pytest.mark.parametrize("kind", HOMES)
def test_files_go_by_two_keys_alone_when_they_are_deleted_and_when_they_are_replaced(
    kind: str, retain: bool, second_key: str | None, buckets: str, files: str
) -> None:
    environment = deployed(second_key, retain=retain, shared_home=kind)

    assert policies(environment, "AWS::S3::Bucket") == {(buckets, buckets)}
    assert policies(environment, *FILE_SYSTEMS, HOMES[kind]) == {(files, files)}


@pytest.mark.parametrize(("retain", "second_key"), [(True, None), (False, "demo")])
def test_the_customer_key_is_nothing_of_the_stacks_that_a_delete_could_take(
    retain: bool, second_key: str | None
) -> None:
    environment = deployed(second_key, retain=retain, shared_home="efs", kms_key_arn=KEY)

    assert resources(environment.storage, "AWS::KMS::Key") == {}


@pytest.mark.parametrize(("retain", "policy"), [(True, "Retain"), (False, "Delete")])
def test_a_key_of_an_app_is_kept_with_what_it_encrypts_unless_told_otherwise(retain: bool, policy: str) -> None:
    stack = cdk.Stack(training_app(), "Theirs")

    TrainingKey(stack, "Key", retain=retain)

    (key,) = resources(stack, "AWS::KMS::Key").values()
    assert (key["DeletionPolicy"], key["UpdateReplacePolicy"]) == (policy, policy)
