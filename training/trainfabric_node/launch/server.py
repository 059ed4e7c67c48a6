"""The fork server of a node. One thread, because it forks; one client at a time, whose going ends its epoch."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Generic, NoReturn

from trainfabric_node.launch.processes import adopt_orphans, kill_descendants, reaped
from trainfabric_node.launch.wire import Request, StartT, line_of, read_request
from trainfabric_plan.contract import ExitStatus
from trainfabric_plan.errors import InvalidInput

_LONGEST_LINE = 1024 * 1024


class ForkServer(Generic[StartT]):
    """Listens on a unix socket and runs one epoch at a time.

    A supervisor that connects is told `ready`. When its connection ends, everything below is killed, and the launcher
    waits for the next one with all its imports.

    Args:
        path: The socket.
        kind: What starts an epoch.
        run: Runs it in a forked process of its own, given what starts it and the process id of this server; returns
            the exit status of the epoch on this node.
        clean: Ends what an epoch has outside of its processes; called when it is killed or has ended.
    """

    def __init__(
        self, path: Path, kind: type[StartT], run: Callable[[StartT, int], int], clean: Callable[[], None] | None = None
    ) -> None:
        self._kind: type[Request[StartT]] = Request[kind]  # type: ignore[valid-type]
        self._run = run
        self._clean = clean
        self._listener = _listening(path)
        self._client: socket.socket | None = None
        self._received = b""
        self._epoch = 0
        self._agent: int | None = None
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._ended, self._signalled = socket.socketpair()
        for one in (self._ended, self._signalled):
            one.setblocking(False)
        self._selector.register(self._ended, selectors.EVENT_READ)

    def serve(self) -> NoReturn:
        """Serves supervisors until a signal ends the process."""
        adopt_orphans()
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._signalled.fileno(), warn_on_full_buffer=False)
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is self._listener:
                    self._accept()
                elif key.fileobj is self._client:
                    self._receive()
                else:
                    self._take_ended()

    def _accept(self) -> None:
        self._client, _ = self._listener.accept()
        self._received = b""
        self._selector.unregister(self._listener)
        self._selector.register(self._client, selectors.EVENT_READ)
        self._say(ready=True)

    def _receive(self) -> None:
        """Takes what the client sent; its end, or nonsense, ends its epoch."""
        assert self._client is not None
        try:
            data = self._client.recv(65536)
        except OSError:
            data = b""
        self._received += data
        try:
            while self._client is not None and b"\n" in self._received:
                line, _, self._received = self._received.partition(b"\n")
                self._do(read_request(line, self._kind))
        except InvalidInput as error:
            print(error, file=sys.stderr, flush=True)
            data = b""
        if not data or len(self._received) > _LONGEST_LINE:
            self._drop_client()

    def _do(self, request: Request[StartT]) -> None:
        if request.start is not None:
            self._start(request.start)
        elif request.kill is not None:
            if request.kill >= self._epoch:
                self._kill()
            self._say(killed=request.kill)
        else:
            self._say(ready=True, epoch=None if self._agent is None else self._epoch)

    def _start(self, start: StartT) -> None:
        self._kill()
        launcher = os.getpid()
        self._epoch = start.epoch
        self._agent = os.fork()
        if self._agent == 0:
            self._become_agent(start, launcher)
        self._say(started=start.epoch, pid=self._agent)

    def _become_agent(self, start: StartT, launcher: int) -> NoReturn:
        """The forked process, which must not return into the loop of its parent."""
        status = ExitStatus.FAILED
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self._selector.close()
            for one in (self._listener, self._client, self._ended, self._signalled):
                if one is not None:
                    one.close()
            status = self._run(start, launcher)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)

    def _take_ended(self) -> None:
        """Takes children that have ended, so that none stays a zombie; tells of the epoch's agent."""
        with contextlib.suppress(BlockingIOError):
            self._ended.recv(4096)
        ended = reaped()
        if self._agent in ended:
            status, self._agent = ended[self._agent], None
            self._kill_all()
            self._say(ended=self._epoch, status=status)

    def _kill(self) -> None:
        self._kill_all()
        self._agent = None

    def _kill_all(self) -> None:
        kill_descendants()
        if self._clean is not None:
            self._clean()

    def _drop_client(self) -> None:
        self._kill()
        if self._client is not None:
            self._selector.unregister(self._client)
            self._client.close()
            self._client = None
            self._selector.register(self._listener, selectors.EVENT_READ)

    def _say(self, **answer: object) -> None:
        """Tells the client; one that is gone is noticed by its end."""
        if self._client is not None:
            with contextlib.suppress(OSError):
                self._client.sendall(line_of(**answer))


def _listening(path: Path) -> socket.socket:
    """A listening socket, in place of the one that an earlier launcher left.

    Bound by way of the directory: the address of a unix socket has 107 bytes, and a path may have more.
    """
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    directory = os.open(path.parent, os.O_PATH)
    try:
        listener.bind(f"/proc/self/fd/{directory}/{path.name}")
    finally:
        os.close(directory)
    path.chmod(0o600)
    listener.listen()
    return listener
