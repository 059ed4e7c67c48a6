"""Engine state in this process: saved, restored, saved again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
import torch

from tests.training.conftest import SMALL, Workplace
from tests.training.state import assert_equal_bits, whole_tensors
from trainfabric_node.checkpoint import CheckpointStore
from trainfabric_node.store import open_store
from trainfabric_plan.recipes import Recipe
from trainfabric_training.data import open_corpus, sample_index
from trainfabric_training.engine import StatefulEngine, distributed_engine
from trainfabric_training.engine.checkpoint import Run, restore, save
from trainfabric_training.engine.processes import joined
from trainfabric_training.feed import Feed
from trainfabric_training.parallel import Mesh, Ranks
from trainfabric_training.settings import RankSettings, export

CPU = torch.device("cpu")
BF16 = SMALL.model_copy(update={"precision": "bf16"})


@pytest.fixture
def alone() -> Iterator[Ranks]:
    with patch.dict(os.environ):
        export(RankSettings(), cpu=True)
        with joined(RankSettings(), CPU) as ranks:
            yield ranks


def saved(engine: StatefulEngine, ranks: Ranks, where: Path, step: int) -> CheckpointStore:
    checkpoints = CheckpointStore(open_store(str(where)))
    checkpoints.claim("tests")
    save(engine, checkpoints, ranks, Run(job="tests", nonce="tests", code_version="tests"), step)
    return checkpoints


def feed(workplace: Workplace, recipe: Recipe) -> Feed:
    corpus = open_corpus(str(workplace.corpus), recipe.model.sequence_length, workplace.directory / "cache")
    return Feed(samples=corpus, order=sample_index, recipe=recipe, mesh=Mesh())


def test_what_eight_ranks_saved_is_bit_for_bit_what_one_rank_restores(
    committed: Path, tmp_path: Path, alone: Ranks
) -> None:
    checkpoints = CheckpointStore(open_store(str(committed)))
    engine = distributed_engine(SMALL, Mesh(), alone, CPU)

    restore(engine, checkpoints, alone, checkpoints.at_step(12))
    saved(engine, alone, tmp_path / "again", 12)

    assert_equal_bits(whole_tensors(tmp_path / "again", 12), whole_tensors(committed, 12))


@pytest.mark.parametrize("recipe", [SMALL, BF16], ids=["ZeRO optimizer", "bf16 optimizer"])
def test_a_restored_engine_goes_on_as_if_it_had_never_stopped(
    recipe: Recipe, workplace: Workplace, tmp_path: Path, alone: Ranks
) -> None:
    data = feed(workplace, recipe)
    engine = distributed_engine(recipe, Mesh(), alone, CPU)
    for step in (1, 2, 3):
        engine.train_step(data.micro_batches(step))
    checkpoints = saved(engine, alone, tmp_path, 3)
    random_before = torch.rand(3)
    expected = [engine.train_step(data.micro_batches(step)) for step in (4, 5)]

    again = distributed_engine(recipe, Mesh(), alone, CPU)
    restore(again, checkpoints, alone, checkpoints.at_step(3))

    assert torch.equal(torch.rand(3), random_before)
    assert [again.train_step(data.micro_batches(step)) for step in (4, 5)] == expected
    assert again.counters() == engine.counters()


def test_bf16_trains_close_to_fp32(workplace: Workplace, alone: Ranks) -> None:
    losses = []
    for recipe in (SMALL, BF16):
        engine, data = distributed_engine(recipe, Mesh(), alone, CPU), feed(workplace, recipe)
        losses.append([engine.train_step(data.micro_batches(step)).loss for step in range(1, 6)])

    assert losses[0] != losses[1]
    assert losses[1] == pytest.approx(losses[0], abs=0.02)
