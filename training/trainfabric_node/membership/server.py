"""The controller's side of the wire: many supervisors on one thread, none of which can delay another."""

from __future__ import annotations

import contextlib
import logging
import selectors
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from pydantic import ValidationError

from trainfabric_node.membership.protocol import LONGEST_LINE, Answer, Beat, Refusal
from trainfabric_plan.errors import Refused, mistake

_LOG = logging.getLogger(__name__)
_CHUNK = 65536
_BACKLOG = 512


@dataclass
class _Connection:
    socket: socket.socket
    peer: str
    heard: float
    received: bytes = b""
    unsent: bytes = b""
    ending: bool = False


class ControlServer:
    """Answers beats on a TCP port of one address from the moment it is made until it is closed.

    Args:
        host: Address of the node; nobody is listened to on another.
        port: TCP port; 0 for any free one.
        respond: From a beat to the answer, quickly and without I/O, as it runs on the server's one thread; raises
            `Refused` for a beat that is not of the run.
        idle_s: A connection that says nothing for so long is closed.

    Raises:
        InvalidInput: If the address is not the node's, or the port is taken.
    """

    def __init__(self, host: str, port: int, respond: Callable[[Beat], Answer], idle_s: float = 60.0) -> None:
        self._respond = respond
        self._idle_s = idle_s
        self._listener = _listening(host, port)
        self.port: int = self._listener.getsockname()[1]
        self._waker, self._woken = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._connections: dict[socket.socket, _Connection] = {}
        self._thread = threading.Thread(target=self._serve, name="control", daemon=True)
        self._thread.start()

    def __enter__(self) -> ControlServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends all connections and listens no more."""
        self._waker.close()
        self._thread.join()

    def _serve(self) -> None:
        while True:
            ready = self._selector.select(self._idle_s / 4)
            if any(key.fileobj is self._woken for key, _ in ready):
                break
            for key, events in ready:
                if key.fileobj is self._listener:
                    self._accept()
                else:
                    self._advance(self._connections[key.fileobj], events)  # type: ignore[index]
            self._end_idle()
        for connection in list(self._connections.values()):
            self._end(connection)
        for one in (self._listener, self._woken, self._selector):
            one.close()

    def _accept(self) -> None:
        try:
            accepted, peer = self._listener.accept()
        except OSError as error:  # gone again, or no descriptor is free: one that is idle will free one
            _LOG.warning("a supervisor could not be let in: %s", error)
            time.sleep(0.01)
            return
        accepted.setblocking(False)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connections[accepted] = _Connection(accepted, f"{peer[0]}:{peer[1]}", time.monotonic())
        self._selector.register(accepted, selectors.EVENT_READ)

    def _advance(self, connection: _Connection, events: int) -> None:
        try:
            if events & selectors.EVENT_READ and not self._read(connection):
                self._end(connection)
                return
            self._write(connection)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            _LOG.info("supervisor at %s: %s", connection.peer, error)
            self._end(connection)

    def _read(self, connection: _Connection) -> bool:
        """Takes in what is there; whether more may come."""
        data = connection.socket.recv(_CHUNK)
        if connection.ending:
            return bool(data)
        connection.heard = time.monotonic()
        *lines, connection.received = (connection.received + data).split(b"\n")
        for line in lines:
            self._answer(connection, line)
        if len(connection.received) > LONGEST_LINE:
            self._refuse(connection, f"a line must end within {LONGEST_LINE} bytes")
        return bool(data)

    def _answer(self, connection: _Connection, line: bytes) -> None:
        if connection.ending:
            return
        try:
            answer = self._respond(Beat.model_validate_json(line))
        except ValidationError as error:
            problem = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, problem["loc"])) or "line"
            self._refuse(connection, f"{where}: {problem['msg'].lower()}")
        except Refused as error:
            self._refuse(connection, str(error))
        except Exception:
            _LOG.exception("a beat of %s was not answered", connection.peer)
            self._refuse(connection, "the controller failed to answer; its log says why")
        else:
            connection.unsent += answer.model_dump_json().encode() + b"\n"

    def _refuse(self, connection: _Connection, reason: str) -> None:
        _LOG.warning("%s is refused: %s", connection.peer, reason)
        connection.unsent += Refusal(refused=reason).model_dump_json().encode() + b"\n"
        connection.received, connection.ending = b"", True

    def _write(self, connection: _Connection) -> None:
        if connection.unsent:
            with contextlib.suppress(BlockingIOError):
                connection.unsent = connection.unsent[connection.socket.send(connection.unsent) :]
        if connection.ending and not connection.unsent:
            self._end(connection)
            return
        # who does not read its answers is not heard either, and so ends as one that says nothing
        wanted = selectors.EVENT_WRITE if connection.unsent else selectors.EVENT_READ
        if self._selector.get_key(connection.socket).events != wanted:
            self._selector.modify(connection.socket, wanted)

    def _end_idle(self) -> None:
        oldest = time.monotonic() - self._idle_s
        for connection in [one for one in self._connections.values() if one.heard < oldest]:
            self._end(connection)

    def _end(self, connection: _Connection) -> None:
        del self._connections[connection.socket]
        self._selector.unregister(connection.socket)
        connection.socket.close()


def _listening(host: str, port: int) -> socket.socket:
    listener = socket.socket()
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        remedy = "end what else listens there, or give another TRAINFABRIC_CONTROL_PORT"
        rule = "free, on an address of this node"
        raise mistake("controller", "port", rule, f"{host}:{port} ({error.strerror})", remedy) from None
    listener.setblocking(False)
    return listener
