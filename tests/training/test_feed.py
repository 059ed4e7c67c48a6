from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from tests.training.conftest import SMALL
from trainfabric_plan.layout import Layout
from trainfabric_training.data import sample_index
from trainfabric_training.feed import Feed
from trainfabric_training.parallel import Mesh


class Numbered:
    """Samples whose every token is their number."""

    def __len__(self) -> int:
        return 23

    def sample(self, number: int) -> npt.NDArray[np.int64]:
        return np.full(SMALL.model.sequence_length + 1, number, dtype=np.int64)


def consumed(layout: Layout, rank: int, step: int) -> list[int]:
    feed = Feed(samples=Numbered(), order=sample_index, recipe=SMALL, mesh=Mesh(layout=layout, rank=rank))
    batches = list(feed.micro_batches(step))
    assert all(inputs.shape == labels.shape == (2, 16) for inputs, labels in batches)
    return [int(row[0]) for inputs, _ in batches for row in inputs]


@pytest.mark.parametrize("step", [1, 2, 7])
@pytest.mark.parametrize("data", [2, 4])
def test_data_ranks_together_consume_what_one_rank_does_in_order(step: int, data: int) -> None:
    layout = Layout(data=data)

    together = [number for rank in range(data) for number in consumed(layout, rank, step)]

    assert together == consumed(Layout(), 0, step)
    assert len(together) == SMALL.global_batch


def test_ranks_of_one_replica_consume_the_same() -> None:
    layout = Layout(data=2, pipeline=2, tensor=2)

    assert consumed(layout, 0, 3) == consumed(layout, 1, 3) == consumed(layout, 4, 3) == consumed(layout, 5, 3)
    assert consumed(layout, 0, 3) != consumed(layout, 2, 3)


def test_every_sample_comes_once_in_an_epoch() -> None:
    seen = [number for step in range(1, 24) for number in consumed(Layout(), 0, step)]

    epochs = [seen[first : first + 23] for first in range(0, len(seen) - 22, 23)]
    assert len(epochs) == 8
    assert all(sorted(epoch) == list(range(23)) for epoch in epochs)


def test_labels_are_the_inputs_one_token_later() -> None:
    class Counting(Numbered):
        def sample(self, number: int) -> npt.NDArray[np.int64]:
            return np.arange(SMALL.model.sequence_length + 1, dtype=np.int64) + number

    feed = Feed(samples=Counting(), order=sample_index, recipe=SMALL, mesh=Mesh())

    inputs, labels = next(feed.micro_batches(1))

    assert (labels == inputs + 1).all()
