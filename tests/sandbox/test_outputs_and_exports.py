from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.sandbox.conftest import Aws, refused, template

PLACE: dict[str, Any] = {"Place": {"Type": "AWS::EC2::PlacementGroup", "Properties": {"Strategy": "cluster"}}}
MISSING = "Template format error: Unresolved resource dependencies [Missing] in the {} block of the template"


@pytest.mark.parametrize(
    "value",
    [{"Ref": "Missing"}, {"Fn::GetAtt": ["Missing", "Arn"]}, {"Fn::Sub": "${Missing.Arn} of ${AWS::StackName}"}],
)
def test_an_output_of_what_is_not_in_the_template_is_refused_and_stacks_can_still_be_described(
    aws: Aws, stack: str, value: dict[str, Any]
) -> None:
    assert refused(aws.create, stack, PLACE, {"Name": value}) == MISSING.format("Outputs")
    assert stack not in aws.stack_names()


def test_an_update_to_such_an_output_is_refused_and_the_old_output_stays(aws: Aws, stack: str) -> None:
    aws.create(stack, PLACE, {"Name": {"Ref": "Place"}})
    before = aws.outputs(stack)

    assert refused(aws.update, stack, PLACE, {"Name": {"Ref": "Missing"}}) == MISSING.format("Outputs")

    assert aws.outputs(stack) == before
    assert stack in aws.stack_names()


@pytest.mark.parametrize("dependency", ["Missing", ["Missing"]])
def test_a_dependency_on_what_is_not_in_the_template_is_refused(aws: Aws, stack: str, dependency: Any) -> None:
    resources = {"Place": {**PLACE["Place"], "DependsOn": dependency}}
    assert refused(aws.create, stack, resources) == MISSING.format("Resources")
    assert stack not in aws.stack_names()


def test_a_substitution_may_bring_its_own_names_along(aws: Aws, stack: str) -> None:
    aws.create(stack, PLACE, {"Name": {"Fn::Sub": ["${Own} in ${AWS::Region}", {"Own": {"Ref": "Place"}}]}})
    assert aws.outputs(stack)["Name"] == f"{aws.resources(stack)['Place']['physical_id']} in us-east-1"


def test_a_circle_of_resources_is_refused_before_anything_is_made(aws: Aws, stack: str) -> None:
    resources = {
        "One": {"Type": "AWS::SNS::Topic", "DependsOn": "Two"},
        "Two": {"Type": "AWS::SNS::Topic", "DependsOn": "One"},
    }
    assert refused(aws.create, stack, resources) == "Circular dependency between resources: [One, Two]"


def test_an_attribute_that_the_resource_lacks_is_refused_in_an_update_too(aws: Aws, stack: str) -> None:
    aws.create(stack, PLACE, {"Name": {"Ref": "Place"}})
    value = {"Fn::Join": ["", ["arn:", {"Fn::GetAtt": ["Place", "Arn"]}]]}
    assert refused(aws.update, stack, PLACE, {"Name": value}) == (
        "Output Name: Template error: resource Place does not support attribute type Arn in Fn::GetAtt"
    )
    assert aws.outputs(stack)["Name"] == aws.resources(stack)["Place"]["physical_id"]


def test_an_output_must_be_text(aws: Aws, stack: str) -> None:
    assert refused(aws.create, stack, PLACE, {"Zones": {"Fn::Split": [",", "a,b"]}}) == (
        "Output Zones: its Value must evaluate to a string, got ['a', 'b']"
    )
    assert stack not in aws.stack_names()


def test_an_output_of_a_resource_whose_condition_is_false_is_refused_unless_it_has_the_condition_too(
    aws: Aws, stack: str
) -> None:
    # given
    body = {
        "Conditions": {"Never": {"Fn::Equals": ["a", "b"]}},
        "Resources": {**PLACE, "Other": {**PLACE["Place"], "Condition": "Never"}},
        "Outputs": {"Other": {"Value": {"Ref": "Other"}}},
    }
    create = aws.client("cloudformation").create_stack
    # when, then
    assert refused(lambda: create(StackName=stack, TemplateBody=json.dumps(body))) == (
        "Output Other: its Value must be there; it is of no deployed resource"
    )
    body["Outputs"]["Other"]["Condition"] = "Never"
    create(StackName=stack, TemplateBody=json.dumps(body))
    assert list(aws.resources(stack)) == ["Place"]


def test_a_change_set_whose_outputs_do_not_resolve_is_rolled_back_and_can_be_described_and_deleted(
    aws: Aws, stack: str
) -> None:
    # given
    client = aws.client("cloudformation")
    body = template({"Topic": {"Type": "AWS::SNS::Topic"}}, {"Zones": {"Fn::Split": [",", "a,b"]}})
    topics = aws.client("sns").list_topics()["Topics"]
    client.create_change_set(StackName=stack, ChangeSetName="cs", ChangeSetType="CREATE", TemplateBody=body)
    # when
    message = refused(lambda: client.execute_change_set(StackName=stack, ChangeSetName="cs"))
    # then
    assert message == "Output Zones: its Value must evaluate to a string, got ['a', 'b']"
    assert client.describe_stacks(StackName=stack)["Stacks"][0]["StackStatus"] == "ROLLBACK_COMPLETE"
    assert aws.client("sns").list_topics()["Topics"] == topics
    aws.delete(stack)
    assert stack not in aws.stack_names()


def test_a_change_set_of_a_broken_template_is_refused_as_it_is_made(aws: Aws, stack: str) -> None:
    client = aws.client("cloudformation")
    body = template(PLACE, {"Name": {"Ref": "Missing"}})
    assert refused(
        lambda: client.create_change_set(StackName=stack, ChangeSetName="cs", ChangeSetType="CREATE", TemplateBody=body)
    ) == MISSING.format("Outputs")
    assert stack not in aws.stack_names()


class Pair:
    """A stack that exports the name of a placement group, and one that imports it."""

    def __init__(self, aws: Aws, new_name: Callable[[str], str]) -> None:
        self.exporter, self.importer, self.export = new_name("exporter"), new_name("importer"), new_name("export")
        self.client = aws.client("cloudformation")
        self.client.create_stack(StackName=self.exporter, TemplateBody=self.exporting({"Ref": "Place"}))
        topic = {"Type": "AWS::SNS::Topic", "Properties": {"DisplayName": {"Fn::ImportValue": self.export}}}
        aws.create(self.importer, {"Topic": topic})

    def exporting(self, value: Any) -> str:
        return json.dumps({"Resources": PLACE, "Outputs": {"Name": {"Value": value, "Export": {"Name": self.export}}}})

    def update(self, value: Any) -> None:
        self.client.update_stack(StackName=self.exporter, TemplateBody=self.exporting(value))


@pytest.fixture
def pair(aws: Aws, new_name: Callable[[str], str]) -> Pair:
    return Pair(aws, new_name)


def test_a_stack_that_another_imports_from_is_deleted_only_after_it(aws: Aws, pair: Pair) -> None:
    assert refused(aws.delete, pair.exporter) == (
        f"Delete canceled. Cannot delete export {pair.export} as it is in use by {pair.importer}."
    )
    assert list(aws.resources(pair.exporter)) == ["Place"]
    assert aws.outputs(pair.exporter)["Name"] == aws.resources(pair.exporter)["Place"]["physical_id"]

    aws.delete(pair.importer)
    aws.delete(pair.exporter)

    assert not {pair.importer, pair.exporter} & set(aws.stack_names())


def test_an_update_may_not_take_away_an_export_in_use(aws: Aws, pair: Pair) -> None:
    assert refused(aws.update, pair.exporter, PLACE) == (
        f"Export {pair.export} cannot be deleted as it is in use by {pair.importer}"
    )
    aws.delete(pair.importer)
    aws.update(pair.exporter, PLACE)


def test_an_update_may_not_change_an_export_in_use(aws: Aws, pair: Pair) -> None:
    assert refused(pair.update, "another") == (
        f"Export {pair.export} cannot be updated as it is in use by {pair.importer}"
    )
    aws.delete(pair.importer)
    pair.update("another")
    assert aws.outputs(pair.exporter) == {"Name": "another"}


def test_an_update_may_not_export_under_the_name_of_another_stack(aws: Aws, pair: Pair, stack: str) -> None:
    aws.create(stack, PLACE)
    assert (
        refused(lambda: pair.client.update_stack(StackName=stack, TemplateBody=pair.exporting("mine")))
        == f"Export with name {pair.export} is already exported by stack {pair.exporter}"
    )


def test_a_stack_whose_resources_cannot_be_deleted_is_still_there(aws: Aws, stack: str) -> None:
    # given a bucket with an object in it
    aws.create(stack, {"Bucket": {"Type": "AWS::S3::Bucket"}})
    bucket = aws.resources(stack)["Bucket"]["physical_id"]
    aws.client("s3").put_object(Bucket=bucket, Key="k", Body=b"x")
    # when
    message = refused(aws.delete, stack)
    # then
    assert message == f"Resource Bucket (AWS::S3::Bucket): the bucket {bucket} is not empty"
    described = aws.client("cloudformation").describe_stacks(StackName=stack)["Stacks"][0]
    assert described["StackStatus"] == "DELETE_FAILED"
    aws.client("s3").delete_object(Bucket=bucket, Key="k")
    aws.delete(stack)
    assert stack not in aws.stack_names()
