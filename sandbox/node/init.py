"""The first process of a local node, in systemd's place; the standard library alone, for it starts with every node.

`python -I -S start.py sandbox.node.init ROOT [NAMESPACE]` starts the services that the image enables, obeys `systemctl`
(see `sandbox.node.control`), restarts what ends, and stops all of it on SIGTERM, each before what it comes after. The
network namespace, if there is one, is the node's: everything below is in it.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

from sandbox.guard import LIBC, PR_SET_CHILD_SUBREAPER, PR_SET_PDEATHSIG
from sandbox.namespaces import enter
from sandbox.node.control import VERBS, Request, answer_to, listening
from sandbox.node.service import Service, Surroundings
from sandbox.node.units import CONFIGURED, INFINITE, BadUnit, default_environment, escaped_path, read_unit

TARGET = "multi-user.target"


class Init:
    """All services of a node."""

    def __init__(self, root: Path) -> None:
        self._surroundings = Surroundings(root=root, environment=default_environment(root))
        self._services: dict[str, Service] = {}
        self._leaving = False

    # --- what systemctl asks for ---------------------------------------------------------------------------------

    def obey(self, request: Request, then: Callable[[int, str], None]) -> None:
        """Do what is asked; `then` gets the exit status and the text of systemctl, at once or later."""
        if request.verb not in VERBS:
            then(1, f"Unknown command verb {request.verb}.")
            return
        try:
            getattr(self, f"_{request.verb.replace('-', '_')}")(request, then)
        except BadUnit as error:
            then(1, str(error))

    def _daemon_reload(self, request: Request, then: Callable[[int, str], None]) -> None:
        for name, service in self._services.items():
            service.unit = read_unit(self._surroundings.root, name)
        then(0, "")

    def _enable(self, request: Request, then: Callable[[int, str], None]) -> None:
        for name in request.units:
            for target in read_unit(self._surroundings.root, name).wanted_by:
                link = self._surroundings.root / CONFIGURED / f"{target}.wants" / name
                link.parent.mkdir(parents=True, exist_ok=True)
                link.unlink(missing_ok=True)
                link.symlink_to(Path("..") / name)
        then(0, "")

    def _start(self, request: Request, then: Callable[[int, str], None]) -> None:
        service = self._ready(request.unit)
        service.start(lambda problem: then(1 if problem else 0, problem))

    def _restart(self, request: Request, then: Callable[[int, str], None]) -> None:
        service = self._ready(request.unit)
        service.restart(lambda problem: then(1 if problem else 0, problem))

    def _stop(self, request: Request, then: Callable[[int, str], None]) -> None:
        self._service(request.unit).stop(lambda problem: then(0, problem))

    def _is_active(self, request: Request, then: Callable[[int, str], None]) -> None:
        known = self._services.get(request.unit)
        state = known.state if known else "inactive"
        then(0 if state == "active" else 3, state)

    def _show(self, request: Request, then: Callable[[int, str], None]) -> None:
        """The number of the main process, 0 if there is none: `--property MainPID --value`."""
        known = self._services.get(request.unit)
        then(0, str((known and known.pid) or 0))

    def _ready(self, name: str) -> Service:
        service = self._service(name)
        for point in service.unit.mounts:
            mount = self._services.get(f"{escaped_path(point)}.mount")
            if mount is None or not mount.is_active:
                raise BadUnit(f"Dependency failed for {name}: nothing is mounted at {point}.")
        return service

    def _service(self, name: str) -> Service:
        if name not in self._services:
            self._services[name] = Service(read_unit(self._surroundings.root, name), self._surroundings)
        return self._services[name]

    # --- what time brings ----------------------------------------------------------------------------------------

    def boot(self) -> None:
        """Start what is enabled."""
        for link in sorted((self._surroundings.root / CONFIGURED / f"{TARGET}.wants").iterdir()):
            self._ready(link.name).start(lambda problem: print(problem, flush=True) if problem else None)

    @property
    def due(self) -> float:
        """When to call `tick` next, on the monotonic clock."""
        soonest = min((service.due for service in self._services.values()), default=INFINITE)
        return min(soonest, time.monotonic() + 0.02) if self._leaving else soonest

    def leave(self) -> None:
        """Begin to stop everything."""
        self._leaving = True

    def tick(self) -> bool:
        """Move all services on; false once the node may end."""
        for service in list(self._services.values()):
            service.tick()
        if not self._leaving:
            return True
        running = [service for service in self._services.values() if not service.has_ended_for_good]
        for service in running:
            followers = [other for other in running if service.unit.name in other.unit.after]
            if not followers and service.state != "stopping":
                service.stop(lambda _: None)
        return bool(running)

    def reap(self) -> None:
        """Take note of every process that has ended: services' own, and orphans."""
        mains = {service.pid: service for service in self._services.values() if service.pid is not None}
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid in mains:
                mains[pid].has_ended(os.waitstatus_to_exitcode(status))


def run(root: Path) -> None:
    """Be the node's init until told to end."""
    reading, writing = socket.socketpair()
    writing.setblocking(False)
    signal.set_wakeup_fd(writing.fileno())
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    init = Init(root)
    with listening(root) as server, selectors.DefaultSelector() as selector:
        selector.register(reading, selectors.EVENT_READ)
        selector.register(server, selectors.EVENT_READ)
        init.boot()
        while init.tick():
            for key, _ in selector.select(max(0.0, min(init.due - time.monotonic(), 3600.0))):
                if key.fileobj is server:
                    answer_to(server, init.obey)
                elif set(reading.recv(64)) & {signal.SIGTERM, signal.SIGINT}:
                    init.leave()
            init.reap()


def main(arguments: list[str]) -> int:
    """Tie everything below to this process, and run."""
    parent = os.getppid()
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1)
    if os.getppid() != parent:
        return 1
    root, *namespaces = map(Path, arguments)
    for namespace in namespaces:
        enter(namespace)
    run(root)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
