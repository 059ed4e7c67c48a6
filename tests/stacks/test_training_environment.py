from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Template

from trainfabric_cdk import PropertyError
from trainfabric_plan.contract import Role, environment_parameter, plan_parameter
from trainfabric_plan.deployed import DeployedEnvironment
from trainfabric_plan.environment import Environment, validate_environment
from trainfabric_plan.errors import InvalidInput
from trainfabric_plan.planning import Plan, make_plan
from trainfabric_stacks import TrainingEnvironment, training_app
from trainfabric_stacks.fleet_stack import cost_description

MakeEnvironment = Callable[..., Environment]

DESCRIPTION: dict[str, Any] = {
    "name": "demo",
    "region": "us-east-1",
    "availability_zone": "us-east-1a",
    "fleet": {"instance_type": "p5.48xlarge", "nodes": 4},
    "training": {"recipe": "gpt_1b3_4x_p5"},
}


def deployed(environment: Environment) -> TrainingEnvironment:
    return TrainingEnvironment(training_app(), environment)


@pytest.fixture
def make_environment() -> MakeEnvironment:
    """The environment `demo` with sections as a test says; values of a section replace those of the usual one."""

    def make(**given: Any) -> Environment:
        sections = {
            name: {**DESCRIPTION.get(name, {}), **value} if isinstance(value, dict) else value
            for name, value in given.items()
        }
        return validate_environment({**DESCRIPTION, **sections}, "demo.yaml")

    return make


@pytest.fixture(scope="module")
def demo() -> TrainingEnvironment:
    """The usual environment, made once for the tests that only look at it."""
    return deployed(validate_environment(DESCRIPTION, "demo.yaml"))


def found(stack: cdk.Stack | None, kind: str) -> list[dict[str, Any]]:
    """Properties of the resources of a type in a stack."""
    assert stack is not None
    return [r.get("Properties", {}) for r in Template.from_stack(stack).find_resources(kind).values()]


def manifest(environment: TrainingEnvironment) -> dict[str, Any]:
    app = cdk.App.of(environment.network)
    assert app is not None
    text: dict[str, Any] = json.loads(Path(app.synth().directory, "manifest.json").read_text())
    return text


def text_of(value: Any) -> str:
    """A value of a template as text, with a name in place of every reference."""
    if isinstance(value, str):
        return value
    return "".join(part if isinstance(part, str) else "some-name" for part in value["Fn::Join"][1])


def test_a_fleet_has_four_stacks_named_for_the_environment(demo: TrainingEnvironment) -> None:
    assert [stack.stack_name for stack in demo.stacks] == [
        "demo-Network",
        "demo-Storage",
        "demo-Fleet",
        "demo-Observability",
    ]


def test_stacks_are_those_of_the_app_so_that_deploy_all_takes_them(demo: TrainingEnvironment) -> None:
    stacks = [a for a in manifest(demo)["artifacts"].values() if a["type"] == "aws:cloudformation:stack"]
    assert len(stacks) == 4
    assert [stack.node.scope for stack in demo.stacks] == [cdk.App.of(demo.network)] * 4


def test_a_cluster_stands_in_place_of_the_fleet(make_environment: MakeEnvironment) -> None:
    environment = deployed(make_environment(orchestrator="parallelcluster"))

    assert [stack.stack_name for stack in environment.stacks] == [
        "demo-Network",
        "demo-Storage",
        "demo-Cluster",
        "demo-Observability",
    ]
    assert environment.fleet is None


@pytest.mark.parametrize("orchestrator", ["fleet", "parallelcluster"])
@pytest.mark.parametrize("account", ["123456789012", None])
def test_synthesis_needs_no_credentials_and_looks_nothing_up(
    make_environment: MakeEnvironment, account: str | None, orchestrator: str
) -> None:
    environment = deployed(make_environment(account=account, orchestrator=orchestrator))

    assert "missing" not in manifest(environment)


def test_no_stack_needs_a_lambda_function(demo: TrainingEnvironment) -> None:
    assert [found(stack, "AWS::Lambda::Function") for stack in demo.stacks] == [[], [], [], []]


def test_templates_have_neither_the_bootstrap_rule_nor_analytics(demo: TrainingEnvironment) -> None:
    for stack in demo.stacks:
        template = Template.from_stack(stack).to_json()
        assert set(template) <= {"Description", "Resources", "Outputs"}
        assert "AWS::CDK::Metadata" not in {r["Type"] for r in template["Resources"].values()}


def test_the_deployed_environment_is_described_in_its_parameter(demo: TrainingEnvironment) -> None:
    values = {p["Name"]: p["Value"] for p in found(demo.fleet, "AWS::SSM::Parameter")}
    described = DeployedEnvironment.model_validate_json(text_of(values[environment_parameter("demo")]))
    assert (described.name, described.region, described.nodes, described.ranks_per_node) == ("demo", "us-east-1", 4, 8)
    assert [(group.role, group.nodes, group.spares) for group in described.groups] == [
        (Role.COORDINATOR, 1, 0),
        (Role.WORKER, 3, 0),
    ]
    assert {group.launch_template for group in described.groups} == {"some-name"}
    assert described.coordinator_trains


def test_a_job_learns_from_it_which_launch_templates_and_which_code_it_pins(demo: TrainingEnvironment) -> None:
    assert demo.fleet is not None
    (value,) = (p["Value"] for p in found(demo.fleet, "AWS::SSM::Parameter") if "asset_key" in str(p["Value"]))
    templates = Template.from_stack(demo.fleet).find_resources("AWS::EC2::LaunchTemplate")

    assert [
        part["Ref"] for part in value["Fn::Join"][1] if isinstance(part, dict) and part.get("Ref") in templates
    ] == list(templates)
    described = DeployedEnvironment.model_validate_json(text_of(value))
    for template in templates.values():
        script = str(template["Properties"]["LaunchTemplateData"]["UserData"])
        assert f"TRAINFABRIC_ASSET_KEY={described.asset_key}" in script
    assert described.asset_key.endswith(".zip")


def test_spares_widen_the_worker_group_and_are_told_to_jobs(make_environment: MakeEnvironment) -> None:
    environment = deployed(make_environment(fleet={"spares": 2}))

    assert [g["MaxSize"] for g in found(environment.fleet, "AWS::AutoScaling::AutoScalingGroup")] == ["1", "5"]
    values = {p["Name"]: p["Value"] for p in found(environment.fleet, "AWS::SSM::Parameter")}
    described = DeployedEnvironment.model_validate_json(text_of(values[environment_parameter("demo")]))
    assert (described.nodes, described.spares) == (4, 2)


@pytest.mark.parametrize(("nodes", "tier", "limit"), [(15, None, 4096), (32, "Advanced", 8192)])
def test_however_many_groups_there_are_their_description_fits_its_parameter(
    make_environment: MakeEnvironment, nodes: int, tier: str | None, limit: int
) -> None:
    fleet = {"nodes": nodes, "max_nodes_per_group": 1, "coordinator": "control"}
    made = deployed(make_environment(name="a" * 30, fleet=fleet))

    (environment,) = (one for one in found(made.fleet, "AWS::SSM::Parameter") if one["Name"].endswith("/environment"))
    assert environment.get("Tier") == tier
    assert sum(map(longest, environment["Value"]["Fn::Join"][1])) <= limit


def longest(part: str | dict[str, Any]) -> int:
    """Bytes of a text, or of what a reference may become: the id of a launch template, or a name of 63 letters."""
    if isinstance(part, str):
        return len(part)
    return len("lt-0123456789abcdef0") if "Template" in str(part) else 63


def test_a_fleet_of_one_node_says_that_it_has_no_workers(make_environment: MakeEnvironment) -> None:
    environment = deployed(make_environment(fleet={"nodes": 1}))

    values = {p["Name"]: p["Value"] for p in found(environment.fleet, "AWS::SSM::Parameter")}
    described = DeployedEnvironment.model_validate_json(text_of(values[environment_parameter("demo")]))
    assert [group.role for group in described.groups] == [Role.COORDINATOR]


def test_the_plan_of_the_environment_is_its_parameter(
    demo: TrainingEnvironment, make_environment: MakeEnvironment
) -> None:
    values = {p["Name"]: p["Value"] for p in found(demo.fleet, "AWS::SSM::Parameter")}

    assert Plan.model_validate_json(values[plan_parameter("demo")]) == make_plan(make_environment())


@pytest.mark.parametrize(
    ("region", "cost"),
    [("us-east-1", "134.58"), ("us-west-2", "144.49"), ("eu-west-1", "at least 55.32 (not every price is confirmed)")],
)
def test_the_cost_per_hour_is_an_output_that_says_when_it_is_a_lower_bound(
    make_environment: MakeEnvironment, region: str, cost: str
) -> None:
    environment = deployed(make_environment(region=region, availability_zone=f"{region}a"))

    assert environment.fleet is not None
    assert Template.from_stack(environment.fleet).to_json()["Outputs"]["CostPerHour"]["Value"] == cost


@pytest.mark.parametrize(
    ("region", "prices"),
    [
        ("us-east-1", "list prices of us-east-1"),
        ("eu-west-1", "list prices of us-east-1, which eu-west-1 may differ from"),
    ],
)
def test_the_cost_per_hour_says_whose_prices_it_adds_up_and_what_it_leaves_out(region: str, prices: str) -> None:
    assert cost_description(region) == (
        f"US dollars with every node up, at {prices}; "
        "not included: EBS root volumes, data transfer, NAT data processing, S3 requests and storage"
    )


def test_no_stack_imports_from_the_nodes_so_that_workers_can_go(demo: TrainingEnvironment) -> None:
    exports = Template.from_stack(demo.stacks[2]).to_json()["Outputs"]

    assert [name for name in exports if name.startswith("ExportsOutput")] == []
    assert "demo-Fleet:" not in json.dumps(Template.from_stack(demo.observability).to_json())


def test_the_dashboard_shows_the_groups_by_their_names(demo: TrainingEnvironment) -> None:
    (dashboard,) = found(demo.observability, "AWS::CloudWatch::Dashboard")
    names = [group["AutoScalingGroupName"] for group in found(demo.fleet, "AWS::AutoScaling::AutoScalingGroup")]

    assert names == ["trainfabric-demo-coordinator", "trainfabric-demo-worker"]
    assert [name in text_of(dashboard["DashboardBody"]) for name in names] == [True, True]


def test_a_key_of_an_existing_bucket_is_opened_to_the_nodes(make_environment: MakeEnvironment) -> None:
    key = "arn:aws:kms:us-east-1:123456789012:key/0f8e7d6c-0000-4000-8000-000000000000"
    environment = deployed(make_environment(storage={"checkpoint_bucket": {"name": "our-state", "kms_key_arn": key}}))

    statements = [s for p in found(environment.fleet, "AWS::IAM::Policy") for s in p["PolicyDocument"]["Statement"]]
    assert [s["Action"] for s in statements if s["Resource"] == key] == [["kms:Decrypt", "kms:GenerateDataKey"]]


def test_whoever_works_with_it_finds_names_in_the_outputs(demo: TrainingEnvironment) -> None:
    outputs = {
        name
        for stack in demo.stacks
        for name in Template.from_stack(stack).to_json()["Outputs"]
        if not name.startswith("ExportsOutput")
    }
    assert outputs == {
        "VpcId",
        "NodeSubnetId",
        "DataBucketName",
        "CheckpointBucketName",
        "FileSystemId",
        "CoordinatorGroup",
        "CoordinatorLaunchTemplate",
        "WorkerGroup",
        "WorkerLaunchTemplate",
        "InterruptionTopic",
        "CostPerHour",
        "DashboardName",
    }


def test_tags_of_the_environment_are_on_its_resources(make_environment: MakeEnvironment) -> None:
    environment = deployed(make_environment(tags={"team": "language-models"}))

    expected = {"team": "language-models", "trainfabric:environment": "demo"}
    for stack, kind in (
        (environment.network, "AWS::EC2::VPC"),
        (environment.storage, "AWS::S3::Bucket"),
        (environment.storage, "AWS::FSx::FileSystem"),
        (environment.fleet, "AWS::EC2::PlacementGroup"),
        (environment.fleet, "AWS::AutoScaling::AutoScalingGroup"),
    ):
        for resource in found(stack, kind):
            assert expected.items() <= {tag["Key"]: tag["Value"] for tag in resource["Tags"]}.items(), kind


def test_an_existing_network_is_used_and_its_route_table_gets_an_s3_endpoint(make_environment: MakeEnvironment) -> None:
    environment = deployed(
        make_environment(
            network={"vpc_id": "vpc-12345678", "subnet_id": "subnet-12345678", "route_table_id": "rtb-12345678"}
        )
    )

    assert found(environment.network, "AWS::EC2::VPC") == []
    (endpoint,) = found(environment.network, "AWS::EC2::VPCEndpoint")
    assert (endpoint["VpcId"], endpoint["RouteTableIds"]) == ("vpc-12345678", ["rtb-12345678"])
    (system,) = found(environment.storage, "AWS::FSx::FileSystem")
    assert system["SubnetIds"] == ["subnet-12345678"]
    for group in found(environment.fleet, "AWS::AutoScaling::AutoScalingGroup"):
        assert group["VPCZoneIdentifier"] == ["subnet-12345678"]


def test_an_existing_network_without_a_route_table_is_left_as_it_is(make_environment: MakeEnvironment) -> None:
    environment = deployed(make_environment(network={"vpc_id": "vpc-12345678", "subnet_id": "subnet-12345678"}))

    assert found(environment.network, "AWS::EC2::VPCEndpoint") == []


def test_existing_buckets_are_used_and_none_is_made(make_environment: MakeEnvironment) -> None:
    environment = deployed(
        make_environment(storage={"data_bucket": {"name": "our-data"}, "checkpoint_bucket": {"name": "our-state"}})
    )

    assert found(environment.storage, "AWS::S3::Bucket") == []
    (link,) = found(environment.storage, "AWS::FSx::DataRepositoryAssociation")
    assert link["DataRepositoryPath"] == "s3://our-data/data/"


@pytest.mark.parametrize(("key", "policy"), [(None, "Retain"), ("other", "Retain"), ("demo", "Delete")])
def test_the_file_system_goes_only_if_the_context_names_the_environment_as_well(
    make_environment: MakeEnvironment, key: str | None, policy: str
) -> None:
    app = training_app()
    if key:
        app.node.set_context("trainfabric:deleteContents", key)

    environment = TrainingEnvironment(app, make_environment(storage={"retain": False}))

    (system,) = Template.from_stack(environment.storage).find_resources("AWS::FSx::FileSystem").values()
    assert system["DeletionPolicy"] == policy


def test_settings_of_the_fleet_reach_its_launch_templates(make_environment: MakeEnvironment) -> None:
    environment = deployed(
        make_environment(fleet={"ami_id": "ami-0123456789abcdef0", "root_device": "/dev/xvda", "max_spot_price": 30.0})
    )

    data = [t["LaunchTemplateData"] for t in found(environment.fleet, "AWS::EC2::LaunchTemplate")]
    assert [d["ImageId"] for d in data] == ["ami-0123456789abcdef0"] * 2
    assert [d["BlockDeviceMappings"][0]["DeviceName"] for d in data] == ["/dev/xvda"] * 2
    assert [d.get("InstanceMarketOptions", {}).get("SpotOptions", {}).get("MaxPrice") for d in data] == [None, "30.0"]


def test_nodes_with_public_addresses_stand_in_the_public_subnet(make_environment: MakeEnvironment) -> None:
    environment = deployed(make_environment(network={"assign_public_ips": True}, fleet={"efa": False, "nodes": 1}))

    (data,) = (t["LaunchTemplateData"] for t in found(environment.fleet, "AWS::EC2::LaunchTemplate"))
    (interface,) = data["NetworkInterfaces"]
    assert interface["AssociatePublicIpAddress"] is True
    (group,) = found(environment.fleet, "AWS::AutoScaling::AutoScalingGroup")
    assert "PublicSubnet" in group["VPCZoneIdentifier"][0]["Fn::ImportValue"]
    assert found(environment.fleet, "AWS::EC2::PlacementGroup") == []


def test_a_recipe_that_fits_no_layout_is_refused_before_anything_is_deployed(
    make_environment: MakeEnvironment,
) -> None:
    wanted = make_environment(fleet={"nodes": 29}, orchestrator="parallelcluster")

    with pytest.raises(InvalidInput) as refused:
        deployed(wanted)

    assert str(refused.value) == (
        "environment demo: training.recipe must be one with a layout that fits 232 ranks of p5.48xlarge, got "
        "gpt_1b3_4x_p5; add nodes, choose a type with more accelerator memory, or give training.layout yourself"
    )


def test_what_the_file_says_of_slurm_reaches_its_stack(make_environment: MakeEnvironment) -> None:
    boundary = "arn:aws:iam::123456789012:policy/boundary"
    of_queues = {"static_nodes": 1, "gpu_health_checks": True, "exclusive_jobs": True}
    given = {**of_queues, "ssh_from": "10.20.0.0/16", "permissions_boundary": boundary}

    slurm = {"orchestrator": "parallelcluster", "parallelcluster": given, "storage": {"shared_home": "efs"}}
    made = deployed(make_environment(**slurm))

    assert made.cluster and made.storage.home
    assert made.cluster.configuration.home_id == made.storage.home.file_system_id
    configuration = made.cluster.configuration
    assert of_queues.items() <= vars(configuration.queues[0]).items()
    assert (configuration.ssh_from, configuration.permissions_boundary) == ("10.20.0.0/16", boundary)


def test_an_old_release_of_parallelcluster_is_refused_at_its_stack(make_environment: MakeEnvironment) -> None:
    wanted = make_environment(orchestrator="parallelcluster", parallelcluster={"version": "3.13.2"})

    with pytest.raises(PropertyError) as refused:
        deployed(wanted)

    assert str(refused.value) == (
        "demo-Cluster: version must be a release 3.x.y from 3.14.1 on: Lambda refuses the Python of earlier ones, "
        "got 3.13.2; use 3.16.1"
    )
