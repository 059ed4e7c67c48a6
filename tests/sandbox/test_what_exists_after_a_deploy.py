from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.sandbox.conftest import Aws

POLICY = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Deny",
            "Principal": {"AWS": "*"},
            "Action": "s3:*",
            "Resource": "*",
            "Condition": {"Bool": {"aws:SecureTransport": "false"}},
        }
    ],
}


def lustre(capacity: int = 1200) -> dict[str, Any]:
    return {
        "Type": "AWS::FSx::FileSystem",
        "Properties": {
            "FileSystemType": "LUSTRE",
            "StorageCapacity": capacity,
            "SubnetIds": [{"Ref": "Subnet"}],
            "SecurityGroupIds": [{"Fn::GetAtt": ["Group", "GroupId"]}],
            "LustreConfiguration": {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 125},
        },
    }


def association(path: str = "/data") -> dict[str, Any]:
    return {
        "Type": "AWS::FSx::DataRepositoryAssociation",
        "Properties": {
            "FileSystemId": {"Ref": "Lustre"},
            "FileSystemPath": path,
            "DataRepositoryPath": {"Fn::Sub": "s3://${Bucket}/data/"},
        },
    }


def fleet(user_data: str = "one", most: int = 2) -> dict[str, Any]:
    data = {
        "ImageId": "ami-12c6146b",
        "InstanceType": "p5.48xlarge",
        "UserData": base64.b64encode(user_data.encode()).decode(),
        "InstanceMarketOptions": {"MarketType": "spot"},
    }
    return {
        "Template": {"Type": "AWS::EC2::LaunchTemplate", "Properties": {"LaunchTemplateData": data}},
        "Nodes": {
            "Type": "AWS::AutoScaling::AutoScalingGroup",
            "Properties": {
                "MinSize": "0",
                "MaxSize": str(most),
                "VPCZoneIdentifier": [{"Ref": "Subnet"}],
                "LaunchTemplate": {
                    "LaunchTemplateId": {"Ref": "Template"},
                    "Version": {"Fn::GetAtt": ["Template", "LatestVersionNumber"]},
                },
            },
        },
    }


def test_lustre_is_a_file_system_that_boto3_sees_and_its_association_a_record(
    aws: Aws, stack: str, network: dict[str, Any]
) -> None:
    # given
    resources = {**network, "Lustre": lustre(), "Bucket": {"Type": "AWS::S3::Bucket"}, "Link": association()}
    names = {"Dns": {"Fn::GetAtt": ["Lustre", "DNSName"]}, "Mount": {"Fn::GetAtt": ["Lustre", "LustreMountName"]}}
    # when
    aws.create(stack, resources, names)
    # then
    made = aws.resources(stack)
    system = aws.client("fsx").describe_file_systems(FileSystemIds=[made["Lustre"]["physical_id"]])["FileSystems"][0]
    assert system["StorageCapacity"] == 1200
    assert system["Lifecycle"] == "AVAILABLE"
    assert aws.outputs(stack) == {"Dns": system["DNSName"], "Mount": system["LustreConfiguration"]["MountName"]}
    assert {name: made[name]["kind"] for name in ("Lustre", "Link")} == {"Lustre": "real", "Link": "record"}


def test_an_update_changes_lustre_in_place_and_replaces_the_association(
    aws: Aws, stack: str, network: dict[str, Any]
) -> None:
    resources = {**network, "Lustre": lustre(), "Bucket": {"Type": "AWS::S3::Bucket"}, "Link": association()}
    aws.create(stack, resources)
    before = aws.resources(stack)

    aws.update(stack, {**resources, "Lustre": lustre(2400), "Link": association("/other")})

    after = aws.resources(stack)
    systems = aws.client("fsx").describe_file_systems(FileSystemIds=[before["Lustre"]["physical_id"]])["FileSystems"]
    assert [system["StorageCapacity"] for system in systems] == [2400]
    assert after["Lustre"] == before["Lustre"]
    assert after["Link"]["physical_id"] != before["Link"]["physical_id"]


def test_an_egress_rule_is_in_the_security_group_until_it_is_deleted(
    aws: Aws, stack: str, network: dict[str, Any]
) -> None:
    # given a rule from the group to itself
    group = {"Fn::GetAtt": ["Group", "GroupId"]}
    properties = {"GroupId": group, "IpProtocol": "-1", "DestinationSecurityGroupId": group}
    rule = {"Type": "AWS::EC2::SecurityGroupEgress", "Properties": properties}
    # when it comes and goes
    aws.create(stack, {**network, "ToSelf": rule})
    identifier = aws.resources(stack)["Group"]["physical_id"]
    with_rule = egress_targets(aws, identifier)
    aws.update(stack, network)
    # then
    assert with_rule == [identifier]
    assert egress_targets(aws, identifier) == []


def egress_targets(aws: Aws, group: str) -> list[str]:
    described = aws.client("ec2").describe_security_groups(GroupIds=[group])["SecurityGroups"][0]
    return [pair["GroupId"] for rule in described["IpPermissionsEgress"] for pair in rule["UserIdGroupPairs"]]


def test_a_bucket_has_its_policy_and_its_settings_and_can_still_be_used(aws: Aws, stack: str) -> None:
    bucket = {
        "Type": "AWS::S3::Bucket",
        "Properties": {
            "VersioningConfiguration": {"Status": "Enabled"},
            "PublicAccessBlockConfiguration": {"BlockPublicAcls": True},
        },
    }
    rule = {"Type": "AWS::S3::BucketPolicy", "Properties": {"Bucket": {"Ref": "Bucket"}, "PolicyDocument": POLICY}}
    aws.create(stack, {"Bucket": bucket, "Policy": rule}, {"Name": {"Ref": "Bucket"}})

    name, s3 = aws.outputs(stack)["Name"], aws.client("s3")
    assert json.loads(s3.get_bucket_policy(Bucket=name)["Policy"]) == POLICY
    assert s3.get_bucket_versioning(Bucket=name)["Status"] == "Enabled"
    assert s3.get_public_access_block(Bucket=name)["PublicAccessBlockConfiguration"]["BlockPublicAcls"] is True
    # moto ignores the condition and would refuse this
    s3.put_object(Bucket=name, Key="k", Body=b"x")


def test_topics_queues_and_alarms_are_real(aws: Aws, stack: str) -> None:
    statement = {"Effect": "Allow", "Principal": {"Service": "events.amazonaws.com"}, "Action": "*", "Resource": "*"}
    policy = {"Version": "2012-10-17", "Statement": [statement]}
    resources: dict[str, Any] = {
        "Topic": {"Type": "AWS::SNS::Topic"},
        "TopicRule": {"Type": "AWS::SNS::TopicPolicy", "Properties": {"Topics": [{"Ref": "Topic"}]}},
        "Queue": {"Type": "AWS::SQS::Queue"},
        "QueueRule": {"Type": "AWS::SQS::QueuePolicy", "Properties": {"Queues": [{"Ref": "Queue"}]}},
        "Alarm": {
            "Type": "AWS::CloudWatch::Alarm",
            "Properties": {
                "AlarmName": stack,
                "AlarmActions": [{"Ref": "Topic"}],
                "ComparisonOperator": "LessThanThreshold",
                "EvaluationPeriods": 3,
                "MetricName": "TokensPerSecond",
                "Namespace": "Trainfabric",
                "Period": 60,
                "Statistic": "Average",
                "Threshold": 1,
            },
        },
    }
    for name in ("TopicRule", "QueueRule"):
        resources[name]["Properties"]["PolicyDocument"] = policy
    aws.create(stack, resources, {"Topic": {"Ref": "Topic"}, "Queue": {"Ref": "Queue"}})

    outputs = aws.outputs(stack)
    topic = aws.client("sns").get_topic_attributes(TopicArn=outputs["Topic"])["Attributes"]
    queue = aws.client("sqs").get_queue_attributes(QueueUrl=outputs["Queue"], AttributeNames=["Policy"])["Attributes"]
    alarm = aws.client("cloudwatch").describe_alarms(AlarmNames=[stack])["MetricAlarms"][0]
    assert json.loads(topic["Policy"]) == json.loads(queue["Policy"]) == policy
    assert (alarm["MetricName"], alarm["AlarmActions"]) == ("TokensPerSecond", [outputs["Topic"]])


def test_a_group_without_desired_capacity_begins_empty_and_its_nodes_are_spot(
    aws: Aws, stack: str, network: dict[str, Any]
) -> None:
    aws.create(stack, {**network, **fleet()})
    group = aws.resources(stack)["Nodes"]["physical_id"]
    assert instances(aws, group) == []

    aws.client("autoscaling").set_desired_capacity(AutoScalingGroupName=group, DesiredCapacity=2)

    assert [instance["InstanceLifecycle"] for instance in instances(aws, group)] == ["spot", "spot"]


def test_new_user_data_reaches_the_group_and_its_nodes_stay(aws: Aws, stack: str, network: dict[str, Any]) -> None:
    # given a fleet with a node
    aws.create(stack, {**network, **fleet("one", most=2)})
    group = aws.resources(stack)["Nodes"]["physical_id"]
    aws.client("autoscaling").set_desired_capacity(AutoScalingGroupName=group, DesiredCapacity=1)
    before = instances(aws, group)
    # when user data and size change; the group's own template is the same but for the size
    aws.update(stack, {**network, **fleet("two", most=3)})
    # then
    described = aws.client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[group])
    found = described["AutoScalingGroups"][0]
    assert (found["MaxSize"], found["DesiredCapacity"], found["LaunchTemplate"]["Version"]) == (3, 1, "2")
    assert [item["InstanceId"] for item in instances(aws, group)] == [item["InstanceId"] for item in before]


def instances(aws: Aws, group: str) -> list[dict[str, Any]]:
    filters = [{"Name": "tag:aws:autoscaling:groupName", "Values": [group]}]
    reservations = aws.client("ec2").describe_instances(Filters=filters)["Reservations"]
    return [instance for reservation in reservations for instance in reservation["Instances"]]


def test_a_failed_update_leaves_the_stack_speaking_of_the_old_template(aws: Aws, stack: str) -> None:
    place = {"Type": "AWS::EC2::PlacementGroup", "Properties": {"Strategy": "cluster"}}
    aws.create(stack, {"Place": place})

    with pytest.raises(ClientError, match=r"Resource Place \(AWS::EC2::PlacementGroup\): property Strategy breaks"):
        aws.update(stack, {"Place": {**place, "Properties": {"Strategy": "heap"}}})

    client = aws.client("cloudformation")
    assert client.describe_stacks(StackName=stack)["Stacks"][0]["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    assert client.get_template(StackName=stack)["TemplateBody"]["Resources"] == {"Place": place}
    aws.update(stack, {"Place": {**place, "Properties": {"Strategy": "spread"}}})


def test_a_type_that_moto_cannot_update_is_not_forgotten_but_refused(
    aws: Aws, stack: str, network: dict[str, Any]
) -> None:
    aws.create(stack, network)
    network["Subnet"]["Properties"]["MapPublicIpOnLaunch"] = True
    with pytest.raises(ClientError) as failure:
        aws.update(stack, network)
    assert failure.value.response["Error"]["Message"] == (
        "Resource Subnet (AWS::EC2::Subnet): moto cannot update this type; start the sandbox anew and deploy again"
    )


def test_a_deleted_stack_leaves_nothing_and_stays_deleted_when_it_is_described(
    aws: Aws, stack: str, network: dict[str, Any]
) -> None:
    # given a network with a route table, and outputs
    table = {"Type": "AWS::EC2::RouteTable", "Properties": {"VpcId": {"Ref": "Vpc"}}}
    ec2, client = aws.client("ec2"), aws.client("cloudformation")
    before = {vpc["VpcId"] for vpc in ec2.describe_vpcs()["Vpcs"]}
    aws.create(stack, {**network, "Table": table, "Lustre": lustre()}, {"Vpc": {"Ref": "Vpc"}})
    identifier = client.describe_stacks(StackName=stack)["Stacks"][0]["StackId"]
    systems = {system["FileSystemId"] for system in aws.client("fsx").describe_file_systems()["FileSystems"]}
    # when
    aws.delete(stack)
    status = client.describe_stacks(StackName=identifier)["Stacks"][0]["StackStatus"]
    # then
    assert status == "DELETE_COMPLETE"
    assert {vpc["VpcId"] for vpc in ec2.describe_vpcs()["Vpcs"]} == before
    left = {system["FileSystemId"] for system in aws.client("fsx").describe_file_systems()["FileSystems"]}
    assert len(systems - left) == 1


def test_exports_follow_an_update(aws: Aws, stack: str, new_name: Any) -> None:
    other, export = new_name("stack"), new_name("export")
    place = {"Place": {"Type": "AWS::EC2::PlacementGroup"}}
    body = {"Resources": place, "Outputs": {"Name": {"Value": {"Ref": "Place"}, "Export": {"Name": export}}}}
    aws.create(stack, place)
    client = aws.client("cloudformation")

    client.update_stack(StackName=stack, TemplateBody=json.dumps(body))

    aws.create(other, place, {"Imported": {"Fn::ImportValue": export}})
    assert aws.outputs(other)["Imported"] == aws.resources(stack)["Place"]["physical_id"]


def test_change_sets_of_two_stacks_may_have_one_name(aws: Aws, new_name: Any) -> None:
    # given change sets as cdk deploy makes them
    first, second = new_name("stack"), new_name("stack")
    client = aws.client("cloudformation")
    body = {
        "Resources": {"Place": {"Type": "AWS::EC2::PlacementGroup"}},
        "Outputs": {"Name": {"Value": {"Ref": "Place"}}},
    }
    for stack in (first, second):
        client.create_change_set(
            StackName=stack, ChangeSetName="cdk-deploy", ChangeSetType="CREATE", TemplateBody=json.dumps(body)
        )
    # when
    for stack in (first, second):
        client.execute_change_set(StackName=stack, ChangeSetName="cdk-deploy")
    # then
    for stack in (first, second):
        assert aws.outputs(stack)["Name"] == aws.resources(stack)["Place"]["physical_id"]
        assert aws.resources(stack)["Place"]["physical_id"].startswith(stack)


def test_a_change_set_that_was_deleted_is_not_found(aws: Aws, stack: str) -> None:
    client = aws.client("cloudformation")
    body = json.dumps({"Resources": {"Place": {"Type": "AWS::EC2::PlacementGroup"}}})
    client.create_change_set(StackName=stack, ChangeSetName="cs", ChangeSetType="CREATE", TemplateBody=body)
    client.delete_change_set(StackName=stack, ChangeSetName="cs")
    with pytest.raises(ClientError) as failure:
        client.describe_change_set(StackName=stack, ChangeSetName="cs")
    assert failure.value.response["Error"]["Code"] == "ChangeSetNotFound"
