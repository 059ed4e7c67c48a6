from __future__ import annotations

import json

import pytest

from trainfabric_plan.errors import InvalidInput
from trainfabric_plan.topology import PlacedNodes, Topology, balanced_ranges


@pytest.mark.parametrize(
    ("nodes", "most", "ranges"),
    [
        (1, 1, [(0, 0)]),
        (4, 4, [(0, 3)]),
        (4, 100, [(0, 3)]),
        (5, 2, [(0, 1), (2, 3), (4, 4)]),
        (400, 200, [(0, 199), (200, 399)]),
        (401, 200, [(0, 133), (134, 267), (268, 400)]),
    ],
)
def test_nodes_are_cut_into_as_few_equal_ranges_as_there_can_be(
    nodes: int, most: int, ranges: list[tuple[int, int]]
) -> None:
    assert balanced_ranges(nodes, most) == ranges


def test_every_node_is_in_one_range_and_no_range_is_longer_than_another_by_two() -> None:
    for nodes in range(1, 70):
        for most in range(1, nodes + 3):
            ranges = balanced_ranges(nodes, most)
            sizes = [last - first + 1 for first, last in ranges]

            assert [number for first, last in ranges for number in range(first, last + 1)] == list(range(nodes))
            assert max(sizes) <= most
            assert max(sizes) - min(sizes) <= 1
            assert len(ranges) == -(-nodes // most)


def test_slurm_gets_a_switch_for_each_placement_group_under_one_of_all() -> None:
    topology = Topology(
        placed=(PlacedNodes(first=0, last=199, group="one"), PlacedNodes(first=200, last=399, group="two"))
    )

    assert topology.slurm_topology() == (
        "SwitchName=group1 Nodes=node-[1-200]\n"
        "SwitchName=group2 Nodes=node-[201-400]\n"
        "SwitchName=fabric Switches=group[1-2]\n"
    )


def test_slurm_names_nodes_as_its_cluster_does() -> None:
    one = Topology(placed=(PlacedNodes(first=0, last=0, group=None),))

    assert one.slurm_topology("train-st-p5-", start=0) == "SwitchName=group1 Nodes=train-st-p5-0\n"


def test_slurm_has_no_use_for_nodes_without_number() -> None:
    with pytest.raises(InvalidInput) as refused:
        Topology(placed=(PlacedNodes(first=0, last=None, group=None),)).slurm_topology()

    assert str(refused.value) == (
        "topology: nodes must be given, got nothing; say how many nodes there are: switches name each of them"
    )


def test_a_topology_is_plain_data() -> None:
    topology = Topology(placed=(PlacedNodes(first=0, last=1, group="one"), PlacedNodes(first=2, last=None, group=None)))

    assert json.loads(json.dumps(topology.to_json())) == [
        {"first": 0, "last": 1, "group": "one"},
        {"first": 2, "last": None, "group": None},
    ]
