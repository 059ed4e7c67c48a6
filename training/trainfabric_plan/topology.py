"""Which nodes stand close to each other: ranges of node numbers and the placement group of each.

Nodes are numbered from 0, the coordinator first, as ranks are ordered: neighbours in rank order share a group.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from trainfabric_plan.errors import mistake


@dataclass(frozen=True, kw_only=True)
class PlacedNodes:
    """Neighbours in rank order that share a placement group.

    Attributes:
        first: Number of the first node, from 0.
        last: Number of the last node, itself included; `None` if the number of nodes is not known.
        group: Name of the placement group; `None` if they are in none.
    """

    first: int
    last: int | None
    group: str | None


@dataclass(frozen=True, kw_only=True)
class Topology:
    """The nodes of a fleet by placement group, in rank order."""

    placed: tuple[PlacedNodes, ...]

    def to_json(self) -> list[dict[str, Any]]:
        """As JSON knows it: a list of `{"first", "last", "group"}`."""
        return [{"first": nodes.first, "last": nodes.last, "group": nodes.group} for nodes in self.placed]

    def slurm_topology(self, prefix: str = "node-", *, start: int = 1) -> str:
        """Slurm's `topology.conf` for `TopologyPlugin=topology/tree`: a leaf switch per placement group.

        Slurm then fills a group before it goes on to the next (Slurm's topology guide, topology.html, 2026-11).
        Switches are numbered, since the name of a placement group may be known only when it is deployed.

        Args:
            prefix: What node names begin with; their number follows, such as `train-st-p5-` under ParallelCluster.
            start: Number of the first node in Slurm.

        Raises:
            InvalidInput: If the number of nodes is not known.
        """
        leaves = [
            f"SwitchName=group{number} Nodes={_hosts(prefix, nodes, start)}"
            for number, nodes in enumerate(self.placed, start=1)
        ]
        if len(leaves) > 1:
            leaves.append(f"SwitchName=fabric Switches=group[1-{len(leaves)}]")
        return "".join(f"{line}\n" for line in leaves)


def _hosts(prefix: str, nodes: PlacedNodes, start: int) -> str:
    if nodes.last is None:
        raise mistake(
            "topology", "nodes", "given", "nothing", "say how many nodes there are: switches name each of them"
        )
    first, last = nodes.first + start, nodes.last + start
    return f"{prefix}{first}" if first == last else f"{prefix}[{first}-{last}]"


def balanced_ranges(nodes: int, most: int) -> list[tuple[int, int]]:
    """Node numbers from 0, cut into as few ranges of at most `most` as there can be, none longer than another by two.

    Equal ranges, because the slowest placement group sets the pace of a collective: 401 nodes in groups of at most 200
    are 134, 134 and 133, not 200, 200 and a straggler.
    """
    ranges = -(-nodes // most)
    cuts = [-(-nodes * number // ranges) for number in range(ranges + 1)]
    return [(first, after - 1) for first, after in pairwise(cuts)]
