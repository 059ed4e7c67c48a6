"""Memory per rank against numbers worked out by hand for a model small enough to do so."""

from __future__ import annotations

import pytest

from trainfabric_plan.layout import Layout
from trainfabric_plan.planning import MemoryPerRank, memory_per_rank
from trainfabric_plan.recipes import ModelShape, Recipe


def recipe(precision: str = "bf16", vocabulary: int = 16, layers: int = 2) -> Recipe:
    return Recipe.model_validate(
        {
            "name": "by_hand",
            "description": "",
            "model": ModelShape(layers=layers, hidden=8, heads=2, vocabulary=vocabulary, sequence_length=4),
            "precision": precision,
            "micro_batch": 2,
            "global_batch": 16,
            "steps": 1,
            "checkpoint_every": 1,
        }
    )


def test_one_rank_holds_the_whole_model_and_all_optimizer_states() -> None:
    # parameters: 2 blocks of 872, embedding 16·8, positions 4·8, final norm 2·8; 8 tokens a micro-batch
    assert memory_per_rank(recipe(), Layout()) == MemoryPerRank(
        weights=1920 * 2,
        gradients=1920 * (2 + 4),
        optimizer=1920 * 12,
        activations=8 * (2 * 8 * (8 + 24) + 4 * 8),
        logits=8 * 16 * (2 + 4 + 8),
    )


def test_fp32_doubles_weights_gradients_and_activations_and_keeps_a_master_copy() -> None:
    assert memory_per_rank(recipe("fp32"), Layout()) == MemoryPerRank(
        weights=1920 * 4,
        gradients=1920 * 4,
        optimizer=1920 * 12,
        activations=2 * 8 * (2 * 8 * (8 + 24) + 4 * 8),
        logits=8 * 16 * (4 + 8),
    )


def test_the_total_is_the_sum_of_the_parts() -> None:
    assert memory_per_rank(recipe(), Layout()).total == 3840 + 11520 + 23040 + 4352 + 1792


def test_the_first_stage_of_a_pipeline_is_the_fullest_when_micro_batches_in_flight_outweigh_the_logits() -> None:
    # a block on a tensor rank: 824/2 cut + 48 replicated; embedding 8 rows of 8; positions 32; two micro-batches
    held = 460 + 64 + 32

    assert memory_per_rank(recipe(), Layout(data=2, pipeline=2, tensor=2)) == MemoryPerRank(
        weights=held * 2,
        gradients=held * (2 + 4),
        optimizer=held * 12 // 2,
        activations=2 * (8 * 8 * (8 + 12)),
        logits=0,
    )


def test_the_last_stage_of_a_pipeline_is_the_fullest_when_the_logits_outweigh_the_rest() -> None:
    # embedding 32 rows of 8, final norm 16, one micro-batch in flight
    held = 460 + 256 + 16

    assert memory_per_rank(recipe(vocabulary=64), Layout(data=2, pipeline=2, tensor=2)) == MemoryPerRank(
        weights=held * 2,
        gradients=held * (2 + 4),
        optimizer=held * 12 // 2,
        activations=8 * (8 * (8 + 12) + 4 * 8),
        logits=8 * 32 * (2 + 4 + 8),
    )


def test_no_more_micro_batches_are_in_flight_than_a_step_has() -> None:
    deep = recipe(layers=4)
    four_micro_batches = memory_per_rank(deep, Layout(data=2, pipeline=4)).activations
    two_micro_batches = memory_per_rank(deep, Layout(data=4, pipeline=4)).activations

    assert four_micro_batches == 2 * two_micro_batches == 4 * (8 * 8 * (8 + 24))


def test_an_uneven_pipeline_counts_the_stage_with_most_layers() -> None:
    three = memory_per_rank(recipe(layers=3), Layout(data=2, pipeline=2)).weights
    four = memory_per_rank(recipe(layers=4), Layout(data=2, pipeline=2)).weights

    assert three == four


@pytest.mark.parametrize("data", [1, 2, 4, 8])
def test_only_the_optimizer_states_shrink_with_the_data_degree(data: int) -> None:
    alone, shared = memory_per_rank(recipe(), Layout()), memory_per_rank(recipe(), Layout(data=data))

    assert shared.optimizer == alone.optimizer // data
    assert (shared.weights, shared.gradients, shared.activations, shared.logits) == (
        alone.weights,
        alone.gradients,
        alone.activations,
        alone.logits,
    )
