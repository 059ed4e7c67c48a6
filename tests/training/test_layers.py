from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from trainfabric_plan.layout import Layout
from trainfabric_plan.recipes import ModelShape
from trainfabric_training.engine.reference import SequentialModel
from trainfabric_training.model import gpt_layers
from trainfabric_training.parallel import (
    Initial,
    Mesh,
    VocabularyEmbedding,
    VocabularyParallelCrossEntropy,
    coordinates,
    info_of,
)
from trainfabric_training.parallel.layers import padded_vocabulary

SHAPE = ModelShape(layers=2, hidden=16, heads=4, vocabulary=21, sequence_length=8)


def shards(tensor_degree: int) -> list[dict[str, torch.nn.Parameter]]:
    """The parameters that each tensor rank makes, by name; no rank needs the others for that."""
    layout = Layout(tensor=tensor_degree)
    models = [SequentialModel(gpt_layers(SHAPE, Mesh(layout=layout, rank=rank), 5)) for rank in range(tensor_degree)]
    return [{info_of(parameter).name: parameter for parameter in model.parameters()} for model in models]


@pytest.mark.parametrize("tensor_degree", [2, 4])
def test_the_shards_of_all_ranks_are_the_weights_of_one_rank(tensor_degree: int) -> None:
    whole, cut = shards(1)[0], shards(tensor_degree)

    for name, parameter in whole.items():
        geometry = info_of(cut[0][name]).geometry
        if geometry.sharded_dimension is None:
            assert all(torch.equal(parameter, shard[name]) for shard in cut)
        else:
            together = torch.cat([shard[name] for shard in cut], geometry.sharded_dimension)
            assert geometry.logical_size is not None
            logical = parameter.narrow(geometry.sharded_dimension, 0, geometry.logical_size)
            assert torch.equal(logical, together.narrow(geometry.sharded_dimension, 0, geometry.logical_size))


def test_names_and_number_of_parameters_are_those_of_the_recipe() -> None:
    whole = shards(1)[0]
    padding = padded_vocabulary(SHAPE.vocabulary, 1) - SHAPE.vocabulary

    assert sum(parameter.numel() for parameter in whole.values()) == SHAPE.parameters + padding * SHAPE.hidden
    assert {name.split(".")[0] for name in whole} == {"embedding", "positions", "blocks", "norm"}
    assert whole["blocks.1.attention.query_key_value.weight"].shape == (3, 16, 16)


def test_padding_of_the_vocabulary_starts_at_zero() -> None:
    embedding = VocabularyEmbedding(Mesh(), Initial(seed=1, deviation=0.02), "embedding", 21, 16)

    assert embedding.weight.shape == (24, 16)
    assert torch.equal(embedding.weight[21:], torch.zeros(3, 16))
    assert bool((embedding.weight[:21] != 0).all())


@pytest.mark.parametrize(("vocabulary", "tensor_degree", "padded"), [(64, 1, 64), (65, 1, 72), (64, 4, 64), (9, 4, 32)])
def test_a_vocabulary_is_padded_to_a_multiple_of_eight_times_the_tensor_degree(
    vocabulary: int, tensor_degree: int, padded: int
) -> None:
    assert padded_vocabulary(vocabulary, tensor_degree) == padded


def test_padded_logits_take_no_part_in_the_loss_and_get_no_gradient() -> None:
    logits = torch.randn(2, 5, 24, generator=torch.Generator().manual_seed(1)).requires_grad_()
    labels = torch.randint(0, 21, (2, 5), generator=torch.Generator().manual_seed(2))

    loss = VocabularyParallelCrossEntropy(Mesh(), 21)(logits, labels)
    loss.backward()

    expected = functional.cross_entropy(logits.detach()[..., :21].flatten(0, 1), labels.flatten())
    assert logits.grad is not None
    assert torch.allclose(loss.detach(), expected, rtol=1e-6, atol=0)
    assert torch.equal(logits.grad[..., 21:], torch.zeros(2, 5, 3))


def test_tensor_neighbours_are_adjacent_ranks_then_data_then_pipeline() -> None:
    layout = Layout(data=2, pipeline=3, tensor=2)

    places = [coordinates(layout, rank) for rank in range(layout.ranks)]

    assert [place.tensor for place in places] == [0, 1] * 6
    assert [place.data for place in places] == [0, 0, 1, 1] * 3
    assert [place.pipeline for place in places] == [0] * 4 + [1] * 4 + [2] * 4
