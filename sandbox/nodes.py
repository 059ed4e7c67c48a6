"""Local nodes: every running instance of a deployed environment becomes a machine on this one.

A node has a directory that stands for `/`, an address (`sandbox.network`) and a metadata service of its own, and runs
its own user data (`sandbox.node`). Files in its directory cause what happens to machines:

`spot-notice`: an interruption notice, and EC2 takes the instance two minutes later (the file's text may be the time);
`rebalance`: a rebalance recommendation; `power-off`: the power is cut, and EC2 finds the instance dead;
`freeze` and `thaw`: every process stops where it is, and goes on; `link-down` and `link-up`: it reaches nobody but its
metadata service while its processes go on, and it reaches all again (in network namespaces only).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sandbox.bridge import Bridge, be_allowed
from sandbox.fleet import Fleet, Instance
from sandbox.network import Loopback, Network
from sandbox.node.local_node import LocalNode, power_on
from sandbox.processes import Children, node_environment
from trainfabric_plan.errors import Refused

LOOK_S = 0.1
"""Between two looks at the nodes."""
ASK_S = 0.5
"""Between two questions to the embedded AWS."""
NOTICE_S = 120
SPOT_NOTICE, REBALANCE, POWER_OFF, FREEZE, THAW = "spot-notice", "rebalance", "power-off", "freeze", "thaw"
LINK_DOWN, LINK_UP = "link-down", "link-up"
SEEN = ".seen"
"""Ends the names of files that have had their effect."""
LOOPBACK, NAMESPACES = NETWORKS = ("loopback", "namespaces")
RELAY_LOG = "relay.log"


class NodeRunner:
    """Keeps as many local nodes as the embedded AWS says should run; call `tick` often, and `stop` in the end.

    Args:
        fleet: What should run.
        state: Directory in which every node has one.
        children: Ends the nodes with the rest.
        network: Connects them, and is closed by `stop`; the loopback interface if none is given.
    """

    def __init__(self, fleet: Fleet, state: Path, children: Children, network: Network | None = None) -> None:
        self._fleet = fleet
        self._state = state.resolve()
        self._children = children
        self._network = Loopback() if network is None else network
        self._environment = {**self._network.variables(node_environment()), "OMP_NUM_THREADS": "1"}
        self._asked = float("-inf")
        self._wanted: set[str] = set()
        self._taken: dict[str, datetime] = {}
        self.nodes: dict[str, LocalNode] = {}
        self._leaving: list[LocalNode] = []

    def tick(self) -> None:
        """Start nodes for new instances, stop those of instances that are gone, let faults happen.

        Raises:
            Unreachable: If the embedded AWS does not answer.
        """
        if time.monotonic() - self._asked >= ASK_S:
            self._follow(self._fleet.running())
            self._asked = time.monotonic()
        for node in list(self.nodes.values()):
            self._look_after(node)
        self._leaving = [node for node in self._leaving if not self._gone(node)]

    def stop(self) -> None:
        """Stop every node and wait for all of them."""
        for node in self.nodes.values():
            self._dismiss(node)
        self.nodes = {}
        for node in self._leaving:
            node.clear_away(self._children)
        self._leaving = []
        self._network.close()

    def _follow(self, running: list[Instance]) -> None:
        wanted = {instance.instance_id: instance for instance in running}
        for instance_id in self.nodes.keys() - wanted.keys():
            self._dismiss(self.nodes.pop(instance_id))
        for instance_id in sorted(wanted.keys() - self.nodes.keys()):
            self.nodes[instance_id] = self._begin(wanted[instance_id])

    def _begin(self, instance: Instance) -> LocalNode:
        node = power_on(
            self._children,
            instance,
            self._network.connect(),
            directory=self._state / instance.instance_id,
            lustre=self._state / "lustre",
            environment=self._environment,
        )
        _say(f"{instance.instance_id} started at {node.metadata.address}")
        return node

    def _look_after(self, node: LocalNode) -> None:
        faults: dict[str, Callable[[LocalNode, str], None]] = {
            SPOT_NOTICE: self._give_notice,
            REBALANCE: self._recommend,
            FREEZE: lambda node, _: node.freeze(),
            THAW: lambda node, _: node.thaw(),
            POWER_OFF: lambda node, _: node.power_off(),
            LINK_DOWN: lambda node, _: self._set_link(node, up=False),
            LINK_UP: lambda node, _: self._set_link(node, up=True),
        }
        for name, cause in faults.items():
            file = node.directory / name
            if file.exists():
                text = file.read_text().strip()
                file.rename(file.with_name(f"{name}{SEEN}"))
                cause(node, text)
                _say(f"{node.instance.instance_id}: {name}")
        if not node.is_on:
            self._lose(node, "is dead")
        elif node.instance.instance_id in self._taken and datetime.now(UTC) >= self._taken[node.instance.instance_id]:
            self._lose(node, "is taken back")

    def _give_notice(self, node: LocalNode, text: str) -> None:
        in_time = datetime.now(UTC) + timedelta(seconds=NOTICE_S)
        at = (notice_time(text) if text else None) or in_time
        node.metadata.interrupt(_in_utc(at))
        self._taken[node.instance.instance_id] = at

    def _recommend(self, node: LocalNode, _: str) -> None:
        node.metadata.recommend_rebalance(_in_utc(datetime.now(UTC)))

    def _set_link(self, node: LocalNode, *, up: bool) -> None:
        try:
            self._network.set_link(node.connection, up=up)
        except Refused as error:
            _say(str(error))

    def _lose(self, node: LocalNode, how: str) -> None:
        _say(f"{node.instance.instance_id} {how}: EC2 terminates it")
        self._fleet.terminate(node.instance.instance_id)
        self._dismiss(self.nodes.pop(node.instance.instance_id))
        self._asked = float("-inf")

    def _dismiss(self, node: LocalNode) -> None:
        node.child.ask_to_end()
        self._leaving.append(node)
        _say(f"{node.instance.instance_id} is gone: its node shuts down")

    def _gone(self, node: LocalNode) -> bool:
        if node.child.running:
            return False
        node.clear_away(self._children)
        return True


def run_nodes(environment: str, state: Path, network: str = LOOPBACK) -> None:
    """Run local nodes for a deployed environment until told to end; the network is one of `NETWORKS`.

    Raises:
        NotFound: If the environment is not deployed, or the network needs a program that is missing.
        Refused: If this user may not make network namespaces.
        Unreachable: If the embedded AWS does not answer (any more).
    """
    given = node_environment()
    if network == NAMESPACES:
        be_allowed()
    fleet = Fleet(environment)
    with Children() as children:
        made = Bridge(children, given, state / RELAY_LOG) if network == NAMESPACES else Loopback()
        runner = NodeRunner(fleet, state, children, made)
        try:
            while True:
                runner.tick()
                time.sleep(LOOK_S)
        finally:
            runner.stop()


def notice_time(text: str) -> datetime | None:
    """The moment that a notice names, in ISO 8601, UTC if it names no zone; `None` (and said) if it names none."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        _say(f"{SPOT_NOTICE} must be empty or an ISO 8601 time such as 2026-11-30T20:58:00Z, got {text}; two minutes")
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _in_utc(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _say(text: str) -> None:
    print(f"{datetime.now(UTC):%H:%M:%S} {text}", flush=True)
