from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.sandbox.conftest import Aws

IMAGE = "ami-12c6146b"


@pytest.fixture
def template(aws: Aws, new_name: Callable[[str], str]) -> str:
    """The id of a launch template."""
    data = {"ImageId": "resolve:ssm:/image", "InstanceType": "t3.micro"}
    made = aws.client("ec2").create_launch_template(LaunchTemplateName=new_name("template"), LaunchTemplateData=data)
    return str(made["LaunchTemplate"]["LaunchTemplateId"])


def add_version(aws: Aws, template: str, **more: Any) -> dict[str, Any]:
    given = {"LaunchTemplateId": template, "LaunchTemplateData": {"ImageId": IMAGE}, **more}
    return dict(aws.client("ec2").create_launch_template_version(**given)["LaunchTemplateVersion"])


def numbers(aws: Aws, template: str) -> list[int]:
    found = aws.client("ec2").describe_launch_template_versions(LaunchTemplateId=template)["LaunchTemplateVersions"]
    return [version["VersionNumber"] for version in found]


def test_a_version_is_laid_over_its_source(aws: Aws, template: str) -> None:
    based = add_version(aws, template, SourceVersion="1")
    alone = add_version(aws, template)

    assert based["LaunchTemplateData"] == {"ImageId": IMAGE, "InstanceType": "t3.micro"}
    assert alone["LaunchTemplateData"] == {"ImageId": IMAGE}


def test_the_number_of_a_deleted_version_is_not_used_again(aws: Aws, template: str) -> None:
    ec2 = aws.client("ec2")
    add_version(aws, template)
    add_version(aws, template)

    ec2.delete_launch_template_versions(LaunchTemplateId=template, Versions=["2"])
    fourth = add_version(aws, template, SourceVersion="3")

    assert (fourth["VersionNumber"], numbers(aws, template)) == (4, [1, 3, 4])
    found = ec2.describe_launch_template_versions(LaunchTemplateId=template, Versions=["3"])
    assert [version["VersionNumber"] for version in found["LaunchTemplateVersions"]] == [3]


def test_the_default_version_is_not_deleted(aws: Aws, template: str) -> None:
    ec2 = aws.client("ec2")
    add_version(aws, template)
    ec2.modify_launch_template(LaunchTemplateId=template, DefaultVersion="2")

    answer = ec2.delete_launch_template_versions(LaunchTemplateId=template, Versions=["1", "2"])

    assert [one["VersionNumber"] for one in answer["SuccessfullyDeletedLaunchTemplateVersions"]] == [1]
    assert [one["VersionNumber"] for one in answer["UnsuccessfullyDeletedLaunchTemplateVersions"]] == [2]
    assert numbers(aws, template) == [2]
