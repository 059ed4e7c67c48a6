"""A supervisor's side of the wire to the controller."""

from __future__ import annotations

import contextlib
import socket
import time

from pydantic import ValidationError

from trainfabric_node.membership.protocol import LONGEST_LINE, Answer, Beat, Refusal
from trainfabric_plan.errors import Unreachable

_CHUNK = 65536


class Channel:
    """A connection to a controller, made by the first exchange; one thread uses it at a time.

    After an error it is closed, and the next exchange connects anew.
    """

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port
        self._socket: socket.socket | None = None
        self._buffer = b""

    def __enter__(self) -> Channel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def exchange(self, beat: Beat, timeout_s: float) -> Answer:
        """Says the beat and returns the controller's answer to it, both within `timeout_s`, connecting included.

        Raises:
            Unreachable: If there is no whole answer in time, or the controller refuses the beat.
        """
        deadline = time.monotonic() + timeout_s
        try:
            return self._exchanged(beat, deadline)
        except (OSError, ValidationError) as error:
            self.close()
            got = "no whole answer in time" if isinstance(error, TimeoutError) else " ".join(str(error).split())
            raise self._unreachable(got) from None
        except Unreachable:
            self.close()
            raise

    def close(self) -> None:
        """Ends the connection, if there is one."""
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.close()
        self._socket, self._buffer = None, b""

    def _exchanged(self, beat: Beat, deadline: float) -> Answer:
        connection = self._connected(deadline)
        connection.settimeout(_left(deadline))
        connection.sendall(beat.model_dump_json().encode() + b"\n")
        while True:
            line = self._line(connection, deadline)
            if line.startswith(b'{"refused":'):
                raise self._unreachable(f"a refusal: {Refusal.model_validate_json(line).refused}")
            answer = Answer.model_validate_json(line)
            if answer.sequence == beat.sequence:
                return answer

    def _connected(self, deadline: float) -> socket.socket:
        if self._socket is None:
            self._socket = socket.create_connection((self._host, self._port), timeout=_left(deadline))
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._socket

    def _line(self, connection: socket.socket, deadline: float) -> bytes:
        while b"\n" not in self._buffer:
            connection.settimeout(_left(deadline))
            data = connection.recv(_CHUNK)
            if not data:
                raise ConnectionError("the end of the connection")
            self._buffer += data
            if len(self._buffer) > LONGEST_LINE:
                raise ConnectionError(f"a line of more than {LONGEST_LINE} bytes")
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _unreachable(self, got: str) -> Unreachable:
        remedy = "systemd starts a controller that has ended anew; is its node up, and its port open in the group?"
        return Unreachable(f"{self._host}:{self._port}: the controller must answer, got {got}; {remedy}")


def answers(host: str, port: int, timeout_s: float) -> bool:
    """Whether a controller listens there and is alive: it refuses what is no beat."""
    try:
        with socket.create_connection((host, port), timeout=timeout_s) as connection:
            connection.sendall(b"\n")
            return bool(connection.recv(1))
    except OSError:
        return False


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
