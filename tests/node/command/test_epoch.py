"""Commands as a node runs them, each in a process of its own under a launcher."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.node.supervisor.processes import until
from trainfabric_node.agent.launcher import Launcher
from trainfabric_node.agent.procfs import process_state

SERVE = """
import sys
from pathlib import Path
from trainfabric_node.command.epoch import run_command
from trainfabric_node.command.start import CommandStart
from trainfabric_node.launch import ForkServer
ForkServer(Path(sys.argv[1]), CommandStart, run_command).serve()
"""


class Node:
    """A launcher of commands, and the supervisor's end of its socket."""

    def __init__(self, folder: Path, launcher: Launcher) -> None:
        self.folder, self.launcher = folder, launcher
        self.epoch = 0

    @property
    def directory(self) -> Path:
        return self.folder / str(self.epoch)

    def start(self, command: str, leave_by: str = "signal", **changes: Any) -> None:
        self.epoch += 1
        (self.directory / "output").mkdir(parents=True)
        variables = {
            "PATH": "/usr/bin:/bin",
            "TRAINFABRIC_STOP_FILE": str(self.directory / "stop"),
            "TRAINFABRIC_PROGRESS_FILE": str(self.directory / "progress.jsonl"),
        }
        message = {
            "epoch": self.epoch,
            "directory": str(self.directory),
            "nodes": 1,
            "node_rank": 0,
            "job": "first",
            "own": {"command": command, "image": None, "leave_by": leave_by},
            "code": None,
            "bucket": str(self.folder / "bucket"),
            "code_directory": str(self.folder / "code"),
            "environment": variables,
            "given": list(variables),
            "lustre": str(self.folder),
            "beat_s": 0.1,
        }
        assert self.launcher.start({**message, **changes})

    def leave(self) -> None:
        (self.directory / "stop").write_text("now")

    def said(self) -> str:
        log = self.directory / "trainer.log"
        return log.read_text() if log.exists() else ""

    def end(self) -> dict[str, Any]:
        """The last word, once the command is over."""
        until(lambda: self.launcher.status is not None)
        found: dict[str, Any] = json.loads((self.directory / "ranks" / "0.end.json").read_text())
        return found

    def beat(self) -> dict[str, Any]:
        path = self.directory / "ranks" / "0.json"
        found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        return found


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    path = tmp_path / "launcher.sock"
    launcher = Launcher(path, lambda: None)
    thread = threading.Thread(target=launcher.run)
    thread.start()
    with subprocess.Popen([sys.executable, "-c", SERVE, str(path)]) as process:
        try:
            until(lambda: launcher.ready)
            yield Node(tmp_path, launcher)
        finally:
            process.kill()
            launcher.stop()
            thread.join(5)


@pytest.mark.parametrize(("status", "end", "left"), [(0, "done", 0), (75, "resume", 75), (2, "failed", 1)])
def test_the_exit_status_says_how_a_command_has_ended(node: Node, status: int, end: str, left: int) -> None:
    node.start(f"echo hello; exit {status}")

    assert (node.end()["status"], node.launcher.status) == (end, left)
    assert node.said() == "hello\n"


def test_a_failure_is_told_with_the_commands_own_words(node: Node) -> None:
    node.start("echo 'no such model' >&2; exit 3")

    end = node.end()

    assert end["detail"] == "rank 0 of the nodes: the command left with status 3: no such model"
    assert (end["hopeless"], end["of_others"]) == (False, False)


def test_a_command_that_a_signal_ends_has_failed(node: Node) -> None:
    node.start("kill -KILL $$")

    assert node.end()["detail"] == "rank 0 of the nodes: the command was ended by SIGKILL"


def test_the_steps_of_a_command_are_told(node: Node) -> None:
    node.start("""echo '{"step": 7, "loss": 1.5}' >>"$TRAINFABRIC_PROGRESS_FILE"; sleep 60""")

    until(lambda: node.beat().get("step") == 7)
    line = json.loads((node.directory / "output" / "steps.jsonl").read_text())

    assert (node.beat()["phase"], line["step"], line["loss"]) == ("train", 7, 1.5)
    node.launcher.end()


def test_sigterm_reaches_what_a_shell_waits_for_and_the_shell_goes_on(node: Node) -> None:
    program = "import signal, time; signal.signal(15, lambda *_: exit(9)); print('ready', flush=True); time.sleep(60)"
    node.start(f'cd / && {sys.executable} -c "{program}"; echo "left with $?"; exit 1')
    until(lambda: "ready" in node.said())

    node.leave()

    assert node.end()["status"] == "resume"
    assert node.said().splitlines()[-1] == "left with 9"


def test_a_command_that_looks_at_the_stop_file_gets_no_signal_and_0_is_then_no_end(node: Node) -> None:
    node.start('until test -e "$TRAINFABRIC_STOP_FILE"; do sleep 0.05; done; sleep 0.3; echo saved', leave_by="file")

    node.leave()

    assert node.end()["status"] == "resume"
    assert node.said() == "saved\n"


def test_a_failure_after_the_stop_file_alone_is_a_failure(node: Node) -> None:
    node.start('until test -e "$TRAINFABRIC_STOP_FILE"; do sleep 0.05; done; exit 4', leave_by="file")

    node.leave()

    assert node.end()["status"] == "failed"


def test_nothing_of_a_command_outlives_its_epoch(node: Node) -> None:
    node.start("setsid sleep 300 & echo $! ; setsid sleep 300 & echo $! ; wait")
    until(lambda: node.said().count("\n") == 2)
    orphans = [int(line) for line in node.said().split()]

    node.launcher.end()

    assert node.launcher.gone
    assert [process_state(pid) for pid in orphans] == ["X", "X"]


def test_what_a_command_leaves_behind_ends_with_it(node: Node) -> None:
    node.start("setsid sleep 300 & echo $!")

    node.end()

    assert process_state(int(node.said())) == "X"


def test_code_that_cannot_be_fetched_fails_the_epoch_and_says_why(node: Node) -> None:
    node.start("true", code={"key": "jobs/first/code/a.zip", "sha256": "0a" * 32})

    end = node.end()

    assert end["status"] == "failed"
    assert "jobs/first/code/a.zip" in end["detail"]


def test_a_supervisor_that_goes_takes_the_command_with_it(node: Node) -> None:
    node.start("echo $$; exec sleep 300")
    until(lambda: "\n" in node.said())
    pid = int(node.said())

    with socket.socket() as _:
        node.launcher.stop()

    until(lambda: process_state(pid) == "X")
