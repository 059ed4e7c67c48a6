"""Failures that come again."""

from __future__ import annotations

import pytest

from tests.node.membership.field import Field
from tests.node.membership.test_core_losses import training
from trainfabric_node.membership.actions import Conclude
from trainfabric_node.membership.core import FRUITLESS_LOSSES
from trainfabric_plan.contract import Event


def fail(field: Field, number: int, step: int = 0, detail: str = "rank 2: out of memory", **more: object) -> None:
    """A node's ranks fail, and the others because of them; until the next epoch, or the end."""
    epochs = len(field.records)
    for node in field.nodes.values():
        if node.number != number and node.epoch:
            node.says("failed", step, of_others=True, detail="connection reset by peer")
    field.node(number).says("failed", step, detail=detail, **more)
    field.until(lambda: len(field.records) > epochs or field.conclusion)
    field.pass_s(0.2)


def test_three_failures_in_a_row_without_a_step_more_end_the_run() -> None:
    field = training()
    fail(field, 2, step=6)
    for number in (3, 4):
        fail(field, number, step=6)
        assert field.conclusion is None
    fail(field, 2, step=6)

    assert len(field.records) == 4
    assert field.conclusion == Conclude(
        state="failed",
        detail="failed 3 times in a row without a step or a checkpoint more; last, i-2: rank 2: out of memory",
    )


def test_the_reason_is_that_of_a_node_that_has_one_of_its_own() -> None:
    field = training()
    fail(field, 3, step=6, detail="rank 5: no space left on device")

    assert field.told(Event.EPOCH_ENDED)[0]["detail"] == "i-3: rank 5: no space left on device"


def test_where_all_failed_because_of_others_the_first_is_told() -> None:
    field = training()
    field.node(4).says("failed", of_others=True, detail="connection reset by peer")
    field.until(lambda: len(field.records) == 2)

    assert field.told(Event.EPOCH_ENDED)[0]["detail"] == "i-4: connection reset by peer"


def test_failures_with_progress_between_them_go_on_without_an_end() -> None:
    field = training()
    for step in range(6, 30):
        fail(field, step % 4 + 1, step=step)

    assert field.conclusion is None


def test_a_checkpoint_more_is_progress() -> None:
    field = training()
    for commits in range(1, 12):
        field.core.committed(commits)
        fail(field, commits % 4 + 1, step=0)

    assert field.conclusion is None


def test_an_epoch_that_left_in_order_breaks_a_row_of_failures() -> None:
    field = training()
    for _ in range(4):
        for number in (2, 3):
            fail(field, number)
        for node in field.nodes.values():
            node.says("resume", step=0)
        field.pass_s(0.3)

    assert field.conclusion is None


def test_lost_nodes_end_a_run_only_after_many_in_a_row() -> None:
    field = training(2)
    for lost in range(1, FRUITLESS_LOSSES + 1):
        assert field.conclusion is None
        field.node(lost + 2).ready = True
        field.node(max(field.nodes) - 1).is_silent = True
        epochs = len(field.records)
        field.until(lambda count=epochs: len(field.records) > count or field.conclusion)  # type: ignore[misc]
        field.pass_s(0.2)
    if field.conclusion is None:
        field.node(max(field.nodes)).is_silent = True
        field.until(lambda: field.conclusion)

    assert field.conclusion is not None
    assert field.conclusion.detail.startswith("failed 10 times in a row without a step or a checkpoint more; last, ")


def test_what_trying_again_cannot_help_ends_the_run_at_once() -> None:
    field = training()
    fail(field, 3, detail="recipe: sequence length must be at most 128, got 256", hopeless=True)

    assert field.conclusion == Conclude(
        state="failed", detail="i-3: recipe: sequence length must be at most 128, got 256"
    )
    assert len(field.records) == 1


def test_a_node_on_which_two_failures_in_a_row_began_is_given_back() -> None:
    field = training()
    fail(field, 3, step=6, detail="rank 5: uncorrectable memory error")
    assert field.replaced == []
    fail(field, 3, step=7, detail="rank 4: uncorrectable memory error")

    assert field.replaced == [("i-3", "two failures in a row began on it")]
    assert "i-3" not in field.epochs[2]


def test_failures_that_begin_on_different_nodes_give_none_back() -> None:
    field = training()
    for step, number in enumerate((3, 2, 3, 2), 6):
        fail(field, number, step=step)

    assert field.replaced == []


def test_failures_that_begin_on_all_nodes_give_none_back() -> None:
    field = training()
    for step in (6, 7):
        epochs = len(field.records)
        for node in field.nodes.values():
            node.says("failed", step, detail="a bug")
        field.until(lambda count=epochs: len(field.records) > count)  # type: ignore[misc]
        field.pass_s(0.2)

    assert field.replaced == []


def test_the_controllers_own_node_is_not_given_back_for_failures() -> None:
    field = training()
    for step in (6, 7, 8):
        fail(field, 1, step=step)

    assert field.replaced == []


@pytest.mark.parametrize("nodes", [1, 2])
def test_a_fleet_of_few_nodes_recovers_too(nodes: int) -> None:
    field = training(nodes)
    fail(field, nodes, step=6)

    assert field.epochs == 2 * [[f"i-{number}" for number in range(1, nodes + 1)]]
