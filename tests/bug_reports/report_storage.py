"""Reports about FSx for Lustre."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Annotations, Match, Template

from tests.bug_reports.conftest import Leave
from tests.bug_reports.scene import Scene, found_in_case
from trainfabric_cdk import PropertyError
from trainfabric_cdk.replacements import DEPLOYED_TEMPLATES, warn_of_replacements
from trainfabric_cdk.storage import LustreLink, LustreStorage
from trainfabric_plan.permissions.storage import STORAGE

reported = pytest.mark.reported


@reported(
    "aws/aws-parallelcluster/issues/6181",
    "aws/aws-parallelcluster/pull/6342",
    "aws/aws-parallelcluster/pull/1198",
    "bottlerocket-os/bottlerocket/issues/3459",
    "aws-solutions-library-samples/aws-batch-arch-for-protein-folding/issues/11",
    met="“The security groups do not permit Lustre LNET network traffic on port 988”: rules came later",
    does="The file system waits for its rules; one that does not is found by `trainfabric lint`:",
)
def test_the_file_system_waits_for_its_rules(evidence: Leave, tmp_path: Path) -> None:
    scene = Scene()

    scene.lustre()

    (file_system,) = scene.of_type("AWS::FSx::FileSystem").values()
    rules = {
        name
        for kind in ("AWS::EC2::SecurityGroupIngress", "AWS::EC2::SecurityGroupEgress")
        for name, one in scene.of_type(kind).items()
        if one["Properties"].get("FromPort") in (988, 1018)
    }
    assert len(rules) == 12
    assert rules <= set(file_system["DependsOn"])
    evidence(f"DependsOn: {len(rules)} rules of ports 988 and 1018-1023")
    evidence(found_in_case("lustre-before-its-rules", tmp_path))


@reported(
    "aws-samples/aws-eda-slurm-cluster/issues/252",
    "aws/aws-parallelcluster/issues/6353",
    met="Lustre does not mount: rules of its ports are missing in one direction",
    does="Ports 988 and 1018-1023, both ways, between nodes and servers and among the servers:",
)
def test_lustre_gets_through_in_both_directions(evidence: Leave) -> None:
    scene = Scene()

    scene.lustre()

    ports = {
        (kind.rpartition("Group")[2], one["FromPort"], one["ToPort"])
        for kind in ("AWS::EC2::SecurityGroupIngress", "AWS::EC2::SecurityGroupEgress")
        for one in scene.properties(kind)
        if one["IpProtocol"] == "tcp"
    }
    assert ports == {(way, *ends) for way in ("Ingress", "Egress") for ends in ((988, 988), (1018, 1023))}
    evidence(sorted(map(list, ports)))


@reported(
    "aws/aws-parallelcluster/issues/4651",
    met="A changed subnet replaces the managed file system, and its data is gone",
    does="Kept by default, and warned of at synth, against the template that is deployed:",
)
def test_a_change_that_replaces_the_file_system_is_warned_of(evidence: Leave, tmp_path: Path) -> None:
    before = Scene()
    before.lustre()
    (tmp_path / "Demo.template.json").write_text(json.dumps(Template.from_stack(before.stack).to_json()))
    after = Scene(**{DEPLOYED_TEMPLATES: str(tmp_path)})
    after.lustre(subnet=after.network.public_subnet)
    warn_of_replacements(after.stack)

    warnings = Annotations.from_stack(after.stack).find_warning("*", Match.any_value())

    (file_system,) = after.of_type("AWS::FSx::FileSystem").values()
    assert (file_system["DeletionPolicy"], file_system["UpdateReplacePolicy"]) == ("Retain", "Retain")
    told = [str(one.entry.data) for one in warnings if "replacesStatefulResource" in str(one.entry.data)]
    evidence({name: file_system[name] for name in ("DeletionPolicy", "UpdateReplacePolicy")})
    evidence(told[0])


@reported(
    "aws/aws-cdk/issues/34649",
    "aws/aws-cdk/issues/22754",
    "aws/aws-cdk/pull/38141",
    "aws/aws-parallelcluster/pull/5693",
    met="ImportPath and data repository associations exclude each other, and the CDK offers the former alone",
    does="Associations, never ImportPath; both together are found by `trainfabric lint`:",
)
def test_buckets_are_linked_by_associations_alone(evidence: Leave, tmp_path: Path) -> None:
    scene = Scene()

    scene.lustre()

    (file_system,) = scene.properties("AWS::FSx::FileSystem")
    (link,) = scene.properties("AWS::FSx::DataRepositoryAssociation")
    assert {"ImportPath", "ExportPath", "AutoImportPolicy"} & file_system["LustreConfiguration"].keys() == set()
    evidence({name: link[name] for name in ("FileSystemPath", "DataRepositoryPath")})
    evidence(found_in_case("lustre-import-path-and-association", tmp_path))


@reported(
    "hashicorp/terraform-provider-aws/issues/22656",
    met="PERSISTENT_2 with an import path: the API refuses it after minutes",
    does="Not offered, and found by `trainfabric lint`:",
)
def test_an_import_path_of_persistent_2_is_found(evidence: Leave, tmp_path: Path) -> None:
    evidence(found_in_case("lustre-import-path", tmp_path))


@reported(
    "aws/aws-parallelcluster/pull/6649",
    "hashicorp/terraform-provider-aws/issues/24678",
    met="Two associations at once fail or time out",
    does="Made one after the other:",
)
def test_several_links_are_made_one_after_the_other(evidence: Leave) -> None:
    scene = Scene()

    scene.lustre(links=[LustreLink(path=f"/{name}", prefix=f"{name}/") for name in ("a", "b", "c")])

    links = scene.of_type("AWS::FSx::DataRepositoryAssociation")
    waits = {name: [other for other in links if other in one.get("DependsOn", [])] for name, one in links.items()}
    assert sorted(map(len, waits.values())) == [0, 1, 1]
    evidence({name: after for name, after in waits.items() if after})


@reported(
    "aws/aws-parallelcluster/issues/7616",
    met="Metadata performance can be chosen when a file system is made, and only then, but there was no key for it",
    does="A property, checked against what FSx takes:",
)
def test_metadata_performance_is_a_property(evidence: Leave) -> None:
    scene = Scene()

    scene.lustre(storage=LustreStorage.persistent_2(capacity_gib=2400, metadata_iops=12000))

    (file_system,) = scene.properties("AWS::FSx::FileSystem")
    metadata = file_system["LustreConfiguration"]["MetadataConfiguration"]
    assert metadata == {"Mode": "USER_PROVISIONED", "Iops": 12000}
    evidence({"MetadataConfiguration": metadata})


@reported(
    "aws-samples/amazon-eks-machine-learning-with-terraform-and-kubeflow/issues/91",
    "aws/aws-parallelcluster/pull/4199",
    met="“Amazon FSx is unable to validate access to the S3 bucket”: in another region, or not to be read",
    does="A bucket of another region is refused; `trainfabric policy` has what CloudFormation needs for a link:",
)
def test_a_bucket_that_fsx_cannot_import_from_is_refused(evidence: Leave) -> None:
    scene = Scene()
    there = s3.Bucket.from_bucket_attributes(scene.stack, "There", bucket_name="there", region="us-west-2")

    with pytest.raises(PropertyError) as refused:
        scene.lustre(bucket=there)

    evidence(str(refused.value))
    link = STORAGE["AWS::FSx::DataRepositoryAssociation"]
    needed = [actions for actions in link.create if actions.startswith(("s3:", "iam:"))]
    assert any("PutBucketPolicy" in actions for actions in needed)
    assert any("CreateServiceLinkedRole" in actions for actions in needed)
    evidence(needed)
