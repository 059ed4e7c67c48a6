from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from trainfabric_cdk import SpotTrainingFleet

MakeFleet = Callable[..., SpotTrainingFleet]


@pytest.fixture
def statements(
    make_fleet: MakeFleet, properties: Callable[[str], list[dict[str, Any]]]
) -> Callable[[str], list[dict[str, Any]]]:
    """Statements of the nodes' policy that allow an action."""
    fleet = make_fleet()
    (policy,) = (
        policy
        for policy in properties("AWS::IAM::Policy")
        if policy["Roles"] == [fleet.role.stack.resolve(fleet.role.role_name)]
    )
    found = policy["PolicyDocument"]["Statement"]
    return lambda action: [
        s for s in found if action in ([s["Action"]] if isinstance(s["Action"], str) else s["Action"])
    ]


def resources_of(statement: dict[str, Any]) -> list[Any]:
    given = statement["Resource"]
    return given if isinstance(given, list) else [given]


def test_nodes_read_the_code_and_the_data_and_checkpoints(
    statements: Callable[[str], list[dict[str, Any]]],
) -> None:
    read = [str(resource) for statement in statements("s3:GetObject") for resource in resources_of(statement)]

    code, checkpoints, data = sorted(read, key=lambda resource: ("demo-data" in resource, "demo-check" in resource))
    assert code.count(".zip") == 1
    assert "demo-checkpoints/*" in checkpoints
    assert "demo-data/*" in data


def test_nodes_write_nothing_but_checkpoints(statements: Callable[[str], list[dict[str, Any]]]) -> None:
    for action in ("s3:PutObject", "s3:DeleteObject"):
        (statement,) = statements(action)
        (resource,) = resources_of(statement)
        assert "demo-checkpoints/*" in str(resource)


def test_nodes_report_metrics_of_our_namespace_only(statements: Callable[[str], list[dict[str, Any]]]) -> None:
    (statement,) = statements("cloudwatch:PutMetricData")

    assert statement["Condition"] == {"StringEquals": {"cloudwatch:namespace": "Trainfabric"}}


def test_nodes_read_the_two_parameters_of_their_environment(
    statements: Callable[[str], list[dict[str, Any]]],
) -> None:
    (statement,) = statements("ssm:GetParameter")

    names = [str(resource).rpartition(":parameter")[2].rstrip("'}]") for resource in resources_of(statement)]
    assert names == ["/trainfabric/demo/environment", "/trainfabric/demo/plan"]


def test_nodes_scale_their_own_two_groups(
    statements: Callable[[str], list[dict[str, Any]]], properties: Callable[[str], list[dict[str, Any]]]
) -> None:
    (statement,) = statements("autoscaling:SetDesiredCapacity")

    assert set(statement["Action"]) == {"autoscaling:SetDesiredCapacity", "autoscaling:UpdateAutoScalingGroup"}
    groups = [resource["Fn::Join"][1][-1] for resource in resources_of(statement)]
    assert [set(group) for group in groups] == [{"Ref"}, {"Ref"}]
    assert len(properties("AWS::AutoScaling::AutoScalingGroup")) == 2


def test_people_reach_nodes_through_session_manager(
    make_fleet: MakeFleet, resources: Callable[[str], dict[str, Any]]
) -> None:
    fleet = make_fleet()

    id = fleet.role.stack.resolve(fleet.role.role_name)["Ref"]
    (policy,) = resources("AWS::IAM::Role")[id]["Properties"]["ManagedPolicyArns"]
    assert "policy/AmazonSSMManagedInstanceCore" in str(policy)
