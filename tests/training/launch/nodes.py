"""Nodes for tests: a rendezvous store and launchers in processes of their own, and a supervisor's end of the wire."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.node.imds import Imds, running_imds
from trainfabric_plan.contract import EVENTS_FILE, RESULT_FILE, STEPS_FILE, NodeVariable

START_S = 60.0
EPOCH_S = 120.0


def wait_until(condition: Callable[[], bool], what: str, seconds: float = EPOCH_S) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds:g} s for {what}"
        time.sleep(0.01)


class Client:
    """What a supervisor does: sends requests and reads answers, one JSON object a line."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(EPOCH_S)
        try:
            self._socket.connect(str(path))
        except OSError:
            self._socket.close()
            raise
        self._lines = self._socket.makefile("rb")

    def send(self, **request: Any) -> None:
        self._socket.sendall(json.dumps(request).encode() + b"\n")

    def answer(self) -> dict[str, Any] | None:
        """The next answer, `None` if the launcher has closed the connection."""
        line = self._lines.readline()
        return json.loads(line) if line else None

    def close(self) -> None:
        self._lines.close()
        self._socket.close()


@dataclass(kw_only=True)
class Node:
    """A launcher with its state directory."""

    state: Path
    address: str
    process: subprocess.Popen[bytes]
    client: Client = field(init=False)

    def connect(self) -> None:
        """Waits until the launcher is warm."""
        path = self.state / "launcher.sock"

        def connected() -> bool:
            assert self.process.poll() is None, (self.state / "launcher.log").read_text()
            with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
                self.client = Client(path)
                return True
            return False

        wait_until(connected, f"{path}", START_S)
        assert self.client.answer() == {"ready": True}

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def processes(self) -> list[int]:
        """All that run in the epochs of this node, whatever has become of their parents."""
        found = []
        for folder in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if folder.name.isdecimal() and _marked(folder, self.state):
                    found.append(int(folder.name))
        return found

    def zombies(self) -> list[tuple[str, int]]:
        """Children of the launcher that have ended and were not taken."""
        stats = (folder / "stat" for folder in Path("/proc").iterdir() if folder.name.isdecimal())
        return [stat for stat in map(_state_and_parent, stats) if stat == ("Z", self.process.pid)]


def _state_and_parent(stat: Path) -> tuple[str, int] | None:
    with contextlib.suppress(OSError):
        state, parent = stat.read_text().rpartition(")")[2].split()[:2]
        return state, int(parent)
    return None


def _marked(folder: Path, state: Path) -> bool:
    """Whether a process has an output of this node: forks share their launcher's environment and command line."""
    return (folder / "fd" / "1").readlink().is_relative_to(state / "epochs")


@dataclass(frozen=True, kw_only=True)
class EpochFiles:
    """What an epoch leaves on a node."""

    directory: Path

    @property
    def log(self) -> str:
        return (self.directory / "trainer.log").read_text()

    @property
    def stop_flag(self) -> Path:
        return self.directory / "stop"

    def beat(self, rank: int) -> dict[str, Any]:
        """The newest beat, empty if there is none yet."""
        with contextlib.suppress(FileNotFoundError):
            return json.loads((self.directory / "ranks" / f"{rank}.json").read_text())  # type: ignore[no-any-return]
        return {}

    def end(self, rank: int) -> dict[str, Any] | None:
        with contextlib.suppress(FileNotFoundError):
            return json.loads((self.directory / "ranks" / f"{rank}.end.json").read_text())  # type: ignore[no-any-return]
        return None

    @property
    def steps(self) -> list[dict[str, Any]]:
        return _lines(self.directory / "output" / STEPS_FILE)

    @property
    def events(self) -> list[dict[str, Any]]:
        return _lines(self.directory / "output" / EVENTS_FILE)

    @property
    def result(self) -> dict[str, Any]:
        return json.loads((self.directory / "output" / RESULT_FILE).read_text())  # type: ignore[no-any-return]


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@dataclass(kw_only=True)
class Fleet:
    """Some nodes and the store in which their ranks meet."""

    directory: Path
    port: int
    imds: Imds
    stack: contextlib.ExitStack
    store: subprocess.Popen[bytes] | None = None
    nodes: list[Node] = field(default_factory=list)

    def start_store(self) -> None:
        self.store = self._start("rendezvous", self.directory / "store")

        def listening() -> bool:
            assert self.store is not None
            assert self.store.poll() is None, (self.directory / "store" / "rendezvous.log").read_text()
            with contextlib.suppress(OSError), socket.create_connection((self.imds.values["local-ipv4"], self.port)):
                return True
            return False

        wait_until(listening, "the rendezvous store", START_S)

    def kill_store(self) -> None:
        assert self.store is not None
        self.store.kill()
        self.store.wait()

    def start_nodes(self, count: int) -> None:
        for index in range(len(self.nodes), len(self.nodes) + count):
            state = self.directory / f"node{index}"
            self.nodes.append(
                Node(state=state, address=f"127.0.0.{11 + index}", process=self._start("launcher", state))
            )
        for node in self.nodes[-count:]:
            node.connect()

    def restart(self, node: Node) -> None:
        """Starts a launcher anew, as systemd does, once the old one is gone."""
        node.process = self._start("launcher", node.state)
        node.connect()

    @property
    def rendezvous(self) -> str:
        """Address of the store."""
        return f"{self.imds.values['local-ipv4']}:{self.port}"

    def start_epoch(
        self,
        number: int,
        nodes: Sequence[Node],
        ranks_per_node: int,
        arguments: Sequence[str],
        rendezvous: str | None = None,
    ) -> None:
        for node_rank, node in enumerate(nodes):
            files = self.files(number, node)
            files.directory.mkdir(parents=True)
            node.client.send(
                start={
                    "epoch": number,
                    "directory": str(files.directory),
                    "environment": {"GLOO_SOCKET_IFNAME": "lo"},
                    "nodes": len(nodes),
                    "node_rank": node_rank,
                    "ranks_per_node": ranks_per_node,
                    "run_id": f"job.epoch{number}",
                    "rendezvous": rendezvous or self.rendezvous,
                    "address": node.address,
                    "arguments": [
                        *("--device", "cpu"),
                        *arguments,
                        *("--output", str(files.directory / "output")),
                        *("--stop-flag", str(files.stop_flag)),
                        *("--rank-files", str(files.directory / "ranks")),
                        *("--beat-seconds", "0.1"),
                    ],
                }
            )

    def files(self, number: int, node: Node) -> EpochFiles:
        return EpochFiles(directory=node.state / "epochs" / str(number))

    def _start(self, command: str, state: Path) -> subprocess.Popen[bytes]:
        state.mkdir(exist_ok=True)
        variables = {
            **os.environ,
            NodeVariable.STATE_DIRECTORY: str(state),
            NodeVariable.RENDEZVOUS_PORT: str(self.port),
            "AWS_EC2_METADATA_SERVICE_ENDPOINT": self.imds.endpoint,
            "CUDA_VISIBLE_DEVICES": "",
        }
        with (state / f"{command}.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "trainfabric_training.launch", command],
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.stack.callback(_end, process)
        return process


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGCONT)
    process.kill()
    process.wait()


@contextlib.contextmanager
def running_fleet(directory: Path) -> Iterator[Fleet]:
    """A store on an address of its own and no node yet; nothing is left of it afterwards."""
    with contextlib.ExitStack() as stack:
        imds = stack.enter_context(running_imds())
        imds.values["local-ipv4"] = "127.0.0.10"
        fleet = Fleet(directory=directory, port=_free_port("127.0.0.10"), imds=imds, stack=stack)
        fleet.start_store()
        try:
            yield fleet
        finally:
            for node in fleet.nodes:
                node.client.close()
    for node in fleet.nodes:
        wait_until(lambda node=node: not node.processes(), f"the end of {node.state}", 5)  # type: ignore[misc]


def _free_port(address: str) -> int:
    with socket.socket() as one:
        one.bind((address, 0))
        return int(one.getsockname()[1])
