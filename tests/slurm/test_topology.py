"""What a real Slurm makes of the topology of placement groups."""

from __future__ import annotations

from pathlib import Path

from tests.slurm.slurm_lab import slurm
from trainfabric_plan.topology import PlacedNodes, Topology, balanced_ranges


def topology_of(nodes: int, most: int) -> Topology:
    """Nodes in placement groups of at most so many, as a fleet has them."""
    ranges = balanced_ranges(nodes, most)
    return Topology(placed=tuple(PlacedNodes(first=first, last=last, group=None) for first, last in ranges))


def test_slurm_reads_a_switch_for_each_placement_group(tmp_path: Path) -> None:
    topology = topology_of(401, most=200)

    with slurm(tmp_path, nodes="node-[1-401]", topology=topology.slurm_topology()) as controller:
        switches = controller.switches()

    assert {name: (found["Level"], found["Nodes"]) for name, found in switches.items()} == {
        "group1": ("0", "node-[1-134]"),
        "group2": ("0", "node-[135-268]"),
        "group3": ("0", "node-[269-401]"),
        "fabric": ("1", "node-[1-401]"),
    }
    assert switches["fabric"]["Switches"] == "group[1-3]"


def test_slurm_reads_nodes_that_are_named_as_a_cluster_names_them(tmp_path: Path) -> None:
    topology = topology_of(2, most=2)

    with slurm(tmp_path, nodes="train-st-p5-[1-2]", topology=topology.slurm_topology("train-st-p5-")) as controller:
        switches = controller.switches()

    assert {name: found["Nodes"] for name, found in switches.items()} == {"group1": "train-st-p5-[1-2]"}


def test_slurm_keeps_each_job_within_a_placement_group(tmp_path: Path) -> None:
    # given groups of four and three nodes
    with slurm(tmp_path, nodes="node-[1-7]", topology=topology_of(7, most=4).slurm_topology()) as controller:
        # when jobs come that fill one of them each
        three, four = controller.nodes_of_job(3), controller.nodes_of_job(4)

    # then they do not get the next nodes by number
    assert three == ["node-5", "node-6", "node-7"]
    assert four == ["node-1", "node-2", "node-3", "node-4"]
