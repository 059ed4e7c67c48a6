"""A run around a folder: a controller that does as a test says, and nodes of real processes whose ranks only count."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.node.samples import spec
from tests.node.supervisor.processes import MARK, marked, until
from trainfabric_node.jobs import JobLedger, JobSpec
from trainfabric_node.jobs.records import ControllerAddress, now
from trainfabric_node.membership.protocol import (
    Answer,
    Beat,
    Drain,
    EpochNode,
    EpochOrder,
    EpochRecord,
    NodeEpoch,
)
from trainfabric_node.membership.server import ControlServer
from trainfabric_node.store import open_store

PROGRAMS = Path(__file__).parent
ROOT = PROGRAMS.parents[2]


class Controller:
    """Answers beats with what a test wants, and keeps what was said."""

    def __init__(self, run: JobSpec, incarnation: str = "c1") -> None:
        self.run = run
        self.incarnation = incarnation
        self.beats: dict[str, Beat] = {}
        self.said: dict[str, list[NodeEpoch]] = {}
        self.order: EpochOrder | None = None
        self.number = 0
        self.drain: Drain | None = None
        self.concluded = False
        self.speaks = threading.Event()
        self.speaks.set()
        self._server = ControlServer("127.0.0.1", 0, self._respond)

    @property
    def address(self) -> ControllerAddress:
        return ControllerAddress(
            host="127.0.0.1",
            port=self._server.port,
            rendezvous_port=29400,
            incarnation=self.incarnation,
            instance_id="i-c",
            announced=now(),
        )

    def form(self, *names: str, number: int = 1, **changes: Any) -> EpochOrder:
        """Orders an epoch of nodes that have beaten, once they are warm."""
        until(lambda: all(name in self.beats and self.beats[name].ready for name in names))
        members = tuple(
            EpochNode(instance_id=name, address="127.0.0.1", incarnation=self.beats[name].incarnation) for name in names
        )
        record = EpochRecord(
            job=self.run.job,
            run=self.run.run,
            number=number,
            nonce=f"nonce{number}",
            nodes=members,
            plan=self.run.plan.model_copy(update={"nodes": len(names)}),
            detail="a test",
            controller=self.incarnation,
            claimed=now(),
        )
        given: dict[str, Any] = {"resume": number > 1, "rendezvous_host": "127.0.0.1", "rendezvous_port": 29400}
        self.order = EpochOrder(record=record, **{**given, **changes})
        self.number = number
        return self.order

    def epoch(self, name: str) -> NodeEpoch | None:
        beat = self.beats.get(name)
        return beat.epoch if beat else None

    def state(self, name: str) -> str:
        epoch = self.epoch(name)
        return f"{epoch.number} {epoch.state}" if epoch else "none"

    def await_state(self, state: str, *names: str) -> None:
        until(lambda: [self.state(name) for name in names] == [state] * len(names))

    def close(self) -> None:
        self.speaks.set()
        self._server.close()

    def _respond(self, beat: Beat) -> Answer:
        self.speaks.wait()
        self.beats[beat.instance_id] = beat
        said = self.said.setdefault(beat.instance_id, [])
        if beat.epoch is not None and (not said or said[-1] != beat.epoch):
            said.append(beat.epoch)
        return Answer(
            sequence=beat.sequence,
            controller=self.incarnation,
            epoch=self.number,
            order=self.order if self._wants(beat) else None,
            drain=self.drain,
            concluded=self.concluded,
        )

    def _wants(self, beat: Beat) -> bool:
        members = [] if self.order is None else self.order.record.nodes
        member = any((one.instance_id, one.incarnation) == (beat.instance_id, beat.incarnation) for one in members)
        return member and (beat.epoch is None or beat.epoch.number < self.number)


@dataclass
class NodeProcesses:
    """A node's launcher and supervisor."""

    name: str
    folder: Path
    log: Path
    launcher: subprocess.Popen[bytes]
    supervisor: subprocess.Popen[bytes]

    def rank(self, rank: int, epoch: int = 1) -> int:
        """Process id of a rank, once it counts."""
        until(lambda: self._beat(rank, epoch).get("step", 0) > 0)
        return int(self._beat(rank, epoch)["pid"])

    def step(self, rank: int, epoch: int = 1) -> int:
        return int(self._beat(rank, epoch).get("step", 0))

    def _beat(self, rank: int, epoch: int) -> dict[str, Any]:
        path = self.folder / "runs" / "first" / "0001" / "epochs" / f"{epoch:08d}" / "ranks" / f"{rank}.json"
        found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        return found

    def printed(self) -> str:
        return self.log.read_text()


@dataclass
class Lab:
    """Everything of one test."""

    folder: Path
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    timing: dict[str, float] = field(default_factory=lambda: {"lease_s": 30.0, "publish_s": 0.1})
    nodes: dict[str, NodeProcesses] = field(default_factory=dict)
    controllers: list[Controller] = field(default_factory=list)
    ledger: JobLedger = field(init=False)

    def __post_init__(self) -> None:
        self.ledger = JobLedger(open_store(str(self.folder / "bucket")))

    def start(self, nodes: int = 1, **changes: Any) -> JobSpec:
        """Starts a run."""
        run = spec(nodes, **changes)
        self.ledger.claim(run)
        return run

    def controller(self, run: JobSpec, incarnation: str = "c1") -> Controller:
        made = Controller(run, incarnation)
        self.controllers.append(made)
        self.ledger.run(run.job, run.run).announce(made.address)
        return made

    def node(self, name: str, role: str = "worker", **ranks: Any) -> NodeProcesses:
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        log = self.folder / f"{name}.log"
        self.nodes[name] = NodeProcesses(name, folder, log, self.launch(name), self.supervise(name, role, **ranks))
        return self.nodes[name]

    def launch(self, name: str) -> subprocess.Popen[bytes]:
        return self._run(name, "fake_launcher.py", str(self.folder / name / "launcher.sock"))

    def supervise(self, name: str, role: str = "worker", **ranks: Any) -> subprocess.Popen[bytes]:
        given = {
            "folder": str(self.folder),
            "name": name,
            "role": role,
            "ranks": json.dumps(ranks),
            "timing": json.dumps(self.timing),
        }
        return self._run(name, "fake_node.py", json.dumps(given))

    def ranks(self) -> list[int]:
        """Process ids of all ranks and their agents."""
        known = {process.pid for node in self.nodes.values() for process in (node.launcher, node.supervisor)}
        return [process for process in marked(self.mark) if process not in known]

    def close(self) -> None:
        """Ends everything; nothing may be left that the launchers would have had to end."""
        for controller in self.controllers:
            controller.close()
        for node in self.nodes.values():
            for process in (node.supervisor, node.launcher):
                process.send_signal(signal.SIGCONT)
                process.kill()
                process.wait()
        until(lambda: not marked(self.mark), 5.0)

    def _run(self, name: str, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        variables = {**os.environ, MARK: self.mark, "PYTHONPATH": f"{ROOT}/training:{ROOT}"}
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, str(PROGRAMS / program), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=variables,
            )
