"""A coordinator that only controls, and workers in two placement groups: deployed, trained in, interrupted, ended."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.lab import AGENT, CONTROLLER, LAUNCHER, RENDEZVOUS, Lab, LocalNode, lab

STEPS, CHECKPOINT_EVERY, NOTICE_AFTER = 32, 16, 1
FLEET = """\
coordinator: control
max_nodes_per_group: 1
"""
CORPUS = Path(asyncio.__file__).parent


@pytest.fixture(scope="module")
def grouped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Two nodes of two ranks each, a placement group for either; a lost node is waited for."""
    directory = tmp_path_factory.mktemp("groups")
    with lab(directory, nodes=2, ranks_per_node=2, wait_s=300, name="groups", fleet=FLEET, corpus=CORPUS) as made:
        yield made


def test_two_groups_and_a_control_node_train_to_the_end_through_a_spot_notice(grouped: Lab) -> None:
    # given a job that trains, with its ranks in the order of the groups
    grouped.start("--steps", str(STEPS), "--checkpoint-every", str(CHECKPOINT_EVERY))
    grouped.wait_for_step_beyond(NOTICE_AFTER)
    coordinator, before = grouped.coordinator(), grouped.members()
    first, second = before
    assert groups_of(grouped, before) == [0, 1]
    assert ranks_of(before, epoch=1) == [[0, 1], [2, 3]]
    assert services_of(coordinator) == {CONTROLLER, RENDEZVOUS}
    # when EC2 takes the node of the first group
    first.ask("spot-notice")
    grouped.wait_for("another epoch", lambda: grouped.epoch()["number"] == 2)
    after = grouped.members()
    groups = groups_of(grouped, after)
    grouped.wait_for("the end", grouped.ended)
    # then another of its group has its ranks, before those of a node that was there all the time
    assert after[0] != first
    assert after[1] == second
    assert groups == [0, 1]
    assert ranks_of(after, epoch=2) == [[0, 1], [2, 3]]
    # and the coordinator has trained nothing
    assert ranks_of([coordinator], epoch=1) == ranks_of([coordinator], epoch=2) == [[]]
    # and no step was lost, none trained twice, up to the last
    assert [line["step"] for line in grouped.steps()] == list(range(1, STEPS + 1))
    assert {line["epoch"] for line in grouped.steps()} == {1, 2}
    status = grouped.status()
    assert (status["state"], status["step"], status["steps"]) == ("done", STEPS, STEPS)


def groups_of(made: Lab, members: list[LocalNode]) -> list[int]:
    """Placement groups in the order of the ranks."""
    placements = made.placements()
    return [placements[node.instance_id] for node in members]


def ranks_of(members: list[LocalNode], epoch: int) -> list[list[int]]:
    """Ranks that have run, node by node."""
    return [sorted(one.rank for one in node.ranks(epoch)) for node in members]


def services_of(node: LocalNode) -> set[str]:
    """Which of our services run on a node."""
    return {one for one in (AGENT, LAUNCHER, CONTROLLER, RENDEZVOUS) if node.service(one)}
