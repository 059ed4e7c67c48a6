"""Every rule on a template that breaks it and on one that does not: `cases/<rule>.yaml`, the bad one first.

Lines `# finds …` of the bad template are the whole messages.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.plan.parallelcluster.mistakes import MISTAKES, MORE, RIGHT, settled
from trainfabric_cli.cloudformation import read_template
from trainfabric_plan.lint import RULES, Assembly, Rule, Severity, Template, lint

CASES = Path(__file__).parent / "cases"
OF_CLUSTERS = {rule for rule in RULES if rule.startswith("pcluster-")}
"""Rules over ParallelCluster's configuration: broken by the mistakes of `tests/plan/parallelcluster`."""
WITHOUT_A_FILE = {"cluster-group-type", "user-data-may-be-too-large", "user-data-too-large", *OF_CLUSTERS}
"""Rules whose templates are `MADE`: those about size, and those about facts that rows of the catalog may lack."""


def halves(rule: str) -> tuple[str, str]:
    bad, good = (CASES / f"{rule}.yaml").read_text().split("---\n")
    return bad, good


def messages(text: str, name: str, *rules: str) -> list[str]:
    Path(name).write_text(text)
    chosen = [RULES[rule] for rule in rules] or RULES.values()
    return [finding.message for finding in lint(Assembly([read_template(Path(name))]), chosen)]


@pytest.fixture(autouse=True)
def in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_every_rule_has_a_bad_and_a_good_template() -> None:
    assert {path.stem for path in CASES.iterdir()} == RULES.keys() - WITHOUT_A_FILE


@pytest.mark.parametrize("rule", sorted(RULES))
def test_every_rule_is_broken_by_a_template_and_kept_by_another(rule: str) -> None:
    """Whichever way its templates are made."""
    bad, good = MADE[rule]() if rule in WITHOUT_A_FILE else halves(rule)

    assert messages(bad, "bad.yaml", rule)
    assert messages(good, "good.yaml", rule) == []


@pytest.mark.parametrize("rule", sorted(RULES.keys() - WITHOUT_A_FILE))
def test_a_rule_finds_what_breaks_it_and_says_where_and_what_to_do(rule: str) -> None:
    bad, _ = halves(rule)
    expected = [line.removeprefix("# finds ") for line in bad.splitlines() if line.startswith("# finds ")]

    assert expected
    assert messages(bad, "bad.yaml", rule) == expected


@pytest.mark.parametrize("rule", sorted(RULES.keys() - WITHOUT_A_FILE))
def test_no_rule_finds_anything_in_a_good_template(rule: str) -> None:
    _, good = halves(rule)

    assert messages(good, "good.yaml") == []


def launch_template(**data: object) -> str:
    """A template with one launch template; JSON is YAML."""
    nodes = {"Type": "AWS::EC2::LaunchTemplate", "Properties": {"LaunchTemplateData": data}}
    group = {"Type": "AWS::EC2::PlacementGroup", "Properties": {"Strategy": "cluster"}}
    parameters = {"Extra": {"Type": "String", "MaxLength": 100}}
    return json.dumps({"Parameters": parameters, "Resources": {"Group": group, "Nodes": nodes}}, indent=1)


def of_size(script: str) -> str:
    return launch_template(UserData={"Fn::Base64": {"Fn::Sub": "#!/bin/bash\n" + script}})


def in_a_cluster_group(instance_type: str) -> str:
    return launch_template(InstanceType=instance_type, Placement={"GroupName": {"Ref": "Group"}})


def in_and_out_of_a_cluster_group() -> tuple[str, str]:
    """Of facts of an account: every row of the catalog may stand in a cluster placement group."""
    never_in_a_cluster_group()
    return in_a_cluster_group("x9.large"), in_a_cluster_group("p5.48xlarge")


def never_in_a_cluster_group() -> None:
    """Tells the catalog of x9.large."""
    told = {"format": 1, "instance_types": {"x9.large": NEVER_IN_A_CLUSTER_GROUP}}
    Path("trainfabric.catalog.json").write_text(json.dumps(told))


NEVER_IN_A_CLUSTER_GROUP = {
    "region": "us-east-1",
    "date": "2026-11-30",
    "source": "DescribeInstanceTypes",
    "vcpus": 2,
    "memory_gib": 8,
    "architecture": "x86_64",
    "network_gbps": 5,
    "cards": [{"interfaces": 3, "efa": False}],
    "usage_classes": ["on-demand", "spot"],
    "cluster_placement": False,
}


def broken_and_right_cluster(rule: str) -> tuple[str, str]:
    """A configuration with a mistake that breaks the rule, and the one that it was made of."""
    if rule == "pcluster-placement-type":
        never_in_a_cluster_group()
    mistake = next(one for one in (*MISTAKES, *MORE) if one.rule == rule)
    return settled(mistake.configuration), settled(RIGHT)


MADE: dict[str, Callable[[], tuple[str, str]]] = {
    **{rule: partial(broken_and_right_cluster, rule) for rule in OF_CLUSTERS},
    "cluster-group-type": in_and_out_of_a_cluster_group,
    "user-data-may-be-too-large": lambda: (of_size("x" * 16_300 + "${Extra}"), of_size("x" * 16_000 + "${Extra}")),
    "user-data-too-large": lambda: (of_size("x" * 16_400), of_size("x" * 16_000)),
}
"""The bad template and the good one of each rule without a file."""


def test_a_type_that_no_cluster_placement_group_takes_is_refused_in_one() -> None:
    bad, _ = in_and_out_of_a_cluster_group()

    assert messages(bad, "bad.yaml", "cluster-group-type") == [
        "bad.yaml:19: Nodes.Properties.LaunchTemplateData.InstanceType must be an instance type that a cluster "
        "placement group takes, got x9.large; remove the placement group, or take another type"
    ]


def test_outside_a_cluster_placement_group_every_type_may_stand() -> None:
    in_and_out_of_a_cluster_group()

    assert messages(launch_template(InstanceType="x9.large"), "good.yaml", "cluster-group-type") == []


def user_data(value: object, parameters: dict[str, object] | None = None) -> list[str]:
    data = {"UserData": value, "MetadataOptions": {"HttpTokens": "required"}}
    resource = {"Type": "AWS::EC2::LaunchTemplate", "Properties": {"LaunchTemplateData": data}}
    body = {"Parameters": parameters or {}, "Resources": {"Nodes": resource}}
    return [finding.message for finding in lint(Assembly([Template(name="stack", body=body)]))]


def test_user_data_over_16_kib_is_refused_and_its_known_bytes_counted() -> None:
    script = "#!/bin/bash\n" + "x" * 16_373

    assert user_data({"Fn::Base64": {"Fn::Sub": script + "${AWS::StackName}"}}) == [
        "stack: Nodes.Properties.LaunchTemplateData.UserData must be at most 16384 bytes before base64, got at least "
        "16385; put the script into a bucket or the image, and fetch it from a short one"
    ]


def test_user_data_that_stands_in_base64_is_counted_decoded() -> None:
    assert user_data(base64.b64encode(b"#!/bin/bash\n" + b"x" * 16_000).decode()) == []
    assert len(user_data(base64.b64encode(b"#!/bin/bash\n" + b"x" * 16_400).decode())) == 1


def test_user_data_that_a_long_parameter_makes_too_large_is_warned_about() -> None:
    script = {"Fn::Base64": {"Fn::Join": ["\n", ["#!/bin/bash", "x" * 16_300, {"Ref": "Extra"}]]}}

    assert user_data(script, {"Extra": {"Type": "String", "MaxLength": "100"}}) == [
        "stack: Nodes.Properties.LaunchTemplateData.UserData must be at most 16384 bytes before base64, with every "
        "parameter at its longest, got 16413; put the script into a bucket or the image, and fetch it from a short one"
    ]
    assert user_data(script, {"Extra": {"Type": "String", "AllowedValues": ["a", "bc"]}}) == []


def test_a_parameter_without_a_limit_is_never_guessed() -> None:
    script = {"Fn::Base64": {"Fn::Sub": "x" * 16_300 + "${Extra}"}}

    assert user_data(script, {"Extra": {"Type": "String"}}) == []


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.id)
def test_a_rule_says_what_it_asks_for_why_and_from_where(rule: Rule) -> None:
    assert rule.title and rule.why.endswith(".") and not rule.title.endswith(".")
    assert rule.source and rule.severity in Severity


BRANCHES = """\
Parameters:
  Kind: {Type: String}
Conditions:
  Block: !Equals [!Ref Kind, cb]
Resources:
  Nodes:
    Type: AWS::EC2::LaunchTemplate
    Properties:
      LaunchTemplateData:
        InstanceType: p5.48xlarge
        MetadataOptions: {HttpTokens: required}
        NetworkInterfaces:
          - {NetworkCardIndex: 0, DeviceIndex: 0, InterfaceType: efa}
          - !If [Block, {NetworkCardIndex: 1, DeviceIndex: 5, InterfaceType: efa-only}, !Ref AWS::NoValue]
          - !If
            - Block
            - {NetworkCardIndex: 0, DeviceIndex: 0, InterfaceType: efa}
            - {NetworkCardIndex: 2, DeviceIndex: 1, InterfaceType: efa-only, Ipv6AddressCount: 1}
"""
DEVICE = (
    "it.yaml:14: Nodes.Properties.LaunchTemplateData.NetworkInterfaces[1].Fn::If[1].DeviceIndex must be below 2, what "
    "card 1 of p5.48xlarge takes, got 5; trainfabric catalog p5.48xlarge shows the layout"
)
ADDRESS = (
    "it.yaml:18: Nodes.Properties.LaunchTemplateData.NetworkInterfaces[2].Fn::If[2].Ipv6AddressCount must be absent on "
    "an efa-only interface, which has no address; remove it, or make the interface efa"
)


def test_what_is_wrong_in_a_branch_alone_is_found_and_nothing_is_counted_while_the_condition_is_undecided() -> None:
    assert messages(BRANCHES, "it.yaml") == [DEVICE, ADDRESS]


def test_a_whole_list_in_a_branch_is_looked_at() -> None:
    interface = "{DeviceIndex: 0, InterfaceType: ena}"
    text = BRANCHES[: BRANCHES.index("        NetworkInterfaces")]
    text += f"        NetworkInterfaces: !If [Block, [{interface}], !Ref AWS::NoValue]\n"

    assert messages(text, "it.yaml") == [
        "it.yaml:12: Nodes.Properties.LaunchTemplateData.NetworkInterfaces.Fn::If[1][0].InterfaceType must be "
        "interface, efa or efa-only, got ena; write it in lower case"
    ]


def test_branches_are_left_alone_where_a_condition_decides_about_who_launches() -> None:
    """Then the branch may never go with the type that it would be wrong for."""
    group = """\
  Fleet:
    Type: AWS::AutoScaling::AutoScalingGroup
    Condition: Block
    Properties:
      LaunchTemplate: {LaunchTemplateId: !Ref Nodes, Version: "1"}
"""
    assert messages(BRANCHES + group, "it.yaml", "efa-card-or-device-index") == []
