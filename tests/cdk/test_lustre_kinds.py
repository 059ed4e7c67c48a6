"""The kinds of Lustre file systems, their links, keys, groups and alarms."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns

from trainfabric_cdk import (
    CheckpointBucket,
    ExistingLustre,
    LustreLink,
    LustreLinkedToS3,
    LustreStorage,
    PropertyError,
    TrainingKey,
)
from trainfabric_cdk.storage import grant_service_roles

Properties = Callable[[str], list[dict[str, Any]]]
Resources = Callable[[str], dict[str, dict[str, Any]]]
Make = Callable[..., LustreLinkedToS3]


@pytest.fixture
def make(stack: cdk.Stack) -> Make:
    def lustre(**given: Any) -> LustreLinkedToS3:
        usual: dict[str, Any] = {
            "vpc": ec2.Vpc.from_vpc_attributes(stack, "Vpc", vpc_id="vpc-1", availability_zones=["us-east-1a"]),
            "subnet": ec2.Subnet.from_subnet_id(stack, "Subnet", "subnet-1"),
            "client_security_group": ec2.SecurityGroup.from_security_group_id(stack, "Nodes", "sg-nodes"),
            "bucket": s3.Bucket.from_bucket_name(stack, "Data", "demo-data"),
        }
        return LustreLinkedToS3(stack, "Lustre", **{**usual, **given})

    return lustre


def test_intelligent_tiering_has_a_throughput_a_cache_and_no_link(
    make: Make, properties: Properties, resources: Resources
) -> None:
    make(bucket=None, storage=LustreStorage.intelligent_tiering(required_throughput_mbps=3000, read_cache_gib=64))

    (system,) = properties("AWS::FSx::FileSystem")
    assert system["StorageType"] == "INTELLIGENT_TIERING"
    assert "StorageCapacity" not in system
    assert system["LustreConfiguration"] == {
        "DataCompressionType": "LZ4",
        "DataReadCacheConfiguration": {"SizeGiB": 64, "SizingMode": "USER_PROVISIONED"},
        "DeploymentType": "PERSISTENT_2",
        "MetadataConfiguration": {"Iops": 6000, "Mode": "USER_PROVISIONED"},
        "ThroughputCapacity": 4000,
    }
    assert resources("AWS::FSx::DataRepositoryAssociation") == {}
    assert resources("AWS::CloudWatch::Alarm") == {}


def test_intelligent_tiering_is_not_linked(make: Make) -> None:
    with pytest.raises(PropertyError) as refused:
        make(storage=LustreStorage.intelligent_tiering(throughput_mbps=4000))

    assert str(refused.value) == (
        "Demo/Lustre: bucket must be left out with intelligent_tiering, which FSx links to no bucket; "
        "use LustreStorage.persistent_2()"
    )


def test_scratch_has_neither_a_throughput_nor_a_key_of_ours(
    make: Make, stack: cdk.Stack, properties: Properties
) -> None:
    with pytest.raises(PropertyError) as refused:
        make(storage=LustreStorage.scratch_2(), encryption_key=kms.Key(stack, "Key"))
    assert str(refused.value) == (
        "Demo/Lustre: encryption_key must be left out with scratch_2, which FSx encrypts with a key of its own; "
        "use LustreStorage.persistent_2()"
    )


def test_scratch_is_made_of_its_size_alone(make: Make, properties: Properties) -> None:
    make(storage=LustreStorage.scratch_2(capacity_gib=2400))

    (system,) = properties("AWS::FSx::FileSystem")
    assert system["StorageCapacity"] == 2400
    assert system["LustreConfiguration"] == {"DataCompressionType": "LZ4", "DeploymentType": "SCRATCH_2"}


def test_an_efa_enabled_file_system_lets_all_traffic_through_before_it_is_made(
    make: Make, properties: Properties, resources: Resources
) -> None:
    make(storage=LustreStorage.persistent_2(efa=True, throughput_mbps_per_tib=1000))

    (system,) = resources("AWS::FSx::FileSystem").values()
    assert system["Properties"]["StorageCapacity"] == 4800
    lustre = system["Properties"]["LustreConfiguration"]
    assert (lustre["EfaEnabled"], lustre["MetadataConfiguration"]) == (True, {"Mode": "AUTOMATIC"})
    rules = {*resources("AWS::EC2::SecurityGroupIngress"), *resources("AWS::EC2::SecurityGroupEgress")}
    assert len(rules) == 6
    assert rules <= set(system["DependsOn"])
    assert {rule["IpProtocol"] for rule in properties("AWS::EC2::SecurityGroupIngress")} == {"-1"}


def test_links_are_made_one_after_the_other_with_their_policies(
    make: Make, stack: cdk.Stack, resources: Resources
) -> None:
    models = s3.Bucket.from_bucket_name(stack, "Models", "their-models")
    make(
        links=[
            LustreLink(path="/data", prefix="data/"),
            LustreLink(path="/models", prefix="", bucket=models, exports=()),
            LustreLink(path="/results", prefix="results/", imports=(), exports=["new"]),
        ]
    )

    first, second, third = resources("AWS::FSx::DataRepositoryAssociation").items()
    assert "DependsOn" not in first[1]
    assert second[1]["DependsOn"] == [first[0]]
    assert third[1]["DependsOn"] == [second[0]]
    assert second[1]["Properties"]["DataRepositoryPath"] == "s3://their-models"
    assert second[1]["Properties"]["S3"] == {"AutoImportPolicy": {"Events": ["NEW", "CHANGED", "DELETED"]}}
    assert third[1]["Properties"]["S3"] == {"AutoExportPolicy": {"Events": ["NEW"]}}


def test_the_legacy_import_path_is_never_used(make: Make, properties: Properties) -> None:
    make()

    (system,) = properties("AWS::FSx::FileSystem")
    legacy = {"ImportPath", "ExportPath", "AutoImportPolicy", "ImportedFileChunkSize"}
    assert not legacy & set(system["LustreConfiguration"])


def test_the_checkpoint_bucket_is_never_linked(make: Make, stack: cdk.Stack) -> None:
    with pytest.raises(PropertyError) as refused:
        make(bucket=CheckpointBucket(stack, "Checkpoints"))

    assert str(refused.value) == (
        "Demo/Lustre: links[0].bucket must be another bucket than the checkpoints': what Lustre exports late or "
        "deletes would be a lost checkpoint, got Demo/Checkpoints"
    )


def test_tokens_of_a_storage_are_not_judged_and_reach_the_template(make: Make, properties: Properties) -> None:
    make(storage=LustreStorage.persistent_2(capacity_gib=cdk.Token.as_number(cdk.Fn.ref("Size")), metadata_iops=12000))

    (system,) = properties("AWS::FSx::FileSystem")
    assert system["StorageCapacity"] == {"Ref": "Size"}
    assert system["LustreConfiguration"]["MetadataConfiguration"] == {"Iops": 12000, "Mode": "USER_PROVISIONED"}


def test_a_required_throughput_must_be_known(make: Make) -> None:
    with pytest.raises(PropertyError) as refused:
        make(storage=LustreStorage.persistent_2(required_throughput_mbps=cdk.Token.as_number(cdk.Fn.ref("Size"))))

    assert str(refused.value) == (
        "Demo/Lustre: required_throughput_mbps must be known at synthesis: the size follows from it, got a token"
    )


def test_a_size_beyond_the_usual_quota_is_warned_about(make: Make, warnings: Callable[[], list[str]]) -> None:
    make(storage=LustreStorage.persistent_2(capacity_gib=103_200))

    assert [one for one in warnings() if "trainfabric:" in one] == [
        "a file system of 103200 GiB is larger than the 100800 GiB that an account has in a region before its quota is "
        "raised, less in some: ask AWS Support for more first, or FSx refuses it [ack: trainfabric:lustreBeyondQuota]"
    ]


def test_a_size_that_is_a_token_is_not_held_to_the_quota(make: Make, warnings: Callable[[], list[str]]) -> None:
    make(capacity_gib=cdk.Token.as_number(cdk.Fn.ref("Size")))

    assert [one for one in warnings() if "trainfabric:" in one] == []


def test_a_size_that_no_number_of_fsx_holds_is_refused(make: Make) -> None:
    with pytest.raises(PropertyError) as refused:
        make(storage=LustreStorage.persistent_2(required_throughput_mbps=10**12))

    assert str(refused.value) == (
        "Demo/Lustre: required_throughput_mbps must be at most 2097150000 MB/s, what the largest size, 2147481600 GiB, "
        "reads at 1000 MB/s per TiB, got 1000000000000"
    )


def test_sizes_are_given_once(make: Make) -> None:
    with pytest.raises(PropertyError) as refused:
        make(storage=LustreStorage.persistent_2(), capacity_gib=2400)

    assert str(refused.value) == (
        "Demo/Lustre: capacity_gib must be left out when storage is given, got 2400; give it to the LustreStorage"
    )


def test_alarms_watch_the_fullest_target_and_the_oldest_export(
    make: Make, stack: cdk.Stack, properties: Properties
) -> None:
    make(alarm_topic=sns.Topic.from_topic_arn(stack, "Topic", "arn:aws:sns:us-east-1:123456789012:people"))

    alarms = {alarm.get("MetricName", "expression"): alarm for alarm in properties("AWS::CloudWatch::Alarm")}
    assert set(alarms) == {"expression", "AgeOfOldestQueuedMessage"}
    assert {str(alarm["AlarmActions"]) for alarm in alarms.values()} == {
        "['arn:aws:sns:us-east-1:123456789012:people']"
    }
    age = alarms["AgeOfOldestQueuedMessage"]
    assert (age["Namespace"], age["Statistic"], age["Threshold"]) == ("AWS/FSx", "Maximum", 3600)
    assert {"Name": "Publisher", "Value": "AutoExport"} in age["Dimensions"]
    (expression,) = [m["Expression"] for m in alarms["expression"]["Metrics"] if "Expression" in m]
    assert expression == "100 * least * targets / (1200 * 1073741824)"


def test_an_existing_file_system_makes_nothing_but_the_rules_for_the_nodes(
    stack: cdk.Stack, resources: Resources
) -> None:
    lustre = ExistingLustre(
        stack,
        "Lustre",
        file_system_id="fs-0123456789abcdef0",
        mount_name="abcdefgh",
        security_group=ec2.SecurityGroup.from_security_group_id(stack, "Servers", "sg-servers"),
        client_security_group=ec2.SecurityGroup.from_security_group_id(stack, "Nodes", "sg-nodes"),
    )

    assert lustre.mount.mount_name == "abcdefgh"
    assert stack.resolve(lustre.mount.dns_name)["Fn::Join"][1][0] == "fs-0123456789abcdef0.fsx.us-east-1."
    kinds = ("AWS::FSx::FileSystem", "AWS::EC2::SecurityGroupIngress", "AWS::EC2::SecurityGroupEgress")
    assert [len(resources(kind)) for kind in kinds] == [0, 4, 4]


def test_fewer_metadata_operations_than_fsx_provides_by_itself_are_refused(make: Any) -> None:
    with pytest.raises(PropertyError) as refused:
        make(storage=LustreStorage.persistent_2(capacity_gib=96000, metadata_iops=1500))

    assert str(refused.value) == (
        "Demo/Lustre: metadata_iops must be at least 48000 per second with 96000 GiB: FSx takes no fewer than it "
        "provides by itself, got 1500; use 48000, or leave it out"
    )


def test_a_training_key_lets_those_who_launch_nodes_use_it(stack: cdk.Stack, properties: Properties) -> None:
    TrainingKey(stack, "Key")

    (key,) = properties("AWS::KMS::Key")
    statements = {one["Sid"]: one for one in key["KeyPolicy"]["Statement"] if "Sid" in one}
    roles = str(statements["GrantForNodes"]["Condition"]["ArnEquals"]["aws:PrincipalArn"])
    assert "AWSServiceRoleForAutoScaling" in roles
    assert "AWSServiceRoleForEC2Spot" in roles
    assert statements["GrantForNodes"]["Condition"]["Bool"] == {"kms:GrantIsForAWSResource": "true"}
    assert "kms:GenerateDataKey*" in statements["UseForNodes"]["Action"]
    assert key["EnableKeyRotation"] is True


def test_the_roles_of_linked_file_systems_may_use_a_key_for_s3_of_the_region_alone(
    stack: cdk.Stack, properties: Properties
) -> None:
    TrainingKey(stack, "Key")

    (key,) = properties("AWS::KMS::Key")
    (linked,) = (one for one in key["KeyPolicy"]["Statement"] if one.get("Sid") == "LinkedBuckets")
    assert linked["Condition"]["StringEquals"] == {
        "kms:CallerAccount": stack.account,
        "kms:ViaService": {"Fn::Join": ["", [f"s3.{stack.region}.", {"Ref": "AWS::URLSuffix"}]]},
    }
    assert list(linked["Condition"]) == ["ArnLike", "StringEquals"]


def test_a_key_names_no_role_as_a_principal_that_a_new_account_does_not_have(
    stack: cdk.Stack, properties: Properties
) -> None:
    TrainingKey(stack, "Key")

    (key,) = properties("AWS::KMS::Key")
    assert "aws-service-role" not in str([one["Principal"] for one in key["KeyPolicy"]["Statement"]])


def test_the_policy_of_an_imported_key_is_its_owners(stack: cdk.Stack) -> None:
    arn = "arn:aws:kms:us-east-1:123456789012:key/0f8e7d6c-0000-4000-8000-000000000000"

    assert not grant_service_roles(kms.Key.from_key_arn(stack, "Key", arn))


def test_the_page_about_keys_that_exist_has_the_statements_that_a_training_key_gets(
    stack: cdk.Stack, properties: Properties
) -> None:
    TrainingKey(stack, "Key")
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "use-existing-resources.md").read_text(encoding="utf-8")
    (told,) = (block for block in re.findall(r"```json\n(.*?)```", page, flags=re.DOTALL) if "UseForNodes" in block)

    (key,) = properties("AWS::KMS::Key")
    made = [one for one in key["KeyPolicy"]["Statement"] if one.get("Sid") in ("UseForNodes", "GrantForNodes")]
    assert json.loads(told) == [_with_partition(one) for one in made]


def _with_partition(value: Any) -> Any:
    """A value of a template as it is in the partition `aws`."""
    if isinstance(value, dict) and "Fn::Join" in value:
        return "".join("aws" if part == {"Ref": "AWS::Partition"} else part for part in value["Fn::Join"][1])
    if isinstance(value, dict):
        return {key: _with_partition(inner) for key, inner in value.items()}
    return [_with_partition(inner) for inner in value] if isinstance(value, list) else value
