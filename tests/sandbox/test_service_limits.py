from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.sandbox.conftest import Aws, refused

TEMPLATE = "Resource Template (AWS::EC2::LaunchTemplate): "
INTERFACES = "property LaunchTemplateData.NetworkInterfaces"


def interface(card: int = 0, device: int = 0, kind: str = "interface", **more: Any) -> dict[str, Any]:
    return {"NetworkCardIndex": card, "DeviceIndex": device, "InterfaceType": kind, **more}


def launch_template(**data: Any) -> dict[str, Any]:
    return {"Template": {"Type": "AWS::EC2::LaunchTemplate", "Properties": {"LaunchTemplateData": data}}}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            {"NetworkInterfaces": [interface(), interface(1, 1, "efaonly")]},
            f"{INTERFACES}.1.InterfaceType must be one of interface, efa, efa-only, got efaonly",
        ),
        (
            {"NetworkInterfaces": [interface()], "SecurityGroupIds": ["sg-0123456789abcdef0"]},
            "property LaunchTemplateData.SecurityGroupIds must not stand beside NetworkInterfaces; "
            "name the groups in each interface",
        ),
        (
            {"NetworkInterfaces": [interface(), interface(1, 1, "efa-only"), interface(1, 1, "efa-only")]},
            f"{INTERFACES} must have one interface at network card 1, device 1, got 2",
        ),
        (
            {"NetworkInterfaces": [interface(0, 1), interface(1, 1, "efa-only")]},
            f"{INTERFACES} must have a primary interface at network card 0, device 0",
        ),
        (
            {"NetworkInterfaces": [interface(kind="efa-only")]},
            f"{INTERFACES} must have an address on the primary interface; efa-only has none",
        ),
        (
            {"NetworkInterfaces": [interface(AssociatePublicIpAddress=True), interface(1, 1, "efa-only")]},
            f"{INTERFACES} must have a single interface to associate a public address, got 2",
        ),
        (
            {"UserData": base64.b64encode(b"#" * 16385).decode()},
            "property LaunchTemplateData.UserData must decode to at most 16384 bytes, got 16385",
        ),
        ({"UserData": "#!/bin/bash"}, "property LaunchTemplateData.UserData must be base64"),
        (
            {"InstanceType": "p5.48xlrage"},
            "ec2:CreateLaunchTemplate would refuse it: LaunchTemplateData.InstanceType must be a known InstanceType, "
            "got p5.48xlrage",
        ),
    ],
)
def test_a_launch_template_that_ec2_would_refuse_fails_the_deploy(
    aws: Aws, stack: str, data: dict[str, Any], message: str
) -> None:
    assert refused(aws.create, stack, launch_template(**data)) == TEMPLATE + message
    assert stack not in aws.stack_names()


def test_a_launch_template_at_the_limits_is_deployed(aws: Aws, stack: str) -> None:
    # given as much user data as there may be, an EFA interface on every card, and an image by its parameter
    interfaces = [interface(), interface(0, 1, "efa-only"), interface(1, 1, "efa-only")]
    user_data = base64.b64encode(b"#" * 16384).decode()
    aws.create(
        stack,
        launch_template(
            ImageId="resolve:ssm:/aws/service/an/ami",
            InstanceType="p5.48xlarge",
            NetworkInterfaces=interfaces,
            UserData=user_data,
        ),
    )
    assert aws.resources(stack)["Template"]["kind"] == "real"


def test_an_update_is_held_to_the_limits_too(aws: Aws, stack: str) -> None:
    aws.create(stack, launch_template(NetworkInterfaces=[interface()]))
    assert refused(aws.update, stack, launch_template(NetworkInterfaces=[interface(0, 1)])) == (
        f"{TEMPLATE}{INTERFACES} must have a primary interface at network card 0, device 0"
    )


@pytest.mark.parametrize(("tier", "most"), [("Standard", 4096), ("Advanced", 8192), ("Intelligent-Tiering", 8192)])
def test_a_parameter_has_as_many_bytes_as_its_tier_holds(aws: Aws, stack: str, tier: str, most: int) -> None:
    def parameter(value: str) -> dict[str, Any]:
        properties = {"Name": f"/{stack}", "Type": "String", "Value": value, "Tier": tier, "Tags": {"a": "b"}}
        return {"Plan": {"Type": "AWS::SSM::Parameter", "Properties": properties}}

    assert refused(aws.create, stack, parameter("x" * (most - 1) + "ä")) == (
        f"Resource Plan (AWS::SSM::Parameter): property Value must have 1 to {most} bytes in tier {tier}, "
        f"got {most + 1}"
    )
    aws.create(stack, parameter("x" * most))
    assert aws.client("ssm").get_parameter(Name=f"/{stack}")["Parameter"]["Value"] == "x" * most


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("{widgets}", "must be JSON, got an error: Expecting property name enclosed in double quotes: "),
        ("[]", "must be a JSON object with a list of widgets"),
        ('{"widgets": {}}', "must be a JSON object with a list of widgets"),
    ],
)
def test_a_dashboard_without_a_body_in_json_fails_the_deploy(aws: Aws, stack: str, body: str, problem: str) -> None:
    dashboard = {"Type": "AWS::CloudWatch::Dashboard", "Properties": {"DashboardName": stack, "DashboardBody": body}}
    message = refused(aws.create, stack, {"Dashboard": dashboard})
    where = "line 1 column 2 (char 1)" if body == "{widgets}" else ""
    assert message == f"Resource Dashboard (AWS::CloudWatch::Dashboard): property DashboardBody {problem}{where}"


def test_a_dashboard_in_json_is_deployed(aws: Aws, stack: str) -> None:
    properties = {"DashboardName": stack, "DashboardBody": json.dumps({"widgets": []})}
    aws.create(stack, {"Dashboard": {"Type": "AWS::CloudWatch::Dashboard", "Properties": properties}})
    assert aws.client("cloudwatch").get_dashboard(DashboardName=stack)["DashboardBody"] == '{"widgets": []}'


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"MinSize": "2", "MaxSize": "1"}, "property MaxSize must be at least MinSize 2, got 1"),
        (
            {"MinSize": "0", "MaxSize": "1", "DesiredCapacity": "2"},
            "property DesiredCapacity must be between MinSize 0 and MaxSize 1, got 2",
        ),
    ],
)
def test_a_group_has_a_size_within_its_bounds(aws: Aws, stack: str, sizes: dict[str, str], message: str) -> None:
    group = {
        "Type": "AWS::AutoScaling::AutoScalingGroup",
        "Properties": {
            **sizes,
            "AvailabilityZones": ["us-east-1a"],
            "LaunchTemplate": {
                "LaunchTemplateId": {"Ref": "Template"},
                "Version": {"Fn::GetAtt": ["Template", "LatestVersionNumber"]},
            },
        },
    }
    resources = {**launch_template(InstanceType="p5.48xlarge"), "Nodes": group}
    assert refused(aws.create, stack, resources) == f"Resource Nodes (AWS::AutoScaling::AutoScalingGroup): {message}"


@pytest.mark.parametrize(
    ("capacity", "throughput", "message"),
    [
        (1300, 125, "property StorageCapacity must be 1200 or a multiple of 2400 GiB, got 1300; use 2400"),
        (
            1200,
            126,
            "property LustreConfiguration.PerUnitStorageThroughput must be one of 125, 250, 500, 1000 MB/s per TiB, "
            "got 126; use 125",
        ),
    ],
)
def test_lustre_has_one_of_the_sizes_that_fsx_sells(
    aws: Aws, stack: str, network: dict[str, Any], capacity: int, throughput: int, message: str
) -> None:
    properties = {
        "FileSystemType": "LUSTRE",
        "StorageCapacity": capacity,
        "SubnetIds": [{"Ref": "Subnet"}],
        "LustreConfiguration": {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": throughput},
    }
    resources = {**network, "Lustre": {"Type": "AWS::FSx::FileSystem", "Properties": properties}}
    assert refused(aws.create, stack, resources) == f"Resource Lustre (AWS::FSx::FileSystem): {message}"
