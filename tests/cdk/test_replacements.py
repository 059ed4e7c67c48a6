"""Changes that would replace or drop a resource with data are warned about before anything is deployed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_fsx as fsx
from aws_cdk import aws_s3 as s3
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

from trainfabric_cdk.replacements import warn_of_replacements
from trainfabric_plan.stateful import CREATE_ONLY

Build = Callable[[cdk.Stack], Any]


def synthesise(outdir: Path, build: Build, context: dict[str, Any] | None = None) -> list[str]:
    """Synthesises one stack into `outdir`; the warnings about it."""
    app = cdk.App(outdir=str(outdir), analytics_reporting=False, context=context)
    stack = cdk.Stack(app, "Theirs")
    build(stack)
    warn_of_replacements(app)
    artifact = app.synth().get_stack_by_name("Theirs")
    return [str(message.entry.data) for message in artifact.messages]


def file_system(subnet: str = "subnet-1", deployment: str = "PERSISTENT_2", capacity: int = 1200) -> Build:
    return lambda stack: fsx.CfnFileSystem(
        stack,
        "Data",
        file_system_type="LUSTRE",
        subnet_ids=[subnet],
        storage_capacity=capacity,
        lustre_configuration=fsx.CfnFileSystem.LustreConfigurationProperty(deployment_type=deployment),
    )


def test_a_first_synthesis_and_one_without_a_change_say_nothing(tmp_path: Path) -> None:
    assert synthesise(tmp_path, file_system()) == []
    assert synthesise(tmp_path, file_system()) == []
    assert synthesise(tmp_path, file_system(capacity=2400)) == []


@pytest.mark.parametrize(
    ("changed", "names"),
    [
        (file_system("subnet-2"), "SubnetIds"),
        (file_system(deployment="SCRATCH_2"), "LustreConfiguration.DeploymentType"),
    ],
)
def test_a_file_system_that_would_be_replaced_is_named_with_what_changed(
    tmp_path: Path, changed: Build, names: str
) -> None:
    synthesise(tmp_path, file_system())

    assert synthesise(tmp_path, changed) == [
        f"AWS::FSx::FileSystem Data would be replaced by an empty one ({names} changed): its data is deleted "
        "[ack: trainfabric:replacesStatefulResource]"
    ]


def test_a_bucket_that_is_dropped_and_kept_is_told_as_such(tmp_path: Path) -> None:
    synthesise(tmp_path, lambda stack: s3.CfnBucket(stack, "Kept").apply_removal_policy(cdk.RemovalPolicy.RETAIN))

    assert synthesise(tmp_path, lambda stack: None) == [
        "AWS::S3::Bucket Kept was deployed and is no longer in the stack: the old one stays in the account, billed and "
        "unused [ack: trainfabric:dropsStatefulResource]"
    ]


def test_deployed_templates_come_before_the_last_synthesis(tmp_path: Path) -> None:
    deployed, outdir = tmp_path / "deployed", tmp_path / "out"
    synthesise(deployed, file_system("subnet-1"))
    synthesise(outdir, file_system("subnet-2"))

    warned = synthesise(outdir, file_system("subnet-2"), {"trainfabric:deployedTemplates": str(deployed)})

    assert len(warned) == 1
    assert "SubnetIds changed" in warned[0]


def test_references_are_compared_as_the_template_has_them(tmp_path: Path) -> None:
    def with_reference(stack: cdk.Stack) -> None:
        subnet = ec2.CfnSubnet(stack, "Subnet", vpc_id="vpc-1", cidr_block="10.0.0.0/24")
        fsx.CfnFileSystem(stack, "Data", file_system_type="LUSTRE", subnet_ids=[subnet.ref], storage_capacity=1200)

    synthesise(tmp_path, with_reference)

    assert synthesise(tmp_path, with_reference) == []


@pytest.mark.parametrize("kind", CREATE_ONLY)
def test_the_table_is_that_of_the_registry(kind: str) -> None:
    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", kind).schema

    named = {path.removeprefix("/properties/").split("/")[0] for path in schema.get("createOnlyProperties", [])}
    assert named == CREATE_ONLY[kind]
