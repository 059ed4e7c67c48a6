from __future__ import annotations

import math

import aws_cdk as cdk
import pytest
from aws_cdk import Fn, Token
from constructs import Construct

from trainfabric_cdk import PropertyError
from trainfabric_cdk.errors import at_construct, is_known, property_error, refuse
from trainfabric_plan.errors import Mistake, NotFound, TrainfabricError


def test_a_property_error_is_a_value_error_that_users_can_mend_with_the_path_of_the_construct(
    stack: cdk.Stack,
) -> None:
    nodes = Construct(Construct(stack, "Fleet"), "Nodes")

    error = property_error(nodes, "nodes", "at least 1", 0, "ask for one")

    assert isinstance(error, ValueError)
    assert isinstance(error, TrainfabricError)
    assert str(error) == "Demo/Fleet/Nodes: nodes must be at least 1, got 0; ask for one"


def test_several_mistakes_are_refused_together() -> None:
    mistakes = [Mistake(where="A", name="x", rule="odd", got="2"), Mistake(where="A", name="y", rule="even", got="1")]

    with pytest.raises(PropertyError) as refused:
        refuse(mistakes)

    assert str(refused.value) == "A: x must be odd, got 2\nA: y must be even, got 1"
    assert refused.value.mistakes == tuple(mistakes)


def test_no_mistakes_are_not_refused() -> None:
    refuse([])


def test_an_error_of_pure_code_leaves_with_the_path_of_the_construct(stack: cdk.Stack) -> None:
    with pytest.raises(PropertyError) as refused, at_construct(stack):
        raise NotFound("catalog: instance type must be a known one, got x")

    assert str(refused.value) == "Demo: catalog: instance type must be a known one, got x"


def test_a_property_error_passes_through_unchanged(stack: cdk.Stack) -> None:
    with pytest.raises(PropertyError) as refused, at_construct(Construct(stack, "Inner")):
        raise property_error(stack, "a", "b", "c")

    assert str(refused.value) == "Demo: a must be b, got c"


def test_values_that_are_settled_at_deploy_time_are_not_known() -> None:
    assert is_known("text", 3, math.inf, math.nan)
    assert not is_known("text", cdk.Fn.import_value("name"))
    assert not is_known(cdk.Token.as_number(cdk.Fn.ref("Count")))


@pytest.mark.parametrize(
    "value",
    [
        f"vpc-{Fn.ref('It')}",
        Token.as_number(Fn.get_att("It", "Number")),
        Token.as_list(Fn.get_att("It", "List")),
        Fn.get_att("It", "Arn"),
        *([one] for one in ("text", "${Token[It.1]}", "#{Token[It.1]}")),
        ["#{Token[It.1]}", "text"],
        "Token[",
        "text",
        "",
        0,
        -1e287,
        -1.8881545897087e289,
        1e308,
        True,
        None,
        [],
        {"key": "value"},
    ],
    ids=lambda value: type(value).__name__,  # names of tokens differ between processes
)
def test_what_is_known_without_asking_the_cdk_is_what_the_cdk_says(value: object) -> None:
    assert is_known(value) is not Token.is_unresolved(value)
