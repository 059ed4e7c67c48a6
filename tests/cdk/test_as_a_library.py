"""The constructs in somebody else's app: stages, pipelines, boundaries, imports, several fleets, tokens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import pipelines
from aws_cdk.assertions import Template
from constructs import Construct

from trainfabric_cdk import (
    Capacity,
    CheckpointBucket,
    DataBucket,
    EfaClusterPlacementGroup,
    EfaSecurityGroup,
    LustreLinkedToS3,
    LustreMount,
    PropertyError,
    SpotTrainingFleet,
    TrainingVpc,
)

ENV = cdk.Environment(account="123456789012", region="us-east-1")
MOUNT = LustreMount(dns_name="fs-1.fsx.us-east-1.amazonaws.com", mount_name="abcdefgh")


def fleet(stack: cdk.Stack, id: str = "Fleet", **given: Any) -> SpotTrainingFleet:
    """A fleet in a network that exists; `given` says otherwise."""
    vpc = ec2.Vpc.from_vpc_attributes(stack, f"{id}Vpc", vpc_id="vpc-12345678", availability_zones=["us-east-1a"])
    subnet = ec2.Subnet.from_subnet_attributes(
        stack, f"{id}Subnet", subnet_id="subnet-12345678", availability_zone="us-east-1a", route_table_id="rtb-12345678"
    )
    usual = {
        "environment": "demo",
        "vpc": vpc,
        "subnet": subnet,
        "security_group": ec2.SecurityGroup.from_security_group_id(stack, f"{id}Group", "sg-12345678"),
        "placement_group": EfaClusterPlacementGroup(stack, f"{id}Placement"),
        "instance_type": "p5.48xlarge",
        "nodes": 2,
        "data_bucket": s3.Bucket.from_bucket_name(stack, f"{id}Data", "demo-data"),
        "checkpoint_bucket": s3.Bucket.from_bucket_name(stack, f"{id}Checkpoints", "demo-checkpoints"),
        "lustre": MOUNT,
    }
    return SpotTrainingFleet(stack, id, **{**usual, **given})


def whole(scope: Construct, zone: str = "us-east-1a") -> list[cdk.Stack]:
    """Network, storage and nodes in three stacks."""
    network = cdk.Stack(scope, "Network", env=ENV)
    vpc = TrainingVpc(network, "Vpc", availability_zone=zone)
    nodes = EfaSecurityGroup(network, "Nodes", vpc=vpc.vpc)
    storage = cdk.Stack(scope, "Storage", env=ENV)
    data, checkpoints = DataBucket(storage, "Data"), CheckpointBucket(storage, "Checkpoints")
    place: dict[str, Any] = {"vpc": vpc.vpc, "subnet": vpc.private_subnet}
    lustre = LustreLinkedToS3(storage, "Lustre", **place, client_security_group=nodes, bucket=data)
    compute = cdk.Stack(scope, "Compute", env=ENV)
    fleet(
        compute,
        **place,
        security_group=nodes,
        data_bucket=data,
        checkpoint_bucket=checkpoints,
        lustre=lustre.mount,
    )
    return [network, storage, compute]


def an_app() -> cdk.App:
    return cdk.App(analytics_reporting=False)


def test_network_storage_and_nodes_may_be_stacks_of_their_own() -> None:
    app = an_app()
    network, storage, compute = whole(app)

    app.synth()

    assert {stack.stack_name for stack in compute.dependencies} == {"Network", "Storage"}
    assert {stack.stack_name for stack in storage.dependencies} == {"Network"}
    assert network.dependencies == []
    imports = json.dumps(Template.from_stack(compute).to_json()).count("Fn::ImportValue")
    assert imports > 0


def test_an_environment_may_be_a_stage_of_a_pipeline(tmp_path: Path) -> None:
    app = cdk.App(analytics_reporting=False, outdir=str(tmp_path))
    stack = cdk.Stack(app, "Delivery", env=ENV)
    source = pipelines.CodePipelineSource.connection(
        "team/training", "main", connection_arn="arn:aws:codestar-connections:us-east-1:123456789012:connection/1"
    )
    delivery = pipelines.CodePipeline(
        stack, "Pipeline", synth=pipelines.ShellStep("Synth", input=source, commands=["npx cdk synth"])
    )
    stages = {name: cdk.Stage(app, name, env=ENV) for name in ("Staging", "Production")}
    for stage in stages.values():
        whole(stage)
        delivery.add_stage(stage)

    app.synth()

    for name in stages:
        templates = sorted(path.name for path in (tmp_path / f"assembly-{name}").glob("*.template.json"))
        assert [template.partition(name)[2][:7] for template in templates] == ["Compute", "Network", "Storage"]
    (pipeline,) = Template.from_stack(stack).find_resources("AWS::CodePipeline::Pipeline").values()
    assert [one["Name"] for one in pipeline["Properties"]["Stages"]][-2:] == ["Staging", "Production"]


def test_a_boundary_of_the_app_reaches_every_role() -> None:
    app = an_app()
    stacks = whole(app)
    boundary = iam.ManagedPolicy.from_managed_policy_name(stacks[0], "Boundary", "developer-boundary")
    iam.PermissionsBoundary.of(app).apply(boundary)

    roles = [one for stack in stacks for one in Template.from_stack(stack).find_resources("AWS::IAM::Role").values()]

    assert len(roles) >= 2
    assert all("developer-boundary" in json.dumps(role["Properties"]["PermissionsBoundary"]) for role in roles)


def test_fleets_of_several_environments_stand_in_one_stack() -> None:
    stack = cdk.Stack(an_app(), "Fleets", env=ENV)
    fleet(stack, "Small", environment="small", nodes=1)
    fleet(stack, "Large", environment="large", workers=Capacity.on_demand())

    groups = Template.from_stack(stack).find_resources("AWS::AutoScaling::AutoScalingGroup").values()

    assert sorted(group["Properties"]["AutoScalingGroupName"] for group in groups) == [
        "trainfabric-large-coordinator",
        "trainfabric-large-worker",
        "trainfabric-small-coordinator",
    ]


def test_two_fleets_of_one_environment_are_refused_because_their_groups_have_one_name() -> None:
    app = an_app()
    fleet(cdk.Stack(app, "First", env=ENV))

    with pytest.raises(PropertyError) as refused:
        fleet(cdk.Stack(app, "Second", env=ENV))

    assert str(refused.value) == (
        "Second/Fleet: environment must be of one fleet in a region, got demo, which First/Fleet has; "
        "name it otherwise: Auto Scaling groups, parameters and metrics would share their names"
    )


def test_the_same_environment_in_two_regions_or_stages_is_two() -> None:
    app = an_app()
    fleet(cdk.Stack(app, "First", env=ENV))
    fleet(cdk.Stack(app, "Second", env=cdk.Environment(account="123456789012", region="us-west-2")))
    fleet(cdk.Stack(cdk.Stage(app, "Staging", env=ENV), "First"))

    assert len(app.synth().stacks) == 2


def test_nodes_may_use_the_imported_key_of_an_imported_bucket_and_nothing_else_of_it() -> None:
    stack = cdk.Stack(an_app(), "Imported", env=ENV)
    key = kms.Key.from_key_arn(stack, "Key", "arn:aws:kms:us-east-1:123456789012:key/0f8e7d6c")
    data = s3.Bucket.from_bucket_attributes(stack, "Data", bucket_name="ours", encryption_key=key)
    fleet(stack, data_bucket=data)

    (policy,) = Template.from_stack(stack).find_resources("AWS::IAM::Policy").values()
    statements = policy["Properties"]["PolicyDocument"]["Statement"]
    ours = [one for one in statements if "key/0f8e7d6c" in json.dumps(one["Resource"])]
    assert [one["Action"] for one in ours] == ["kms:Decrypt"]


def test_a_reservation_and_its_group_may_be_made_in_the_same_app() -> None:
    stack = cdk.Stack(an_app(), "Reserved", env=ENV)
    token = cdk.CfnParameter(stack, "Token").value_as_string
    workers = Capacity.reservation(token, placement_group_name=token)

    fleet(stack, workers=workers, placement_group=EfaClusterPlacementGroup(stack, "Place", capacity=workers))

    for one in Template.from_stack(stack).find_resources("AWS::EC2::LaunchTemplate").values():
        data = one["Properties"]["LaunchTemplateData"]
        assert data["Placement"] == {"GroupName": {"Ref": "Token"}}
        target = data["CapacityReservationSpecification"]["CapacityReservationTarget"]
        assert target == {"CapacityReservationId": {"Ref": "Token"}}


def test_two_fleets_of_one_name_in_stacks_that_name_no_region_are_refused() -> None:
    app = an_app()
    fleet(cdk.Stack(app, "U"))

    with pytest.raises(PropertyError) as refused:
        fleet(cdk.Stack(app, "W"))

    assert str(refused.value) == (
        "W/Fleet: environment must be of one fleet in a region, got demo, which U/Fleet has; name it otherwise: Auto "
        "Scaling groups, parameters and metrics would share their names"
    )
