"""How `systemctl` and the runner talk to a node's init: one JSON line each way over a socket in its `/run`."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

SOCKET = "run/systemd-private"
TIMEOUT_S = 900.0
"""Longer than any unit of ours may take to stop."""
VERBS = ("start", "stop", "restart", "is-active", "enable", "daemon-reload", "show")

Obey = Callable[["Request", Callable[[int, str], None]], None]


class Request(NamedTuple):
    """What systemctl was asked for: one of `VERBS`, and units."""

    verb: str
    units: tuple[str, ...] = ()

    @property
    def unit(self) -> str:
        """The one unit that most verbs are about."""
        (name,) = self.units
        return name


@contextmanager
def _near(folder: Path) -> Iterator[Path]:
    """A short path of a folder: the path of a Unix socket has at most 107 bytes."""
    handle = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        yield Path(f"/proc/self/fd/{handle}")
    finally:
        os.close(handle)


@contextmanager
def listening(root: Path) -> Iterator[socket.socket]:
    """The init's end, open as long as the `with` block."""
    file = root / SOCKET
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as server:
        with _near(file.parent) as near:
            server.bind(str(near / file.name))
        server.listen(64)
        yield server


def answer_to(server: socket.socket, obey: Obey) -> None:
    """Take one caller and pass its request on; the answer goes out when `obey` has it, which may be later."""
    connection, _ = server.accept()
    connection.settimeout(5.0)
    try:
        asked = json.loads(connection.makefile("r").readline())
        request = Request(asked["verb"], tuple(asked["units"]))
    except (OSError, ValueError):
        connection.close()
        return

    def tell(status: int, text: str) -> None:
        with connection, contextlib.suppress(OSError):  # who asked may be gone
            connection.sendall(json.dumps({"status": status, "text": text}).encode() + b"\n")

    obey(request, tell)


def ask(root: Path, verb: str, *units: str) -> tuple[int, str]:
    """The exit status and the text that systemctl gives.

    Raises:
        OSError: If the node's init does not run.
    """
    file = root / SOCKET
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(TIMEOUT_S)
        with _near(file.parent) as near:
            connection.connect(str(near / file.name))
        connection.sendall(json.dumps(Request(verb, units)._asdict()).encode() + b"\n")
        line = connection.makefile("r").readline()
    if not line:
        raise ConnectionError("the node's init ended before it answered")
    answer = json.loads(line)
    return answer["status"], answer["text"]
