from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.node.supervisor.processes import until
from trainfabric_node.agent.launcher import Launcher

OTHER = """
import json, os, socket, sys
directory, name = os.path.split(sys.argv[1])
os.chdir(directory)
listener = socket.socket(socket.AF_UNIX)
listener.bind(name)
listener.listen()
connection, _ = listener.accept()
lines = connection.makefile("rw")
def say(**words):
    print(json.dumps(words), file=lines, flush=True)
say(ready=True)
for line in lines:
    said = json.loads(line)
    if "start" in said:
        number = said["start"]["epoch"]
        if "confirm" in sys.argv: say(started=number, pid=1)
        if "end" in sys.argv: say(ended=number, status=-9)
    elif "kill" in said and "deaf" not in sys.argv:
        say(killed=said["kill"] if "wrong" not in sys.argv else 999)
"""
"""A launcher of another make, which does what its arguments say."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    long = tmp_path / ("long" * 20) / ("path" * 20)
    long.mkdir(parents=True)
    return long / "launcher.sock"


@contextmanager
def _connected(path: Path, *manners: str) -> Iterator[tuple[Launcher, subprocess.Popen[bytes]]]:
    launcher = Launcher(path, lambda: None)
    thread = threading.Thread(target=launcher.run)
    thread.start()
    with subprocess.Popen([sys.executable, "-c", OTHER, str(path), *manners]) as process:
        try:
            until(lambda: launcher.ready)
            yield launcher, process
        finally:
            process.kill()
            launcher.stop()
            thread.join(5)
            assert not thread.is_alive()


def test_a_launcher_that_is_not_there_is_not_ready_and_starts_nothing(path: Path) -> None:
    launcher = Launcher(path, lambda: None)

    assert not launcher.ready
    assert not launcher.start({"epoch": 1})
    assert launcher.gone
    launcher.end()


def test_an_epoch_is_started_confirmed_and_its_end_is_told(path: Path) -> None:
    with _connected(path, "confirm", "end") as (launcher, _):
        started = launcher.start({"epoch": 3})
        until(lambda: launcher.status is not None)

        assert (started, launcher.confirmed, launcher.gone, launcher.status) == (True, True, False, -9)


def test_an_epoch_is_over_when_the_launcher_has_said_that_it_is_killed(path: Path) -> None:
    with _connected(path) as (launcher, process):
        launcher.start({"epoch": 3})

        launcher.end()

        assert launcher.gone
        assert process.poll() is None


@pytest.mark.parametrize("manner", ["deaf", "wrong"])
def test_a_launcher_that_does_not_confirm_a_kill_is_killed(path: Path, manner: str) -> None:
    with _connected(path, manner) as (launcher, process):
        launcher.start({"epoch": 3})
        began = time.monotonic()

        launcher.end(within_s=0.3)

        assert launcher.gone
        assert 0.3 <= time.monotonic() - began < 3.0
        assert process.wait(5) == -signal.SIGKILL


def test_an_epoch_is_over_when_the_launcher_has_ended(path: Path) -> None:
    with _connected(path) as (launcher, process):
        launcher.start({"epoch": 3})

        process.kill()

        until(lambda: launcher.gone)
        assert (launcher.ready, launcher.status) == (False, None)
        assert not launcher.start({"epoch": 4})


def test_what_is_told_of_an_earlier_epoch_is_not_taken_for_the_newest(tmp_path: Path) -> None:
    path = tmp_path / "launcher.sock"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    launcher = Launcher(path, lambda: None)
    thread = threading.Thread(target=launcher.run)
    thread.start()
    connection, _ = listener.accept()

    def say(**words: object) -> None:
        connection.sendall(json.dumps(words).encode() + b"\n")

    say(ready=True)
    until(lambda: launcher.ready)
    launcher.start({"epoch": 4})
    say(killed=3)
    say(ended=3, status=0)
    say(started=4, pid=os.getpid())
    until(lambda: launcher.confirmed)

    assert (launcher.gone, launcher.status) == (False, None)
    launcher.stop()
    thread.join(5)
    connection.close()
    listener.close()
