from __future__ import annotations

from collections.abc import Callable
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_s3 as s3

from trainfabric_cdk import CheckpointBucket, DataBucket, LustreLinkedToS3, PropertyError

Properties = Callable[[str], list[dict[str, Any]]]
Resources = Callable[[str], dict[str, Any]]


@pytest.fixture
def make_lustre(stack: cdk.Stack) -> Callable[..., LustreLinkedToS3]:
    def make(**given: Any) -> LustreLinkedToS3:
        vpc = ec2.Vpc.from_vpc_attributes(stack, "Vpc", vpc_id="vpc-1", availability_zones=["us-east-1a"])
        return LustreLinkedToS3(
            stack,
            "Lustre",
            vpc=vpc,
            subnet=ec2.Subnet.from_subnet_attributes(stack, "Subnet", subnet_id="subnet-1", route_table_id="rtb-1"),
            client_security_group=ec2.SecurityGroup.from_security_group_id(stack, "Nodes", "sg-nodes"),
            bucket=s3.Bucket.from_bucket_name(stack, "Data", "demo-data"),
            **given,
        )

    return make


@pytest.mark.parametrize("kind", [DataBucket, CheckpointBucket])
def test_buckets_are_encrypted_closed_to_the_public_and_reached_over_tls_only(
    stack: cdk.Stack, properties: Properties, kind: type[DataBucket]
) -> None:
    kind(stack, "Bucket")

    (bucket,), (policy,) = properties("AWS::S3::Bucket"), properties("AWS::S3::BucketPolicy")
    (rule,) = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert rule["ServerSideEncryptionByDefault"] == {"SSEAlgorithm": "AES256"}
    assert all(bucket["PublicAccessBlockConfiguration"].values())
    denied = [s["Condition"] for s in policy["PolicyDocument"]["Statement"] if s["Effect"] == "Deny"]
    assert {"Bool": {"aws:SecureTransport": "false"}} in denied
    assert {"NumericLessThan": {"s3:TlsVersion": 1.2}} in denied


@pytest.mark.parametrize("kind", [DataBucket, CheckpointBucket])
@pytest.mark.parametrize(("retain", "policy"), [(True, "Retain"), (False, "Delete")])
def test_a_bucket_is_kept_unless_told_otherwise_and_its_contents_are_never_deleted(
    stack: cdk.Stack, resources: Resources, kind: type[DataBucket], retain: bool, policy: str
) -> None:
    kind(stack, "Bucket", retain=retain)

    (bucket,) = resources("AWS::S3::Bucket").values()
    assert (bucket["DeletionPolicy"], bucket["UpdateReplacePolicy"]) == (policy, policy)
    (rules,) = resources("AWS::S3::BucketPolicy").values()
    assert rules.get("DeletionPolicy", "Delete") == policy
    assert resources("Custom::S3AutoDeleteObjects") == {}


def test_a_bucket_is_kept_by_default(stack: cdk.Stack, resources: Resources) -> None:
    DataBucket(stack, "Data"), CheckpointBucket(stack, "Checkpoints")

    assert [bucket["DeletionPolicy"] for bucket in resources("AWS::S3::Bucket").values()] == ["Retain", "Retain"]


def test_what_lustre_deletes_in_the_data_bucket_comes_back_for_a_month(
    stack: cdk.Stack, properties: Properties
) -> None:
    DataBucket(stack, "Data")

    (bucket,) = properties("AWS::S3::Bucket")
    assert bucket["VersioningConfiguration"] == {"Status": "Enabled"}
    rules = {rule["Id"]: rule for rule in bucket["LifecycleConfiguration"]["Rules"]}
    assert rules["ExpireOldVersions"]["NoncurrentVersionExpiration"] == {"NoncurrentDays": 30}


def test_retired_checkpoints_are_gone_and_unfinished_uploads_expire(stack: cdk.Stack, properties: Properties) -> None:
    CheckpointBucket(stack, "Checkpoints")

    (bucket,) = properties("AWS::S3::Bucket")
    assert "VersioningConfiguration" not in bucket
    (rule,) = bucket["LifecycleConfiguration"]["Rules"]
    assert rule["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 2}


def test_lustre_is_persistent_2_on_ssd_of_version_2_15_and_compressed(
    make_lustre: Callable[..., LustreLinkedToS3], properties: Properties
) -> None:
    make_lustre(capacity_gib=4800, throughput_mbps_per_tib=250)

    (system,) = properties("AWS::FSx::FileSystem")
    assert (system["FileSystemType"], system["FileSystemTypeVersion"]) == ("LUSTRE", "2.15")
    assert (system["StorageType"], system["StorageCapacity"]) == ("SSD", 4800)
    assert system["SubnetIds"] == ["subnet-1"]
    assert system["LustreConfiguration"] == {
        "DataCompressionType": "LZ4",
        "DeploymentType": "PERSISTENT_2",
        "PerUnitStorageThroughput": 250,
    }


def test_the_data_prefix_of_the_bucket_is_linked_in_both_directions(
    make_lustre: Callable[..., LustreLinkedToS3], properties: Properties, resources: Resources
) -> None:
    make_lustre()

    (system,), (link,) = resources("AWS::FSx::FileSystem"), properties("AWS::FSx::DataRepositoryAssociation")
    events = {"Events": ["NEW", "CHANGED", "DELETED"]}
    assert link == {
        "FileSystemId": {"Ref": system},
        "FileSystemPath": "/data",
        "DataRepositoryPath": "s3://demo-data/data/",
        "BatchImportMetaDataOnCreate": True,
        "S3": {"AutoImportPolicy": events, "AutoExportPolicy": events},
    }


def test_lustre_passes_in_both_directions_at_both_ends(
    make_lustre: Callable[..., LustreLinkedToS3], properties: Properties, resources: Resources
) -> None:
    make_lustre()

    (group,) = resources("AWS::EC2::SecurityGroup")
    servers, clients = str({"Fn::GetAtt": [group, "GroupId"]}), "sg-nodes"
    ways = {
        (str(rule["GroupId"]), str(rule["SourceSecurityGroupId"]), rule["FromPort"], rule["ToPort"])
        for rule in properties("AWS::EC2::SecurityGroupIngress")
    }
    back = {
        (str(rule["DestinationSecurityGroupId"]), str(rule["GroupId"]), rule["FromPort"], rule["ToPort"])
        for rule in properties("AWS::EC2::SecurityGroupEgress")
    }
    assert ways == back
    assert ways == {
        (to, source, *ports)
        for to, source in ((servers, clients), (clients, servers), (servers, servers))
        for ports in ((988, 988), (1018, 1023))
    }
    assert {r["IpProtocol"] for r in properties("AWS::EC2::SecurityGroupIngress")} == {"tcp"}


def test_every_security_rule_exists_before_the_file_system(
    make_lustre: Callable[..., LustreLinkedToS3], resources: Resources
) -> None:
    make_lustre()

    (system,) = resources("AWS::FSx::FileSystem").values()
    rules = {*resources("AWS::EC2::SecurityGroupIngress"), *resources("AWS::EC2::SecurityGroupEgress")}
    assert len(rules) == 12
    assert rules <= set(system["DependsOn"])


def test_every_size_that_fsx_refuses_is_refused_at_once(make_lustre: Callable[..., LustreLinkedToS3]) -> None:
    with pytest.raises(PropertyError) as refused:
        make_lustre(capacity_gib=3000, throughput_mbps_per_tib=200, compression="zstd")

    assert str(refused.value).splitlines() == [
        "Demo/Lustre: capacity_gib must be 1200 or a multiple of 2400 GiB, got 3000; use 4800",
        "Demo/Lustre: throughput_mbps_per_tib must be one of 125, 250, 500, 1000 MB/s per TiB, got 200; use 250",
        "Demo/Lustre: compression must be lz4 or none, got zstd",
    ]


def test_sizes_that_are_no_whole_numbers_are_named(make_lustre: Callable[..., LustreLinkedToS3]) -> None:
    with pytest.raises(PropertyError) as refused:
        make_lustre(capacity_gib="1200", throughput_mbps_per_tib=125.5)

    assert str(refused.value).splitlines() == [
        "Demo/Lustre: capacity_gib must be a whole number, got '1200'",
        "Demo/Lustre: throughput_mbps_per_tib must be a whole number, got 125.5",
    ]


def test_a_size_that_is_settled_at_deploy_time_is_not_judged(
    make_lustre: Callable[..., LustreLinkedToS3], properties: Properties
) -> None:
    make_lustre(capacity_gib=cdk.Token.as_number(cdk.Fn.ref("Size")))

    (system,) = properties("AWS::FSx::FileSystem")
    assert system["StorageCapacity"] == {"Ref": "Size"}


@pytest.mark.parametrize(
    ("retain", "delete_contents", "policy"),
    [(True, False, "Retain"), (True, True, "Retain"), (False, False, "Retain"), (False, True, "Delete")],
)
def test_the_file_system_and_the_rules_that_let_it_through_are_deleted_only_with_both_keys(
    make_lustre: Callable[..., LustreLinkedToS3],
    resources: Resources,
    retain: bool,
    delete_contents: bool,
    policy: str,
) -> None:
    make_lustre(retain=retain, delete_contents=delete_contents)

    kinds = {
        "AWS::FSx::FileSystem": 1,
        "AWS::FSx::DataRepositoryAssociation": 1,
        "AWS::EC2::SecurityGroup": 1,
        "AWS::EC2::SecurityGroupIngress": 6,
        "AWS::EC2::SecurityGroupEgress": 6,
    }
    for kind, count in kinds.items():
        found = [resource["DeletionPolicy"] for resource in resources(kind).values()]
        assert found == [policy] * count, kind


def test_one_key_alone_is_answered_with_a_warning(
    make_lustre: Callable[..., LustreLinkedToS3], warnings: Callable[[], list[str]]
) -> None:
    make_lustre(retain=False)

    assert warnings() == [
        "retain is off, but FSx deletes a file system with its data: it stays until delete_contents is on, too "
        "[ack: trainfabric:fileSystemKept]"
    ]


def test_the_mount_is_what_fsx_says(stack: cdk.Stack, make_lustre: Callable[..., LustreLinkedToS3]) -> None:
    lustre = make_lustre()

    system = stack.resolve(lustre.file_system_id)["Ref"]
    assert stack.resolve(lustre.mount.dns_name) == {"Fn::GetAtt": [system, "DNSName"]}
    assert stack.resolve(lustre.mount.mount_name) == {"Fn::GetAtt": [system, "LustreMountName"]}
