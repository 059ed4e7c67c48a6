"""`training.command`: what an environment says about it, and what is planned from it."""

from __future__ import annotations

from typing import Any

import pytest

from trainfabric_plan.environment import validate_environment
from trainfabric_plan.errors import InvalidInput
from trainfabric_plan.own_command import ecr_repository, is_pinned_image
from trainfabric_plan.planning import CommandPlan, make_plan, plan_for, shrunk_command

OWN = {"command": "torchrun train.py", "code": "code"}
DIGEST = "sha256:" + "0a" * 32


@pytest.mark.parametrize(
    ("training", "message"),
    [
        pytest.param(
            {**OWN, "recipe": "tiny_cpu"},
            "demo.yaml: training.command must be given only without a recipe, got both it and recipe tiny_cpu; "
            "remove one of them",
            id="recipe and command",
        ),
        pytest.param(
            {"command": "./run"},
            "demo.yaml: training.command must be given with its code, got neither code nor image; "
            "add training.code, a folder, or training.image, a container image",
            id="no code",
        ),
        pytest.param(
            {"command": " ", "code": "code"},
            "demo.yaml: training.command must be a shell command, got ' '; write what every node is to run",
            id="blank command",
        ),
        pytest.param(
            {"command": "./run", "code": ""},
            "demo.yaml: training.code must be a folder, got ''; write its path, relative to this file",
            id="blank folder",
        ),
        pytest.param(
            {"command": "./run", "image": "megatron"},
            "demo.yaml: training.image must be the name of a container image with its tag or digest, so that nodes "
            "that come later get the same, got 'megatron'; write it as docker pull takes it, with :TAG or @sha256:…",
            id="image without a tag",
        ),
        pytest.param(
            {**OWN, "layout": {"data": 4}},
            "demo.yaml: training.layout must be left to the command, got data 4 × pipeline 1 × tensor 1; "
            "remove training.layout and put the degrees into the command",
            id="layout of a command",
        ),
        pytest.param(
            {"recipe": "tiny_cpu", "code": "code"},
            "demo.yaml: training.code must be given only with a command, got 'code'; "
            "remove training.code, or replace training.recipe by training.command",
            id="code of a recipe",
        ),
        pytest.param(
            {"recipe": "tiny_cpu", "leave_by": "file"},
            "demo.yaml: training.leave_by must be given only with a command, got 'file'; "
            "remove training.leave_by, or replace training.recipe by training.command",
            id="leaving of a recipe",
        ),
    ],
)
def test_a_broken_rule_about_a_command_is_named(mistakes: Any, training: dict[str, Any], message: str) -> None:
    assert mistakes({"training": training}) == [message]


def test_slurm_starts_what_is_submitted_to_it(mistakes: Any) -> None:
    assert mistakes({"training": OWN, "orchestrator": "parallelcluster"}) == [
        "demo.yaml: training.command must be left out with parallelcluster, where sbatch starts what you submit, "
        "got 'torchrun train.py'; use orchestrator: fleet"
    ]


TRAINIUM = {"fleet.instance_type": "trn1.32xlarge", "fleet.ami_id": "ami-0123456789abcdef0"}


def test_trainium_takes_no_recipe(mistakes: Any) -> None:
    assert mistakes(TRAINIUM) == [
        "demo.yaml: training.command must be given for trn1.32xlarge: the engine of the recipes has no Neuron backend, "
        "got recipe tiny_cpu; replace training.recipe by training.command (docs/own-training-code.md)"
    ]


def test_trainium_asks_for_the_number_of_processes(mistakes: Any) -> None:
    assert mistakes({**TRAINIUM, "training": OWN}) == [
        "demo.yaml: training.ranks_per_node must be given for trn1.32xlarge: a Trainium chip has several NeuronCores, "
        "got nothing; say how many processes run on a node, such as one per NeuronCore"
    ]


def test_trainium_takes_a_command_with_more_processes_than_chips(environment_data: Any) -> None:
    data = environment_data({**TRAINIUM, "training": {**OWN, "ranks_per_node": 32}})

    plan = plan_for(validate_environment(data, "demo.yaml"))

    assert (plan.nodes, plan.ranks_per_node, plan.ranks) == (4, 32, 128)


def own_plan(environment_data: Any, **changes: Any) -> CommandPlan:
    plan = plan_for(validate_environment(environment_data({"training": OWN, **changes}), "demo.yaml"))
    assert isinstance(plan, CommandPlan)
    return plan


def test_a_command_gets_a_rank_for_each_accelerator_and_never_fewer_nodes(environment_data: Any) -> None:
    plan = own_plan(environment_data)

    assert (plan.nodes, plan.ranks_per_node, plan.minimum_nodes) == (4, 8, 4)
    assert plan.shape == "4 × 8 ranks of a command"
    assert plan.usd_per_hour == 134.581
    assert plan.reasons == [
        "NPROC_PER_NODE: one per accelerator",
        "NNODES is never less: set fault_tolerance.minimum_nodes if the command runs on fewer nodes as well",
    ]
    assert (shrunk_command(plan, 5), shrunk_command(plan, 4), shrunk_command(plan, 3)) == (plan, plan, None)


def test_a_command_that_adapts_itself_runs_on_whatever_is_left(environment_data: Any) -> None:
    plan = own_plan(environment_data, **{"fault_tolerance.minimum_nodes": 2})

    smaller = shrunk_command(plan, 3)

    assert plan.reasons[1] == "NNODES is from 2 to 4, as many as there are: the command adapts itself to it"
    assert smaller is not None
    assert (smaller.nodes, smaller.ranks) == (3, 24)
    assert smaller.reasons == ["3 of 4 nodes are left; the command runs on 2 or more"]
    assert shrunk_command(plan, 1) is None


def test_no_layout_is_planned_for_a_command(environment_data: Any) -> None:
    environment = validate_environment(environment_data({"training": OWN}), "demo.yaml")

    with pytest.raises(InvalidInput) as caught:
        make_plan(environment)

    assert str(caught.value) == (
        "environment demo: training.recipe must be given, got a command; a command has no layout that could be planned"
    )


@pytest.mark.parametrize(
    "image",
    [
        "pytorch/pytorch:2.9.0-cuda13.0-cudnn9-runtime",
        "nvcr.io/nvidia/nemo:25.09",
        f"ubuntu@{DIGEST}",
        f"localhost:5000/a/b__c:v1@{DIGEST}",
        "123456789012.dkr.ecr.us-east-1.amazonaws.com/megatron:2026-11",
    ],
)
def test_an_image_with_tag_or_digest_is_pinned(image: str) -> None:
    assert is_pinned_image(image)


@pytest.mark.parametrize(
    "image", ["ubuntu", "Ubuntu:1", "a/b:", "ubuntu@sha256:0a", "-it ubuntu:1", "ubuntu:1 sh", "ubuntu:1\n", ""]
)
def test_what_docker_would_not_take_or_what_may_change_is_no_pinned_image(image: str) -> None:
    assert not is_pinned_image(image)


def test_the_repository_of_an_ecr_image_is_read_off_its_name() -> None:
    found = ecr_repository("123456789012.dkr.ecr.cn-north-1.amazonaws.com.cn/team/megatron:2026-11")

    assert found is not None
    assert found.registry == "123456789012.dkr.ecr.cn-north-1.amazonaws.com.cn"
    assert (found.account, found.region, found.name) == ("123456789012", "cn-north-1", "team/megatron")
    assert ecr_repository("nvcr.io/nvidia/nemo:25.09") is None
