"""What a controller knows of the nodes: what they last said, and how long they have been silent."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from trainfabric_node.jobs.records import JobPins
from trainfabric_node.membership.protocol import Beat, EpochNode, EpochRecord, NodeEpoch, Notice, most_urgent
from trainfabric_node.membership.timing import Timing
from trainfabric_plan.contract import Role

_BEATS = 4
"""A node that has missed so many beats is silent: nothing is decided about it until it is heard again or dead."""


@dataclass(kw_only=True)
class Node:
    """One node, by its last beat.

    Attributes:
        beat: What it last said.
        announced: What EC2 has announced about it to the controller.
        heard: When.
        joined: Whether it has been up, warm and right since it was last lost.
        lost: Whether it is counted out for its silence.
        replaced: Whether it is given back, or to be; it is taken in no more.
        given_up: Whether that is for its silence alone, and not carried out yet: heard again, it stays.
        spared: When giving it back for its silence was last put off; from then on its silence counts anew.
        was_ready: Whether it has ever been warm.
        noticed: Kinds of notices that were told.
        former: Incarnations of its supervisor that are gone.
    """

    beat: Beat
    heard: float
    announced: Notice | None = None
    joined: bool = False
    lost: bool = False
    replaced: bool = False
    given_up: bool = False
    spared: float = float("-inf")
    was_ready: bool = False
    noticed: set[str] = field(default_factory=set)
    former: set[str] = field(default_factory=set)

    @property
    def notice(self) -> Notice | None:
        """Why it is about to go, from whichever source says what leaves less time; its own metadata if both agree."""
        return most_urgent(self.beat.notice, self.announced)

    @property
    def is_leaving(self) -> bool:
        """Whether it is about to go for certain."""
        return self.notice is not None and self.notice.kind in ("spot", "leave")

    @property
    def is_at_risk(self) -> bool:
        """Whether EC2 recommends to do without it."""
        return self.notice is not None and self.notice.kind == "rebalance"

    def of_epoch(self, record: EpochRecord) -> NodeEpoch | None:
        """How far it is in an epoch, if it has said so."""
        said = self.beat.epoch
        return said if said is not None and said.number == record.number else None


class Roster:
    """All nodes that have been heard in a run.

    Args:
        timing: How long silence is borne.
        pins: What nodes must have been launched with.
        since: When the controller began to listen; before, nobody was silent.
        shares: How many nodes are wanted in each placement group; any number if not given.
    """

    def __init__(
        self, timing: Timing, pins: JobPins | None, since: float, shares: Mapping[int, int] | None = None
    ) -> None:
        self._shares = shares
        self._timing = timing
        self._pins = pins
        self._nodes: dict[str, Node] = {}
        self.since = since

    def __iter__(self) -> Iterator[Node]:
        return iter(self._nodes.values())

    def get(self, instance_id: str) -> Node | None:
        """The node of this id, if it has ever been heard."""
        return self._nodes.get(instance_id)

    def hear(self, beat: Beat, now: float) -> bool:
        """Takes a beat in, unless a later one is known; whether there is news in it besides that the node lives."""
        node = self._nodes.get(beat.instance_id)
        if node is None:
            self._nodes[beat.instance_id] = Node(beat=beat, heard=now, was_ready=beat.ready)
            return True
        if beat.incarnation in node.former:
            return False
        if beat.incarnation != node.beat.incarnation:
            node.former.add(node.beat.incarnation)
            node.joined = False
        elif beat.sequence < node.beat.sequence:
            return False
        news = node.lost or beat.model_copy(update={"sequence": node.beat.sequence}) != node.beat
        node.beat, node.heard, node.lost = beat, now, False
        node.was_ready = node.was_ready or beat.ready
        if node.given_up:
            node.given_up = node.replaced = False
        return news

    def announce(self, instance_id: str, notice: Notice) -> bool:
        """Takes in what EC2 announces about a node; whether it is one of the run's, and this is news."""
        node = self._nodes.get(instance_id)
        if node is None:
            return False
        before, node.announced = node.notice, most_urgent(node.announced, notice)
        return node.notice != before

    def silence_s(self, instance_id: str, now: float) -> float:
        """How long a node has not been heard, as far as the controller has listened."""
        node = self._nodes.get(instance_id)
        return now - max(self.since, node.heard if node else self.since)

    def was_heard_after(self, instance_id: str, moment: float) -> bool:
        """Whether a node is known to have lived after a moment."""
        node = self._nodes.get(instance_id)
        return node is not None and node.heard > moment

    def is_silent(self, instance_id: str, now: float) -> bool:
        """Whether it has missed several beats."""
        return self.silence_s(instance_id, now) > _BEATS * self._timing.beat_s

    def is_dead(self, instance_id: str, now: float) -> bool:
        """Whether its silence is believed to be its end."""
        return self.silence_s(instance_id, now) > self._timing.dead_s

    def hears_others(self, instance_id: str, own_id: str, now: float) -> bool:
        """Whether at least half of the other nodes that lived when a node was last heard are heard still.

        If not, it is the controller's own network that is down, and the node may be well. The controller's own node is
        heard without a network and does not count; nor do nodes that are gone.
        """
        node = self._nodes[instance_id]
        others = [other for other in self if other.beat.instance_id not in (instance_id, own_id)]
        lived = [
            other.beat.instance_id
            for other in others
            if other.heard >= node.heard - self._timing.dead_s and (other.given_up or not other.replaced)
        ]
        return 2 * sum(not self.is_dead(name, now) for name in lived) >= len(lived)

    def refusal(self, node: Node) -> str:
        """In which pin a node differs from the job; empty if it may be taken in."""
        if self._pins is None:
            return ""
        said = node.beat.pins
        images = sorted({group.image_id for group in self._pins.groups.values()})
        for name, wanted, got in (
            ("training asset", [self._pins.asset_key], said.asset_key),
            ("image", images, said.image_id),
        ):
            if wanted and got is not None and got not in wanted:
                return f"{name} must be {' or '.join(wanted)}, got {got}"
        return ""

    def is_right(self, node: Node) -> bool:
        """Whether a node is warm, stays, and was launched as the job wants it."""
        return node.beat.ready and not (node.is_leaving or node.replaced or self.refusal(node))

    def candidates(self, now: float, before: EpochRecord | None = None) -> list[Node]:
        """Nodes that can train now, in the order in which they are taken.

        Nodes at risk come last; else first as many of each placement group as the job wants there, so that a lost node
        is made good with one that is near the others. Within both in the order of ranks, see `members`.
        """
        ranks = {node.instance_id: rank for rank, node in enumerate(before.nodes)} if before else {}
        heard = [node for node in self if self.is_right(node) and not self.is_silent(node.beat.instance_id, now)]
        in_order = sorted(heard, key=lambda node: (node.is_at_risk, *_place(node, ranks)))
        wanted, beyond = self._by_share(in_order)
        return sorted(wanted + beyond, key=lambda node: node.is_at_risk)

    def _by_share(self, nodes: list[Node]) -> tuple[list[Node], list[Node]]:
        """As many nodes of each placement group as are wanted there, and the others."""
        left = dict(self._shares) if self._shares is not None else None
        wanted, beyond = list[Node](), list[Node]()
        for node in nodes:
            placement = node.beat.placement
            is_wanted = left is None or left.get(placement, 0) > 0
            (wanted if is_wanted else beyond).append(node)
            if left is not None and is_wanted:
                left[placement] -= 1
        return wanted, beyond

    def undecided(self, now: float) -> list[Node]:
        """Nodes that could train if they were heard again, which is not given up yet."""
        ids = [(node, node.beat.instance_id) for node in self if self.is_right(node)]
        return [node for node, name in ids if self.is_silent(name, now) and not self.is_dead(name, now)]


def members(nodes: list[Node], before: EpochRecord | None) -> tuple[EpochNode, ...]:
    """These nodes as members of an epoch, in the order of their ranks.

    By placement group, so that neighbouring ranks are near each other; in one the coordinator first, then the order of
    the epoch before, then by address.
    """
    ranks = {node.instance_id: rank for rank, node in enumerate(before.nodes)} if before else {}
    beats = [node.beat for node in sorted(nodes, key=lambda node: _place(node, ranks))]
    return tuple(
        EpochNode(instance_id=beat.instance_id, address=beat.address, incarnation=beat.incarnation) for beat in beats
    )


def _place(node: Node, ranks: dict[str, int]) -> tuple[int, bool, int, tuple[int, int, str], str]:
    beat = node.beat
    rank = ranks.get(beat.instance_id, len(ranks))
    return beat.placement, beat.role is not Role.COORDINATOR, rank, _number(beat.address), beat.instance_id


def _number(address: str) -> tuple[int, int, str]:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return 9, 0, address
    return parsed.version, int(parsed), ""
