from __future__ import annotations

import math

import pytest
import torch

from tests.training.conftest import SMALL
from trainfabric_training.engine.optimizer import Schedule, adamw, learning_rate
from trainfabric_training.engine.reference import SequentialModel, clip_gradients
from trainfabric_training.engine.slices import check_cover
from trainfabric_training.model import gpt_layers
from trainfabric_training.parallel import Mesh, info_of

RECIPE = SMALL.model_copy(update={"learning_rate": 1.0, "warmup_steps": 4, "steps": 14})


def model() -> SequentialModel:
    return SequentialModel(gpt_layers(SMALL.model, Mesh(), 1))


def test_the_rate_warms_up_in_a_line_and_falls_by_a_cosine_to_a_tenth() -> None:
    assert [learning_rate(RECIPE, taken) for taken in range(5)] == [0.25, 0.5, 0.75, 1.0, 1.0]
    assert learning_rate(RECIPE, 9) == pytest.approx(0.55)
    assert learning_rate(RECIPE, 14) == pytest.approx(0.1)
    assert learning_rate(RECIPE, 99) == pytest.approx(0.1)


def test_a_schedule_sets_the_rate_of_every_group_and_goes_on_from_its_state() -> None:
    optimizer = adamw(model().parameters(), RECIPE)
    schedule = Schedule(optimizer, RECIPE)
    schedule.step()
    schedule.step()

    again = Schedule(adamw(model().parameters(), RECIPE), RECIPE)
    again.load_state_dict(schedule.state_dict())

    assert [group["lr"] for group in optimizer.param_groups] == [0.75, 0.75] == again.get_last_lr()


def test_weights_decay_and_biases_and_norms_do_not() -> None:
    decaying, others = adamw(model().parameters(), RECIPE).param_groups

    assert (decaying["weight_decay"], others["weight_decay"]) == (0.1, 0.0)
    names = {info_of(parameter).name for parameter in others["params"]}
    assert {"norm.weight", "norm.bias", "blocks.0.attention_norm.weight", "blocks.0.attention.output.bias"} <= names
    assert not any(name.startswith(("embedding", "positions")) for name in names)
    assert {info_of(parameter).name for parameter in decaying["params"]}.isdisjoint(names)


def test_gradients_are_clipped_by_their_global_norm() -> None:
    layer = torch.nn.Linear(2, 1)
    layer.weight.grad, layer.bias.grad = torch.tensor([[3.0, 0.0]]), torch.tensor([4.0])

    norm = clip_gradients(layer, 1.0)

    assert norm == 5.0
    assert torch.allclose(layer.weight.grad, torch.tensor([[0.6, 0.0]]), rtol=1e-6)
    assert math.isclose(clip_gradients(layer, 2.0), 1.0, rel_tol=1e-6)


@pytest.mark.parametrize(
    ("covers", "message"),
    [
        ([("w", 0, 4), ("w", 5, 5)], "slices of w must follow each other, got one at 5 behind 4"),
        ([("w", 0, 4), ("w", 3, 7)], "slices of w must follow each other, got one at 3 behind 4"),
        ([("w", 0, 4)], "slices of w must cover its 10 elements, got 4"),
        ([], "slices of w must cover its 10 elements, got 0"),
    ],
)
def test_slices_that_do_not_cover_a_parameter_once_stop_the_start(
    covers: list[tuple[str, int, int]], message: str
) -> None:
    shares = [([one], {"w": 10}) for one in covers] or [([], {"w": 10})]

    with pytest.raises(RuntimeError, match=f"^{message}$"):
        check_cover(shares)
