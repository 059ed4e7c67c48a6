from __future__ import annotations

import time
from typing import Any

import pytest

from tests.sandbox.conftest import Aws, refused


def test_a_type_that_nobody_knows_fails_the_deploy_by_name_before_anything_is_made(aws: Aws, stack: str) -> None:
    # given a template with a resource that moto would skip in silence
    resources = {
        "Bucket": {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": f"{stack}-never"}},
        "Pipe": {"Type": "AWS::ImageBuilder::ImagePipeline"},
        "Made": {"Type": "Custom::Thing", "Properties": {"ServiceToken": "arn:aws:lambda:us-east-1:1:function:f"}},
    }
    # when it is deployed
    began = time.monotonic()
    message = refused(aws.create, stack, resources)
    # then every such resource is named, at once, and nothing is left
    assert message == (
        "Template format error: Unrecognized resource types: AWS::ImageBuilder::ImagePipeline (Pipe), "
        "Custom::Thing (Made); neither moto nor the sandbox can make them; add a model to sandbox/aws/models"
    )
    assert time.monotonic() - began < 5
    assert stack not in aws.stack_names()
    assert f"{stack}-never" not in [bucket["Name"] for bucket in aws.client("s3").list_buckets()["Buckets"]]


def test_an_unknown_type_is_refused_in_an_update_and_in_a_change_set_as_well(aws: Aws, stack: str) -> None:
    group = {"Place": {"Type": "AWS::EC2::PlacementGroup", "Properties": {"Strategy": "cluster"}}}
    aws.create(stack, group)
    worse = {**group, "Pipe": {"Type": "AWS::ImageBuilder::ImagePipeline"}}

    assert "AWS::ImageBuilder::ImagePipeline (Pipe)" in refused(aws.update, stack, worse)
    assert list(aws.resources(stack)) == ["Place"]


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        (
            {"Strategy": "clustre"},
            "Resource Thing (AWS::EC2::PlacementGroup): property Strategy breaks the rule enum of the CloudFormation "
            "schema: 'clustre' is not one of ['cluster', 'partition', 'precision-time', 'spread']",
        ),
        (
            {"Strategy": "cluster", "Spread": 3},
            "Resource Thing (AWS::EC2::PlacementGroup): property Spread breaks the rule additionalProperties of the "
            "CloudFormation schema: Additional properties are not allowed ('Spread' was unexpected)",
        ),
        (
            {"Strategy": "partition", "PartitionCount": "many"},
            "Resource Thing (AWS::EC2::PlacementGroup): property PartitionCount breaks the rule type of the "
            "CloudFormation schema: 'many' is not of type 'integer'",
        ),
    ],
)
def test_a_property_that_breaks_its_schema_fails_the_deploy_with_resource_property_and_rule(
    aws: Aws, stack: str, properties: dict[str, Any], message: str
) -> None:
    found = refused(aws.create, stack, {"Thing": {"Type": "AWS::EC2::PlacementGroup", "Properties": properties}})
    assert found == message
    assert stack not in aws.stack_names()


def test_properties_of_motos_own_models_are_held_against_their_schema_too(aws: Aws, stack: str) -> None:
    topic = {"Type": "AWS::SNS::Topic", "Properties": {"Shape": "x"}}
    assert refused(aws.create, stack, {"Topic": topic}) == (
        "Resource Topic (AWS::SNS::Topic): property Shape breaks the rule additionalProperties of the "
        "CloudFormation schema: Additional properties are not allowed ('Shape' was unexpected)"
    )


def test_numbers_and_truths_as_text_are_read_as_cloudformation_reads_them(aws: Aws, stack: str) -> None:
    properties = {"Strategy": "partition", "PartitionCount": "3"}
    aws.create(stack, {"Thing": {"Type": "AWS::EC2::PlacementGroup", "Properties": properties}})
    assert aws.resources(stack)["Thing"]["kind"] == "record"


def test_parameters_that_the_api_would_refuse_fail_the_deploy(aws: Aws, stack: str, network: dict[str, Any]) -> None:
    # given what the CloudFormation schema lets pass: it knows no lower bound of this capacity
    system = lustre_properties(StorageCapacity=-1)
    resources = {**network, "Lustre": {"Type": "AWS::FSx::FileSystem", "Properties": system}}
    before = aws.client("ec2").describe_vpcs()["Vpcs"]
    # when it is deployed, then botocore's model of CreateFileSystem says no, and the network is rolled back
    assert refused(aws.create, stack, resources) == (
        "Resource Lustre (AWS::FSx::FileSystem): fsx:CreateFileSystem would refuse it: "
        "Invalid value for parameter StorageCapacity, value: -1, valid min value: 0"
    )
    assert aws.client("ec2").describe_vpcs()["Vpcs"] == before


def test_a_reference_to_what_does_not_exist_fails_the_deploy(aws: Aws, stack: str) -> None:
    system = lustre_properties(SubnetIds=["subnet-0123456789abcdef0"], SecurityGroupIds=[])
    message = refused(aws.create, stack, {"Lustre": {"Type": "AWS::FSx::FileSystem", "Properties": system}})
    assert message.startswith("Resource Lustre (AWS::FSx::FileSystem): subnet subnet-0123456789abcdef0 does not exist")


def test_an_error_inside_moto_is_a_client_error_that_names_the_resource(aws: Aws, stack: str) -> None:
    # given a launch template version that does not exist, which moto finds out half-way
    group = {
        "Type": "AWS::AutoScaling::AutoScalingGroup",
        "Properties": {
            "MinSize": "0",
            "MaxSize": "1",
            "AvailabilityZones": ["us-east-1a"],
            "LaunchTemplate": {"LaunchTemplateId": "lt-0123456789abcdef0", "Version": "1"},
        },
    }
    assert refused(aws.create, stack, {"Nodes": group}).startswith(
        "Resource Nodes (AWS::AutoScaling::AutoScalingGroup): "
    )
    assert stack not in aws.stack_names()


def test_a_failed_stack_can_be_deployed_again_under_its_name(aws: Aws, stack: str) -> None:
    refused(aws.create, stack, {"Pipe": {"Type": "AWS::ImageBuilder::ImagePipeline"}})
    aws.create(stack, {"Place": {"Type": "AWS::EC2::PlacementGroup"}})
    assert list(aws.resources(stack)) == ["Place"]


def lustre_properties(**changes: Any) -> dict[str, Any]:
    return {
        "FileSystemType": "LUSTRE",
        "StorageCapacity": 1200,
        "SubnetIds": [{"Ref": "Subnet"}],
        "SecurityGroupIds": [{"Fn::GetAtt": ["Group", "GroupId"]}],
        "LustreConfiguration": {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 125},
        **changes,
    }
