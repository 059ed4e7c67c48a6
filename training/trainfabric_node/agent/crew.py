"""The threads of a supervisor: none of them ends unseen."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from trainfabric_node.agent.bell import Bell


class Crew:
    """Threads that run until they are told to stop; what one of them raises is raised by `check` in the main thread.

    Args:
        bell: Rung when a thread has raised.
    """

    def __init__(self, bell: Bell) -> None:
        self._bell = bell
        self._stopping: list[Callable[[], None]] = []
        self._threads: list[threading.Thread] = []
        self._error: BaseException | None = None

    def start(self, name: str, work: Callable[[], None], stop: Callable[[], None]) -> None:
        """Runs `work` in a thread; `stop` lets it end soon, and may be called more than once."""
        self._stopping.append(stop)
        self._threads.append(threading.Thread(target=self._guarded, args=(work,), name=name, daemon=True))
        self._threads[-1].start()

    def check(self) -> None:
        """Raises what a thread has raised."""
        if self._error is not None:
            raise self._error

    def stop(self, within_s: float) -> None:
        """Tells all threads to stop and waits for them; those that a service keeps waiting end with the process."""
        for stop in self._stopping:
            stop()
        deadline = time.monotonic() + within_s
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            self._error = error
            self._bell.ring()
