"""What an environment says of keys, of the shared home and of keeping data reaches the templates of its stacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Template

from trainfabric_plan.environment import validate_environment
from trainfabric_stacks import TrainingEnvironment, training_app

KEY = "arn:aws:kms:us-east-1:123456789012:key/0f8e7d6c-0000-4000-8000-000000000000"
FILE_SYSTEMS = {"efs": "AWS::EFS::FileSystem", "openzfs": "AWS::FSx::FileSystem"}

Deploy = Callable[..., TrainingEnvironment]
Resources = list[dict[str, Any]]


@pytest.fixture
def deploy() -> Deploy:
    """Stacks of an environment with the storage of a test, under a context key that may delete data."""

    def make(*, may_delete: bool = False, **storage: Any) -> TrainingEnvironment:
        app = training_app()
        if may_delete:
            app.node.set_context("trainfabric:deleteContents", "demo")
        description = {
            "name": "demo",
            "region": "us-east-1",
            "availability_zone": "us-east-1a",
            "storage": storage,
            "fleet": {"instance_type": "p5.48xlarge", "nodes": 4},
            "training": {"recipe": "gpt_1b3_4x_p5"},
        }
        return TrainingEnvironment(app, validate_environment(description, "demo.yaml"))

    return make


def resources(stack: cdk.Stack | None, kind: str) -> Resources:
    assert stack is not None
    return [dict(one) for one in Template.from_stack(stack).find_resources(kind).values()]


def home_of(environment: TrainingEnvironment, kind: str) -> dict[str, Any]:
    """The shared home, told from Lustre by its type."""
    (home,) = (
        one
        for one in resources(environment.storage, FILE_SYSTEMS[kind])
        if one["Properties"].get("FileSystemType") != "LUSTRE"
    )
    return home


def test_the_customer_key_encrypts_every_volume_of_the_nodes(deploy: Deploy) -> None:
    environment = deploy(kms_key_arn=KEY)

    volumes = [
        device["Ebs"]
        for template in resources(environment.fleet, "AWS::EC2::LaunchTemplate")
        for device in template["Properties"]["LaunchTemplateData"]["BlockDeviceMappings"]
    ]
    assert [(one["Encrypted"], one["KmsKeyId"]) for one in volumes] == [(True, KEY)] * 2


def test_the_customer_key_encrypts_buckets_and_lustre(deploy: Deploy) -> None:
    environment = deploy(kms_key_arn=KEY)

    (lustre,) = resources(environment.storage, "AWS::FSx::FileSystem")
    assert lustre["Properties"]["KmsKeyId"] == KEY
    buckets = resources(environment.storage, "AWS::S3::Bucket")
    rules = [one["Properties"]["BucketEncryption"]["ServerSideEncryptionConfiguration"] for one in buckets]
    assert [rule["ServerSideEncryptionByDefault"]["KMSMasterKeyID"] for (rule,) in rules] == [KEY] * 2


@pytest.mark.parametrize("kind", FILE_SYSTEMS)
def test_the_customer_key_encrypts_the_shared_home(deploy: Deploy, kind: str) -> None:
    environment = deploy(kms_key_arn=KEY, shared_home=kind)

    assert home_of(environment, kind)["Properties"]["KmsKeyId"] == KEY


@pytest.mark.parametrize("kind", FILE_SYSTEMS)
def test_nodes_are_told_to_mount_the_shared_home(deploy: Deploy, kind: str) -> None:
    environment = deploy(shared_home=kind)

    templates = resources(environment.fleet, "AWS::EC2::LaunchTemplate")
    scripts = [str(one["Properties"]["LaunchTemplateData"]["UserData"]) for one in templates]
    assert ["TRAINFABRIC_HOME_SERVER" in script and "SharedHome" in script for script in scripts] == [True, True]


@pytest.mark.parametrize("kind", FILE_SYSTEMS)
@pytest.mark.parametrize(
    ("retain", "may_delete", "policy"),
    [(True, False, "Retain"), (True, True, "Retain"), (False, False, "Retain"), (False, True, "Delete")],
)
def test_file_systems_go_only_by_two_keys(
    deploy: Deploy, kind: str, retain: bool, may_delete: bool, policy: str
) -> None:
    environment = deploy(may_delete=may_delete, retain=retain, shared_home=kind)

    (lustre,) = (
        one
        for one in resources(environment.storage, "AWS::FSx::FileSystem")
        if one["Properties"]["FileSystemType"] == "LUSTRE"
    )
    for one in (lustre, home_of(environment, kind)):
        assert (one["DeletionPolicy"], one["UpdateReplacePolicy"]) == (policy, policy)


@pytest.mark.parametrize(("retain", "policy"), [(True, "Retain"), (False, "Delete")])
def test_buckets_stay_unless_the_environment_says_otherwise(deploy: Deploy, retain: bool, policy: str) -> None:
    environment = deploy(retain=retain, may_delete=True)

    buckets = resources(environment.storage, "AWS::S3::Bucket")
    assert [(one["DeletionPolicy"], one["UpdateReplacePolicy"]) for one in buckets] == [(policy, policy)] * 2
    assert resources(environment.storage, "Custom::S3AutoDeleteObjects") == []


@pytest.mark.parametrize(
    ("efa", "protocols"),
    [({}, {"tcp"}), ({"efa": True}, {"-1"})],
    ids=["TCP", "EFA"],
)
def test_an_existing_file_system_gets_the_rules_of_how_it_is_reached(
    deploy: Deploy, efa: dict[str, Any], protocols: set[str]
) -> None:
    lustre = {
        "file_system_id": "fs-0123456789abcdef0",
        "mount_name": "abcdefgh",
        "security_group_id": "sg-0123456789abcdef0",
    }

    environment = deploy(lustre={**lustre, **efa})

    rules = [one["Properties"] for one in resources(environment.storage, "AWS::EC2::SecurityGroupIngress")]
    assert {rule["IpProtocol"] for rule in rules if rule["GroupId"] == "sg-0123456789abcdef0"} == protocols
