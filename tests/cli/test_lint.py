from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

BAD = """\
Resources:
  Nodes:
    Type: AWS::EC2::LaunchTemplate
    Properties:
      LaunchTemplateData:
        InstanceType: !Ref Type
        MetadataOptions: {HttpTokens: required}
        NetworkInterfaces:
          - {DeviceIndex: 0, InterfaceType: efa, AssociatePublicIpAddress: true}
          - {DeviceIndex: 1, InterfaceType: interface}
Parameters:
  Type: {Type: String}
"""
WARNED = """\
Resources:
  Nodes:
    Type: AWS::EC2::LaunchTemplate
    Properties:
      LaunchTemplateData: {ImageId: ami-0123456789abcdef0}
"""
GOOD = WARNED.replace("{ImageId", "{MetadataOptions: {HttpTokens: required}, ImageId")
PUBLIC = (
    "bad.yaml:9: Nodes.Properties.LaunchTemplateData.NetworkInterfaces[0].AssociatePublicIpAddress must be false for a "
    "node with 2 interfaces: EC2 refuses the launch, got true; use a private subnet with NAT or endpoints, or attach "
    "an Elastic IP after the launch"
)


@pytest.fixture
def files(trainfabric: Any) -> None:
    """Templates in the working directory, which `trainfabric` empties."""
    for name, text in {"bad": BAD, "warned": WARNED, "good": GOOD}.items():
        Path(f"{name}.yaml").write_text(text)


def test_a_clean_template_ends_with_0(trainfabric: Any, files: None) -> None:
    ended = trainfabric("lint", "good.yaml")

    assert (ended.status, ended.err) == (0, "")
    assert ended.out.startswith("0 errors and 0 warnings by ")


def test_an_error_ends_with_1_and_says_where_with_the_line(trainfabric: Any, files: None) -> None:
    ended = trainfabric("lint", "bad.yaml", "--json")

    assert (ended.status, ended.err) == (1, "")
    assert [(one["rule"], one["severity"], one["line"], one["message"]) for one in ended.json] == [
        ("public-address-with-several-interfaces", "error", 9, PUBLIC)
    ]


def test_people_get_a_table_and_a_count(trainfabric: Any, files: None) -> None:
    ended = trainfabric("lint", "bad.yaml")
    text = " ".join(ended.out.split())

    assert ended.status == 1
    assert "public-address-with-several-interfaces" in text
    assert "1 errors and 0 warnings by " in text
    assert "trainfabric lint --explain RULE says why a rule is there" in text


def test_warnings_end_with_0_and_with_1_if_strict(trainfabric: Any, files: None) -> None:
    assert trainfabric("lint", "warned.yaml").status == 0
    assert trainfabric("lint", "warned.yaml", "--strict").status == 1


def test_rules_can_be_chosen_and_left_out(trainfabric: Any, files: None) -> None:
    assert trainfabric("lint", "warned.yaml", "--strict", "--ignore", "metadata-unsaid").status == 0
    assert trainfabric("lint", "bad.yaml", "--select", "metadata-unsaid").status == 0


def test_an_unknown_rule_is_refused_with_the_nearest(trainfabric: Any, files: None) -> None:
    ended = trainfabric("lint", "good.yaml", "--ignore", "metadata-unsayed")

    assert (ended.status, ended.out) == (2, "")
    assert ended.err == (
        "lint: ignore must be the id of a rule, got metadata-unsayed; did you mean metadata-unsaid or "
        "metadata-one-hop?\n"
    )


def test_a_parameter_can_be_given(trainfabric: Any, files: None) -> None:
    ended = trainfabric("lint", "bad.yaml", "--json", "-p", "Type=m7i.large")

    assert [one["rule"] for one in ended.json] == ["efa-type-without-efa", "public-address-with-several-interfaces"]


CONDITIONAL = """\
Parameters:
  UseBlock: {Type: String}
Conditions:
  Block: !Equals [!Ref UseBlock, "true"]
Resources:
  Nodes:
    Type: AWS::EC2::LaunchTemplate
    Properties:
      LaunchTemplateData:
        MetadataOptions: {HttpTokens: required}
        InstanceType: p5.48xlarge
        InstanceMarketOptions: {MarketType: !If [Block, capacity-block, spot]}
        CapacityReservationSpecification:
          CapacityReservationTarget: {CapacityReservationId: cr-0123456789abcdef0}
        Placement: {GroupName: ours}
"""


@pytest.mark.parametrize(("value", "rules"), [("true", ["capacity-block-placement-group"]), ("false", []), (None, [])])
def test_a_parameter_decides_the_conditions_that_ask_for_it(
    trainfabric: Any, value: str | None, rules: list[str]
) -> None:
    Path("conditional.yaml").write_text(CONDITIONAL)
    given = [] if value is None else ["-p", f"UseBlock={value}"]

    ended = trainfabric("lint", "conditional.yaml", "--json", *given)

    assert [one["rule"] for one in ended.json if "placement" in one["rule"]] == rules


def test_a_parameter_of_no_template_is_refused(trainfabric: Any, files: None) -> None:
    ended = trainfabric("lint", "bad.yaml", "-p", "Tpye=m7i.large")

    assert (ended.status, ended.err) == (
        2,
        "lint: parameter must be a parameter of one of the templates, got Tpye; they have Type\n",
    )


def test_parameters_are_given_to_the_templates_of_a_directory(trainfabric: Any) -> None:
    Path("cdk.out").mkdir()
    properties = {"LaunchTemplateData": {"MetadataOptions": {"HttpTokens": {"Ref": "Tokens"}}}}
    body = {
        "Parameters": {"Tokens": {"Type": "String"}},
        "Resources": {"Nodes": {"Type": "AWS::EC2::LaunchTemplate", "Properties": properties}},
    }
    Path("cdk.out/Stack.template.json").write_text(json.dumps(body))

    found = {
        value: len(trainfabric("lint", "cdk.out", "--json", "-p", f"Tokens={value}").json)
        for value in ("optional", "required")
    }

    assert found == {"optional": 1, "required": 0}


@pytest.mark.parametrize(("name", "opened", "closed"), [("deep.json", '{"a":', "}"), ("deep.yaml", "[", "]")])
@pytest.mark.parametrize("levels", [150, 100_000])
def test_a_template_that_nests_too_deeply_is_refused(
    trainfabric: Any, name: str, opened: str, closed: str, levels: int
) -> None:
    inner = opened * levels + "1" + closed * levels
    Path(name).write_text(f'{{"Resources": {{"It": {{"Type": "AWS::EC2::VPC", "Properties": {inner}}}}}}}')

    ended = trainfabric("lint", name)

    assert (ended.status, ended.err) == (2, f"{name}: the template must be nested at most 100 levels deep, got more\n")


def test_a_parameter_without_value_is_refused(trainfabric: Any, files: None) -> None:
    ended = trainfabric("lint", "bad.yaml", "-p", "Type")

    assert (ended.status, ended.err) == (2, "lint: parameter must be NAME=VALUE, got Type\n")


def test_a_rule_is_explained(trainfabric: Any) -> None:
    ended = trainfabric("lint", "--explain", "efa-unused-interfaces")

    assert (ended.status, ended.err) == (0, "")
    assert ended.out.splitlines() == [
        "efa-unused-interfaces (warning)",
        "As many EFA interfaces as the instance type takes",
        "Each EFA interface carries its share: one of the four of p4d moved 20 GB/s, all of them 78.",
        "source: https://github.com/skypilot-org/skypilot/issues/8391, read 2026-11",
    ]
    assert trainfabric("lint", "--explain", "efa-unused-interfaces", "--json").json["severity"] == "warning"


def test_a_directory_of_cdk_is_read_with_its_stages_and_nested_stacks(trainfabric: Any) -> None:
    network = {
        "Resources": {"Group": {"Type": "AWS::EC2::SecurityGroup", "Properties": {"GroupDescription": "nodes"}}},
        "Outputs": {"Id": {"Value": {"Fn::GetAtt": ["Group", "GroupId"]}, "Export": {"Name": "network:Group"}}},
    }
    interface = {"DeviceIndex": 0, "InterfaceType": "efa", "Groups": [{"Ref": "Group"}]}
    data = {"MetadataOptions": {"HttpTokens": "required"}, "NetworkInterfaces": [interface]}
    nodes = {"Resources": {"Nodes": {"Type": "AWS::EC2::LaunchTemplate", "Properties": {"LaunchTemplateData": data}}}}
    stack = {
        "Type": "AWS::CloudFormation::Stack",
        "Metadata": {"aws:asset:path": "Nodes.nested.template.json"},
        "Properties": {"Parameters": {"Group": {"Fn::ImportValue": "network:Group"}}},
    }
    stage = Path("cdk.out/assembly-Production")
    stage.mkdir(parents=True)
    for name, body in {
        "Network.template.json": network,
        "Fleet.template.json": {"Resources": {"Nodes": stack}},
        "Nodes.nested.template.json": nodes,
    }.items():
        (stage / name).write_text(json.dumps(body))

    ended = trainfabric("lint", "cdk.out", "--json")

    assert ended.status == 1
    assert [(one["rule"], one["template"], one["logical_id"]) for one in ended.json] == [
        (f"efa-self-{way}", "cdk.out/assembly-Production/Nodes.nested.template.json", "Nodes")
        for way in ("ingress", "egress")
    ]


@pytest.mark.parametrize(
    ("arguments", "text", "message"),
    [
        ((), "", "lint: TEMPLATE must be given at least once, got none; name a template or a cdk.out directory"),
        (("absent.yaml",), "", "absent.yaml: template must be an existing file or directory, got none"),
        (
            ("it.yaml",),
            "just a text",
            "it.yaml: the template must be a mapping with Resources, got str",
        ),
        (
            ("it.yaml",),
            "name: demo",
            "it.yaml: the template must be one with a mapping Resources, got none; name a CloudFormation template",
        ),
        (
            ("it.yaml",),
            "Resources: {Nodes: {Type: [}}",
            "it.yaml: the template must be valid YAML or JSON, got while parsing a flow node expected the node "
            "content, but found '}' in \"<unicode string>\", line 1, column 28: Resources: {Nodes: {Type: [}} ^",
        ),
        (
            (".",),
            "",
            ".: the directory must be one with *.template.json files, got none; run cdk synth or name a template",
        ),
    ],
)
def test_what_is_no_template_ends_with_2(trainfabric: Any, arguments: tuple[str, ...], text: str, message: str) -> None:
    Path("it.yaml").write_text(text)

    ended = trainfabric("lint", *arguments)

    assert (ended.status, ended.out, ended.err) == (2, "", message + "\n")


def test_a_json_template_is_read_too(trainfabric: Any) -> None:
    Path("it.json").write_text('{"Resources": {"Nodes": {"Type": "AWS::EC2::Volume", "Properties": {}}}}')

    (found,) = trainfabric("lint", "it.json", "--json").json

    assert found["message"] == (
        "it.json:1: Nodes.Properties.Encrypted must be true, got none; set Encrypted to true: it costs nothing, and no "
        "speed"
    )


def test_a_directory_in_the_place_of_a_template_of_a_directory_is_refused(trainfabric: Any) -> None:
    Path("cdk.out/It.template.json").mkdir(parents=True)

    ended = trainfabric("lint", "cdk.out")

    assert (ended.status, ended.out) == (2, "")
    assert ended.err == "cdk.out/It.template.json: the template must be a readable UTF-8 file, got a directory\n"


CLUSTER = """\
Region: us-east-1
Image: {Os: ubuntu2404}
HeadNode:
  InstanceType: m7i.2xlarge
  Networking: {SubnetId: subnet-0123456789abcdef0}
Scheduling:
  Scheduler: slurm
  SlurmQueues:
    - Name: cpu
      Networking: {SubnetIds: [subnet-0123456789abcdef0]}
      ComputeResources: [{Name: small, InstanceType: m7i.large}]
    - Name: train
      CapacityType: spot
      Networking: {SubnetIds: [subnet-0123456789abcdef0]}
      ComputeResources:
        - Name: p5
          InstanceType: p5.48xlarge
          MaxCount: 4
          Efa: {Enabled: true, Gdr: true}
"""


def test_a_configuration_of_parallelcluster_is_checked_as_it_is(trainfabric: Any) -> None:
    Path("cluster.yaml").write_text(CLUSTER)

    ended = trainfabric("lint", "cluster.yaml", "--json")

    assert (ended.status, ended.err) == (1, "")
    assert [(one["rule"], one["line"], one["message"]) for one in ended.json] == [
        (
            "pcluster-shape",
            13,
            "cluster.yaml:13: Scheduling.SlurmQueues[1].CapacityType must be one of CAPACITY_BLOCK, ONDEMAND, SPOT, "
            "got spot",
        ),
        (
            "pcluster-shape",
            19,
            "cluster.yaml:19: Scheduling.SlurmQueues[1].ComputeResources[0].Efa.Gdr must be a key of ParallelCluster "
            "3.16, got Gdr; it takes Enabled, GdrSupport",
        ),
        (
            "pcluster-efa-placement",
            16,
            "cluster.yaml:16: Scheduling.SlurmQueues[1].ComputeResources[0].Networking.PlacementGroup must be given "
            "where EFA is on: nodes stand near each other, or you know that they need not, got nothing; set "
            "Networking.PlacementGroup.Enabled: true, or false with a reservation that has its own",
        ),
        (
            "pcluster-update-strategy",
            6,
            "cluster.yaml:6: Scheduling.SlurmSettings.QueueUpdateStrategy must be DRAIN or TERMINATE: otherwise a "
            "change of a queue asks for a stopped fleet, got nothing; an update through CloudFormation fails then, "
            "since nothing stops the fleet before it",
        ),
    ]


def test_one_rule_over_clusters_can_be_chosen_and_explained(trainfabric: Any) -> None:
    Path("cluster.yaml").write_text(CLUSTER)

    chosen = trainfabric("lint", "cluster.yaml", "--json", "--select", "pcluster-update-strategy")

    assert (chosen.status, [one["severity"] for one in chosen.json]) == (0, ["warning"])
    assert "stops none: updates fail" in trainfabric("lint", "--explain", "pcluster-update-strategy").out
