"""What a value in a template is known to be, and what stays unknown."""

from __future__ import annotations

from typing import Any

import pytest

from trainfabric_plan.lint import Assembly, Template
from trainfabric_plan.lint.values import MISSING, UNKNOWN, Reference


def known(value: Any, **sections: Any) -> Any:
    resources = {
        "Group": {"Type": "AWS::EC2::SecurityGroup"},
        "It": {"Type": "AWS::EC2::Volume", "Properties": {"Value": value}},
    }
    assembly = Assembly([Template(name="stack", body={"Resources": resources, **sections})])
    found = assembly.find(assembly.templates[0], "It")
    assert found is not None
    return found.properties("Value").known


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("text", "text"),
        ({"Fn::Join": ["-", ["a", "b"]]}, "a-b"),
        ({"Fn::Sub": "a-${!Literal}"}, "a-${Literal}"),
        ({"Fn::Sub": ["a-${Name}", {"Name": "b"}]}, "a-b"),
        ({"Fn::Select": [1, ["a", "b"]]}, "b"),
        ({"Fn::Select": ["0", {"Fn::Split": [",", "a,b"]}]}, "a"),
        ({"Fn::FindInMap": ["Types", "gpu", "name"]}, "p5.48xlarge"),
        ({"Fn::If": ["Any", "same", "same"]}, "same"),
    ],
)
def test_what_stands_in_the_template_is_known(value: Any, expected: str) -> None:
    assert known(value, Mappings={"Types": {"gpu": {"name": "p5.48xlarge"}}}) == expected


@pytest.mark.parametrize(
    "value",
    [
        {"Ref": "Parameter"},
        {"Ref": "AWS::Region"},
        {"Fn::Sub": "${AWS::Region}a"},
        {"Fn::Join": ["-", ["a", {"Ref": "Parameter"}]]},
        {"Fn::Join": ["-", {"Ref": "Parameter"}]},
        {"Fn::If": ["Any", "one", "other"]},
        {"Fn::ImportValue": "of-another-app"},
        {"Fn::GetAtt": ["Absent", "Arn"]},
        {"Fn::Select": [5, ["a"]]},
        {"Fn::FindInMap": ["Types", {"Ref": "AWS::Region"}, "name"]},
        {"Fn::Transform": {"Name": "AWS::Include"}},
        {"Key": "value", "Fn::Transform": {"Name": "AWS::Include"}},
        {"Fn::Cidr": ["10.0.0.0/16", 4, 8]},
    ],
)
def test_what_only_a_deployment_tells_is_unknown(value: Any) -> None:
    assert known(value, Parameters={"Parameter": {"Type": "String", "Default": "guess"}}) is UNKNOWN


@pytest.mark.parametrize("value", [{"Ref": "Group"}, {"Fn::Sub": "${Group}"}, {"Fn::Join": ["", [{"Ref": "Group"}]]}])
def test_a_reference_to_a_resource_is_followed(value: Any) -> None:
    found = known(value)

    assert isinstance(found, Reference)
    assert (found.resource.id, found.attribute) == ("Group", None)


def test_no_value_is_no_value() -> None:
    assert known({"Ref": "AWS::NoValue"}) is MISSING


def test_a_template_that_goes_in_circles_is_unknown() -> None:
    body = {
        "Resources": {"It": {"Type": "AWS::EC2::Volume", "Properties": {"Value": {"Fn::ImportValue": "loop"}}}},
        "Outputs": {"Loop": {"Value": {"Fn::ImportValue": "loop"}, "Export": {"Name": "loop"}}},
    }
    assembly = Assembly([Template(name="stack", body=body)])
    (found,) = assembly.of_type("AWS::EC2::Volume")

    assert found.properties("Value").known is UNKNOWN


def test_a_value_that_another_stack_exports_is_followed() -> None:
    network = {
        "Resources": {"Group": {"Type": "AWS::EC2::SecurityGroup"}},
        "Outputs": {"Id": {"Value": {"Ref": "Group"}, "Export": {"Name": "network:Group"}}},
    }
    fleet = {
        "Resources": {"It": {"Type": "AWS::EC2::Volume", "Properties": {"V": {"Fn::ImportValue": "network:Group"}}}}
    }
    assembly = Assembly([Template(name="network", body=network), Template(name="fleet", body=fleet)])
    (found,) = assembly.of_type("AWS::EC2::Volume")

    group = found.properties("V").resource("AWS::EC2::SecurityGroup")
    assert group is not None and group.template.name == "network"


def test_parameters_and_outputs_of_a_nested_stack_are_followed() -> None:
    child = {
        "Parameters": {"Name": {"Type": "String"}},
        "Resources": {"It": {"Type": "AWS::EC2::Volume", "Properties": {"V": {"Ref": "Name"}}}},
        "Outputs": {"Id": {"Value": {"Ref": "It"}}},
    }
    parent = {
        "Resources": {
            "Child": {
                "Type": "AWS::CloudFormation::Stack",
                "Metadata": {"aws:asset:path": "child.nested.template.json"},
                "Properties": {"Parameters": {"Name": "gpu"}},
            },
            "User": {"Type": "AWS::EC2::Instance", "Properties": {"V": {"Fn::GetAtt": ["Child", "Outputs.Id"]}}},
        }
    }
    nested = {"child.nested.template.json": Template(name="child", body=child)}
    assembly = Assembly([Template(name="parent", body=parent)], nested=nested)
    (volume,), (user,) = assembly.of_type("AWS::EC2::Volume"), assembly.of_type("AWS::EC2::Instance")

    assert volume.properties("V").known == "gpu"
    assert user.properties("V").resource("AWS::EC2::Volume") == volume


def test_a_parameter_that_somebody_gave_is_known() -> None:
    body = {"Resources": {"It": {"Type": "AWS::EC2::Volume", "Properties": {"V": {"Fn::Sub": "${Size}.48xlarge"}}}}}
    assembly = Assembly([Template(name="stack", body=body, parameters={"Size": "p5"})])
    (found,) = assembly.of_type("AWS::EC2::Volume")

    assert found.properties("V").text == "p5.48xlarge"


@pytest.mark.parametrize(
    ("section", "value", "complete"),
    [
        ("Transform", "AWS::Serverless-2016-10-31", True),
        ("Transform", ["AWS::LanguageExtensions"], True),
        ("Transform", ["Ours"], False),
        ("Transform", [{"Name": "AWS::Include"}], False),
    ],
)
def test_a_template_that_a_macro_adds_to_does_not_show_everything(section: str, value: Any, complete: bool) -> None:
    assembly = Assembly([Template(name="stack", body={"Resources": {}, section: value})])

    assert assembly.is_complete(assembly.templates[0]) is complete


CONDITIONS = {
    "True": {"Fn::Equals": ["a", "a"]},
    "False": {"Fn::Equals": ["a", "b"]},
    "Flag": {"Fn::Equals": [True, "true"]},
    "Open": {"Fn::Equals": [{"Ref": "Parameter"}, "a"]},
    "Not": {"Fn::Not": [{"Condition": "False"}]},
    "And": {"Fn::And": [{"Condition": "True"}, {"Condition": "Not"}]},
    "AndOpen": {"Fn::And": [{"Condition": "True"}, {"Condition": "Open"}]},
    "AndFalse": {"Fn::And": [{"Condition": "Open"}, {"Condition": "False"}]},
    "Or": {"Fn::Or": [{"Condition": "Open"}, {"Condition": "True"}]},
    "OrFalse": {"Fn::Or": [{"Condition": "False"}, {"Condition": "False"}]},
    "Circle": {"Fn::Not": [{"Condition": "Circle"}]},
    "Broken": ["Fn::Equals"],
    "OfNothing": {"Fn::And": []},
    "Unread": {"Fn::Contains": [["a"], "a"]},
}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("True", "yes"),
        ("False", "no"),
        ("Flag", "yes"),
        ("Open", UNKNOWN),
        ("Not", "yes"),
        ("And", "yes"),
        ("AndOpen", UNKNOWN),
        ("AndFalse", "no"),
        ("Or", "yes"),
        ("OrFalse", "no"),
        ("Circle", UNKNOWN),
        ("Broken", UNKNOWN),
        ("OfNothing", UNKNOWN),
        ("Unread", UNKNOWN),
        ("Absent", UNKNOWN),
        (["True"], UNKNOWN),
    ],
)
def test_a_condition_decides_as_far_as_it_is_known(name: Any, expected: Any) -> None:
    assert known({"Fn::If": [name, "yes", "no"]}, Conditions=CONDITIONS) == expected


@pytest.mark.parametrize(("name", "made"), [("True", 1), ("False", 0), ("Open", 1)])
def test_a_resource_is_looked_at_unless_its_condition_is_known_not_to_hold(name: str, made: int) -> None:
    volume = {"Type": "AWS::EC2::Volume", "Condition": name}
    assembly = Assembly([Template(name="stack", body={"Resources": {"It": volume}, "Conditions": CONDITIONS})])

    assert len(assembly.resources) == made


def test_a_list_is_given_to_a_parameter_as_text() -> None:
    body = {
        "Parameters": {"Subnets": {"Type": "List<AWS::EC2::Subnet::Id>"}},
        "Resources": {"It": {"Type": "AWS::EC2::Volume", "Properties": {"Value": {"Ref": "Subnets"}}}},
    }
    assembly = Assembly([Template(name="stack", body=body, parameters={"Subnets": "subnet-1,subnet-2"})])

    assert assembly.resources[0].properties("Value").known == ["subnet-1", "subnet-2"]


def test_a_condition_of_a_nested_stack_sees_what_its_parent_gives() -> None:
    inner = Template(
        name="inner",
        body={
            "Parameters": {"Use": {"Type": "String"}},
            "Conditions": {"Used": {"Fn::Equals": [{"Ref": "Use"}, "yes"]}},
            "Resources": {"It": {"Type": "AWS::EC2::Volume", "Condition": "Used"}},
        },
    )
    stack = {
        "Type": "AWS::CloudFormation::Stack",
        "Properties": {"Parameters": {"Use": "no"}},
        "Metadata": {"aws:asset:path": "inner"},
    }
    assembly = Assembly([Template(name="outer", body={"Resources": {"Inner": stack}})], nested={"inner": inner})

    assert [one.id for one in assembly.resources] == ["Inner"]
