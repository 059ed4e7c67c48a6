"""The supervisor's side of the launcher's socket: the process that forks the ranks, and kills them."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import socket
import struct
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trainfabric_node.agent.bell import Bell

_LOG = logging.getLogger(__name__)
_RETRY_S = 0.1
_SEND_S = 1
_CONFIRM_S = 10.0
"""For the launcher to kill all ranks and to say so; then it is killed itself. Accelerators are let go of in seconds."""

_DIE_S = 5.0


class Launcher:
    """A connection to the launcher, made anew whenever there is one; safe to use from several threads.

    When the connection ends, by the end of either side, the ranks do: the launcher kills them, or the kernel does
    because their parent is gone.

    Args:
        path: The launcher's socket.
        ring: Called when anything has changed.
    """

    def __init__(self, path: Path, ring: Callable[[], None]) -> None:
        self._path = path
        self._ring = ring
        self._bell = Bell()
        self._stopped = False
        self._changed = threading.Condition()
        self._sending = threading.Lock()
        self._connection: socket.socket | None = None
        self._process: int | None = None
        self._ready = False
        self._begun: int | None = None
        self._confirmed = False
        self._status: int | None = None
        self._gone = True

    @property
    def ready(self) -> bool:
        """Whether it is there and warm."""
        with self._changed:
            return self._ready

    @property
    def confirmed(self) -> bool:
        """Whether it has said that the newest epoch is started."""
        with self._changed:
            return self._confirmed

    @property
    def status(self) -> int | None:
        """Exit status of the newest epoch's processes on this node, negative if by a signal; `None` before."""
        with self._changed:
            return self._status

    @property
    def gone(self) -> bool:
        """Whether nothing of the newest epoch is left: it was killed, or the launcher has ended."""
        with self._changed:
            return self._gone

    def start(self, message: dict[str, Any]) -> bool:
        """Starts an epoch, once what is left of an earlier one is killed; `False` if the launcher is not warm."""
        with self._changed:
            if not self._ready:
                return False
            self._begun, self._gone, self._confirmed, self._status = message["epoch"], False, False, None
        if self._send({"start": message}):
            return True
        self._kill_launcher()
        return False

    def end(self, within_s: float = _CONFIRM_S) -> None:
        """Kills the newest epoch and returns when nothing is left of it; a launcher that does not do it is killed."""
        with self._changed:
            number = self._begun
            if self._gone:
                return
        sent = self._send({"kill": number})
        with self._changed:
            if sent and self._changed.wait_for(lambda: self._gone or self._begun != number, within_s):
                return
        _LOG.warning("the launcher did not end epoch %s within %g s, and is killed", number, within_s)
        self._kill_launcher()

    def run(self) -> None:
        """Connects and listens until `stop`."""
        while not self._stopped:
            try:
                connection = self._connect()
            except OSError:
                self._bell.wait(_RETRY_S)
                continue
            with connection:
                self._listen(connection)
                self._forget()

    def stop(self) -> None:
        """Ends the connection, and with it all ranks; lets `run` return."""
        self._stopped = True
        self._bell.ring()
        with self._changed:
            if self._connection is not None:
                with contextlib.suppress(OSError):
                    self._connection.shutdown(socket.SHUT_RDWR)

    def _connect(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", _SEND_S, 0))
            _connect_below(connection, self._path)
            credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
            process = os.pidfd_open(struct.unpack("3i", credentials)[0])
        except BaseException:
            connection.close()
            raise
        with self._changed:
            self._connection, self._process = connection, process
        if self._stopped:
            self.stop()
        return connection

    def _listen(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection.makefile("rb") as lines:
            for line in lines:
                self._take(json.loads(line))

    def _take(self, said: dict[str, Any]) -> None:
        with self._changed:
            if "ready" in said:
                self._ready = True
            elif said.get("started") == self._begun:
                self._confirmed = True
            elif said.get("killed") == self._begun:
                self._gone = True
            elif said.get("ended") == self._begun:
                self._status = said["status"]
            self._changed.notify_all()
        self._ring()

    def _forget(self) -> None:
        with self._changed:
            process, self._process, self._connection = self._process, None, None
            self._ready, self._gone = False, True
            self._changed.notify_all()
        if process is not None:
            os.close(process)
        self._ring()

    def _send(self, message: dict[str, Any]) -> bool:
        with self._changed:
            connection = self._connection
        if connection is None:
            return False
        with self._sending:
            try:
                connection.sendall(json.dumps(message).encode() + b"\n")
            except OSError as error:
                _LOG.warning("the launcher cannot be told: %s", error)
                return False
        return True

    def _kill_launcher(self) -> None:
        """Ends the launcher; the kernel then ends all ranks, and systemd starts another launcher."""
        with self._changed:
            if self._process is not None:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(self._process, signal.SIGKILL)
            if not self._changed.wait_for(lambda: self._gone, _DIE_S):
                raise RuntimeError(f"the launcher must be gone {_DIE_S:g} s after SIGKILL")


def _connect_below(connection: socket.socket, path: Path) -> None:
    """Connects by way of the directory: the address of a unix socket has 107 bytes, and a path may have more."""
    directory = os.open(path.parent, os.O_PATH)
    try:
        connection.connect(f"/proc/self/fd/{directory}/{path.name}")
    finally:
        os.close(directory)
