from __future__ import annotations

from typing import Any

import boto3
import pytest

from tests.node.embedded import IMAGE, IMAGE_PARAMETER, deploy_image
from tests.node.jobs.lab import ASSET, COORDINATOR, NOTHING, WORKERS, Embedded, launched, start, wanted, write_parameter
from tests.node.samples import groups, plan
from trainfabric_node.jobs import Fleet, JobControl, JobLedger, connect
from trainfabric_plan.contract import code_key
from trainfabric_plan.errors import NotFound, Refused

OTHER_IMAGE = "ami-0b301ce3ce3475r4f"


def versions(embedded: Embedded, group: str = WORKERS) -> list[dict[str, Any]]:
    template = embedded.templates[group]
    found = boto3.client("ec2").describe_launch_template_versions(LaunchTemplateId=template)["LaunchTemplateVersions"]
    return [dict(version) for version in found]


def deploy_again(embedded: Embedded) -> None:
    """What CloudFormation does: a new version of each template, and the group's is what the default version is."""
    ec2, scaling = boto3.client("ec2"), boto3.client("autoscaling")
    for group, template in embedded.templates.items():
        data: Any = {"ImageId": f"resolve:ssm:{IMAGE_PARAMETER}", "InstanceType": "t3.small"}
        ec2.create_launch_template_version(LaunchTemplateId=template, LaunchTemplateData=data)
        described = ec2.describe_launch_templates(LaunchTemplateIds=[template])["LaunchTemplates"][0]
        scaling.update_auto_scaling_group(
            AutoScalingGroupName=group,
            LaunchTemplate={"LaunchTemplateId": template, "Version": str(described["DefaultVersionNumber"])},
        )


def images() -> set[str]:
    """Images of the nodes that run."""
    found = boto3.client("ec2").describe_instances(Filters=[{"Name": "instance-state-name", "Values": ["running"]}])
    return {node["ImageId"] for reservation in found["Reservations"] for node in reservation["Instances"]}


def test_a_run_launches_versions_of_its_own_with_the_image_that_the_parameter_names(
    lab: JobControl, embedded: Embedded
) -> None:
    started = start(lab)

    pins = started.pins
    assert pins.asset_key == ASSET
    for group, pinned in pins.groups.items():
        assert (pinned.launch_template_id, pinned.image_id) == (embedded.templates[group], IMAGE)
        assert launched()[group] == (pinned.launch_template_version, IMAGE)
        (made,) = (one for one in versions(embedded, group) if one["DefaultVersion"])
        assert made["VersionDescription"] == "trainfabric job first run 1"
        assert str(made["VersionNumber"]) == pinned.launch_template_version
        assert (
            made["LaunchTemplateData"]["InstanceType"]
            == versions(embedded, group)[-2]["LaunchTemplateData"]["InstanceType"]
        )


def test_a_deploy_during_a_run_changes_nothing_under_it_and_the_next_run_takes_it_up(
    lab: JobControl, fleet: Fleet, embedded: Embedded
) -> None:
    started = start(lab)
    before = launched()

    deploy_again(embedded)
    deploy_image(OTHER_IMAGE)
    boto3.client("s3").delete_object(Bucket="assets", Key=ASSET)
    fleet.replace(fleet.members()[-1].instance_id)

    assert launched() == before
    assert images() == {IMAGE}
    assert boto3.client("s3").get_object(Bucket="checkpoints", Key=code_key(ASSET))["Body"].read() == b"code"
    lab.stop(force=True)
    second = start(lab, "second")
    assert second.pins.groups[WORKERS].image_id == OTHER_IMAGE
    assert images() == {OTHER_IMAGE}
    newest = versions(embedded)[-1]
    assert newest["LaunchTemplateData"]["InstanceType"] == "t3.small"
    assert started.pins.groups[WORKERS].launch_template_version != str(newest["VersionNumber"])


def test_versions_of_earlier_runs_are_removed_and_deployed_ones_stay(lab: JobControl, embedded: Embedded) -> None:
    deployed = [one["VersionNumber"] for one in versions(embedded) if not one.get("VersionDescription")]
    for job in ("first", "second", "third"):
        start(lab, job)
        lab.stop(force=True)

    found = versions(embedded)

    assert [one["VersionNumber"] for one in found if not one.get("VersionDescription")] == deployed
    assert [one["VersionDescription"] for one in found if one.get("VersionDescription")] == [
        "trainfabric job third run 1"
    ]


def test_a_run_that_is_refused_leaves_no_versions_and_the_running_one_its_own(
    lab: JobControl, ledger: JobLedger, embedded: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(lab)
    before, found = launched(), versions(embedded)
    monkeypatch.setattr(ledger.__class__, "check_free", lambda *_: None)  # the first was started in this moment

    with pytest.raises(Refused):
        start(lab, "second")

    assert (launched(), versions(embedded)) == (before, found)


def test_a_start_that_fails_later_leaves_the_groups_as_they_were(
    lab: JobControl, embedded: Embedded, ledger: JobLedger
) -> None:
    numbers = [one["VersionNumber"] for one in versions(embedded) if not one.get("VersionDescription")]
    write_parameter(embedded.deployed(nodes=20).model_dump_json())

    with pytest.raises(Exception, match="is above max value 8"):
        start(connect("lab", "us-east-1"), plan=plan(10))

    assert {version for version, _ in launched().values()} == {str(numbers[-1])}
    assert [one["VersionNumber"] for one in versions(embedded)] == numbers


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {"asset_key": "gone.zip"},
            "environment lab: training asset must be an existing object, got none at s3://assets/gone.zip; "
            "deploy the environment again",
        ),
        (
            {"groups": groups(4, templates={COORDINATOR: "lt-0a"})},
            "environment lab: launch template must be an existing one, got lt-0a; deploy the environment again",
        ),
    ],
)
def test_what_the_environment_names_must_be_there_before_anything_starts(
    aws: str, embedded: Embedded, ledger: JobLedger, changes: dict[str, Any], says: str
) -> None:
    write_parameter(embedded.deployed(**changes).model_dump_json())

    with pytest.raises(NotFound) as caught:
        start(connect("lab", "us-east-1"))

    assert str(caught.value) == says
    assert (ledger.current(), ledger.jobs(), wanted()) == (None, [], NOTHING)


def test_an_image_parameter_that_is_gone_is_named_before_anything_starts(lab: JobControl, ledger: JobLedger) -> None:
    boto3.client("ssm").delete_parameter(Name=IMAGE_PARAMETER)

    with pytest.raises(NotFound) as caught:
        start(lab)

    assert str(caught.value) == (
        f"environment lab: parameter of the image must be an existing one, got {IMAGE_PARAMETER}; "
        "correct the image, and deploy the environment again"
    )
    assert (ledger.current(), ledger.jobs()) == (None, [])


def test_an_asset_that_is_kept_already_needs_no_other_copy(lab: JobControl) -> None:
    start(lab)
    lab.stop(force=True)
    boto3.client("s3").delete_object(Bucket="assets", Key=ASSET)

    assert start(lab, "second").pins.asset_key == ASSET


def test_a_fleet_without_launch_templates_of_ours_has_no_pins(aws: str, embedded: Embedded) -> None:
    before = launched()
    write_parameter(embedded.deployed(groups=groups(4)).model_dump_json())

    assert start(connect("lab", "us-east-1")).pins is None
    assert launched() == before
