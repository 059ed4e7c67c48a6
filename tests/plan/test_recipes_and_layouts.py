from __future__ import annotations

import pytest
from pydantic import ValidationError

from trainfabric_plan.errors import NotFound
from trainfabric_plan.layout import Layout, accumulation, layout_problems
from trainfabric_plan.recipes import RECIPES, ModelShape, Recipe, recipe

EVERY_RECIPE = pytest.mark.parametrize("one", RECIPES.values(), ids=lambda one: one.name)


@EVERY_RECIPE
def test_a_recipe_comes_back_from_json_as_it_was(one: Recipe) -> None:
    assert Recipe.model_validate_json(one.model_dump_json()) == one


@EVERY_RECIPE
def test_a_recipe_runs_on_one_rank_and_reaches_its_full_learning_rate_and_a_checkpoint(one: Recipe) -> None:
    assert list(layout_problems(Layout(), one, 1)) == []
    assert one.warmup_steps < one.steps
    assert one.checkpoint_every < one.steps
    assert one.description


@EVERY_RECIPE
def test_parameters_are_the_sum_over_the_tensors_of_the_model(one: Recipe) -> None:
    h, v, s = one.model.hidden, one.model.vocabulary, one.model.sequence_length
    norm = [h, h]
    attention = [h * h, h] * 4
    feed_forward = [h * 4 * h, 4 * h, 4 * h * h, h]

    assert one.model.parameters == v * h + s * h + one.model.layers * sum(norm * 2 + attention + feed_forward) + 2 * h


def test_the_large_recipe_has_1_3_billion_parameters() -> None:
    assert RECIPES["gpt_1b3_4x_p5"].model.parameters == 1_315_819_520


def test_an_unknown_recipe_is_refused_with_the_nearest() -> None:
    with pytest.raises(NotFound) as caught:
        recipe("tiny_gpu")

    assert str(caught.value) == (
        "recipes: recipe must be one of gpt_1b3_4x_p5, tiny_cpu, got tiny_gpu; did you mean tiny_cpu?"
    )


def test_heads_divide_the_width_of_a_model() -> None:
    with pytest.raises(ValidationError, match="such that heads divide hidden, got 3 heads and hidden 8"):
        ModelShape(layers=1, hidden=8, heads=3, vocabulary=16, sequence_length=4)


def test_a_layout_says_what_it_is_and_how_many_ranks_it_takes() -> None:
    layout = Layout(data=4, pipeline=2, tensor=8)

    assert layout.ranks == 64
    assert str(layout) == "data 4 × pipeline 2 × tensor 8"


@pytest.mark.parametrize("data", [1, 2, 4, 8])
def test_accumulation_keeps_the_global_batch(data: int) -> None:
    tiny = RECIPES["tiny_cpu"]

    assert accumulation(tiny, data) * data * tiny.micro_batch == tiny.global_batch


def test_every_reason_against_a_layout_is_given() -> None:
    problems = list(layout_problems(Layout(data=3, pipeline=5, tensor=3), RECIPES["tiny_cpu"], 8))

    assert [(problem.rule, problem.got) for problem in problems] == [
        ("a layout of 8 ranks (nodes × ranks per node)", "data 3 × pipeline 5 × tensor 3 = 45"),
        ("such that tensor divides the 4 attention heads of tiny_cpu", "tensor 3"),
        ("such that pipeline is at most the 4 layers of tiny_cpu", "pipeline 5"),
        ("such that micro-batch 2 × data divides global batch 16", "data 3"),
    ]
