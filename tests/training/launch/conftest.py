from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.training.conftest import SMALL, Workplace, plan_of
from tests.training.launch.nodes import EpochFiles, Fleet, Node, running_fleet, wait_until
from trainfabric_node.checkpoint import CheckpointStore
from trainfabric_node.store import PosixStore
from trainfabric_plan.layout import Layout

RANKS_PER_NODE = 2


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Two nodes, warm, and a store."""
    with running_fleet(tmp_path_factory.mktemp("fleet")) as running:
        running.start_nodes(2)
        yield running


@dataclass(kw_only=True)
class Epoch:
    """An epoch that was started, seen from outside."""

    fleet: Fleet
    number: int
    nodes: list[Node]
    agents: list[int] = field(default_factory=list)

    @property
    def files(self) -> list[EpochFiles]:
        return [self.fleet.files(self.number, node) for node in self.nodes]

    @property
    def ranks(self) -> range:
        return range(len(self.nodes) * RANKS_PER_NODE)

    def of(self, rank: int) -> EpochFiles:
        return self.files[rank // RANKS_PER_NODE]

    def wait_for_step(self, step: int) -> None:
        """Until every rank has finished it."""

        def reached() -> bool:
            assert not any(self.of(rank).end(rank) for rank in self.ranks), [one.log for one in self.files]
            return all(self.of(rank).beat(rank).get("step", 0) >= step for rank in self.ranks)

        wait_until(reached, f"step {step}")

    def statuses(self) -> list[int]:
        """Exit statuses of the agents, once all have ended."""
        answers = [node.client.answer() for node in self.nodes]
        assert all(answer and answer["ended"] == self.number for answer in answers), answers
        return [answer["status"] for answer in answers if answer]

    def kill(self) -> None:
        for node in self.nodes:
            node.client.send(kill=self.number)
        for node in self.nodes:
            while (answer := node.client.answer()) != {"killed": self.number}:
                assert answer is not None


@dataclass(kw_only=True)
class Job:
    """A job on the fleet: claims epochs, as the controller does, and starts them."""

    fleet: Fleet
    workplace: Workplace
    directory: Path
    last: int

    @property
    def checkpoints(self) -> CheckpointStore:
        return CheckpointStore(PosixStore(self.directory))

    def committed(self) -> list[tuple[int, str]]:
        return [(entry.step, entry.nonce) for entry in self.checkpoints.commits()]

    def start(self, layout: Layout, *more: str, rendezvous: str | None = None) -> Epoch:
        """Starts an epoch of this layout on as many nodes as it needs."""
        self.last += 1
        nodes = self.fleet.nodes[: layout.ranks // RANKS_PER_NODE]
        self.checkpoints.claim(f"nonce{self.last}", self.last)
        plan = plan_of(layout, SMALL.name).model_copy(update={"nodes": len(nodes), "ranks_per_node": RANKS_PER_NODE})
        path = self.directory.with_name(f"plan{self.last}.json")
        path.write_text(plan.model_dump_json())
        arguments = [
            *("--recipe", str(self.workplace.recipe())),
            *("--plan", str(path)),
            *("--data", str(self.workplace.corpus)),
            *("--checkpoints", str(self.directory)),
            *("--nonce", f"nonce{self.last}"),
            *more,
        ]
        epoch = Epoch(fleet=self.fleet, number=self.last, nodes=nodes)
        self.fleet.start_epoch(self.last, nodes, RANKS_PER_NODE, arguments, rendezvous)
        for node in nodes:
            answer = node.client.answer()
            assert answer is not None
            assert answer["started"] == self.last
            epoch.agents.append(answer["pid"])
        return epoch


@pytest.fixture(scope="module")
def numbers() -> Iterator[int]:
    """Numbers of epochs, for jobs that share a fleet."""
    return iter(range(0, 1000, 10))


@pytest.fixture
def job(fleet: Fleet, workplace: Workplace, tmp_path: Path, numbers: Iterator[int]) -> Job:
    return Job(fleet=fleet, workplace=workplace, directory=tmp_path / "checkpoints", last=next(numbers))
