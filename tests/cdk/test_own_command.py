"""Fleets whose jobs run a command of the user's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import assertions

from trainfabric_cdk import PropertyError, SpotTrainingFleet

MakeFleet = Callable[..., SpotTrainingFleet]
IMAGE = "123456789012.dkr.ecr.us-east-2.amazonaws.com/team/megatron:2026-11"


def template(stack: cdk.Stack) -> str:
    return str(assertions.Template.from_stack(stack).to_json())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"instance_type": "trn1.32xlarge", "image_id": "ami-0123456789abcdef0"},
            "Demo/Fleet: own_command must be True for trn1.32xlarge: the engine of the recipes has no Neuron backend, "
            "got False; set it, and start jobs with training.command (docs/own-training-code.md)",
        ),
        (
            {"training_image": IMAGE},
            f"Demo/Fleet: training_image must be given only with own_command, got '{IMAGE}'; set that",
        ),
        (
            {"own_command": True, "training_image": "megatron"},
            "Demo/Fleet: training_image must be the name of a container image with its tag or digest, so that nodes "
            "that come later get the same, got 'megatron'; write it as docker pull takes it, with :TAG or @sha256:…",
        ),
    ],
)
def test_what_no_node_could_run_is_refused(make_fleet: MakeFleet, given: dict[str, Any], message: str) -> None:
    with pytest.raises(PropertyError) as caught:
        make_fleet(**given)

    assert str(caught.value) == message


def test_nodes_are_told_that_they_run_a_command_and_may_pull_its_image_alone(
    make_fleet: MakeFleet, stack: cdk.Stack
) -> None:
    make_fleet(own_command=True, training_image=IMAGE)

    made = template(stack)
    assert made.count("TRAINFABRIC_TRAINING=command") == 2
    assert ":ecr:us-east-2:123456789012:repository/team/megatron" in made
    assert made.count("ecr:GetAuthorizationToken") == 1


def test_an_image_of_another_registry_or_of_a_token_needs_no_permission_of_ours(
    make_fleet: MakeFleet, stack: cdk.Stack
) -> None:
    make_fleet(own_command=True, training_image=cdk.Fn.import_value("image"))

    assert "ecr:" not in template(stack)


def test_nodes_of_recipes_are_told_nothing(make_fleet: MakeFleet, stack: cdk.Stack) -> None:
    make_fleet()

    assert "TRAINFABRIC_TRAINING" not in template(stack)
