"""Threads of a controller for what may take long."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from trainfabric_plan.errors import TrainfabricError

_LOG = logging.getLogger(__name__)


class Worker:
    """Calls `work` again and again on a thread of its own, until it is told to stop.

    A service that does not answer is logged, and asked again after the pause. Anything else that is raised ends the
    thread, and is raised by `check`.

    Args:
        name: Of the thread.
        work: What to do; once more after `stop`, so that nothing is left undone.
        pause_s: Seconds between two calls, unless it is hurried.
        failed: Called when the thread has ended because of an error.
    """

    def __init__(self, name: str, work: Callable[[], None], pause_s: float, failed: Callable[[], None]) -> None:
        self._work = work
        self._pause_s = pause_s
        self._failed = failed
        self._hurried = threading.Event()
        self._stopping = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begins."""
        self._thread.start()

    def hurry(self) -> None:
        """Lets the next call be now."""
        self._hurried.set()

    def check(self) -> None:
        """Raises what has ended the thread."""
        if self._error is not None:
            raise self._error

    def stop(self, within_s: float) -> None:
        """Lets the thread end after one more call, and waits for it; one that a service keeps waiting is left."""
        self._stopping = True
        self._hurried.set()
        if self._thread.is_alive():
            self._thread.join(within_s)

    def _run(self) -> None:
        try:
            while not self._stopping:
                self._try()
                self._hurried.wait(self._pause_s)
                self._hurried.clear()
            self._try()
        except BaseException as error:
            self._error = error
            self._failed()

    def _try(self) -> None:
        try:
            self._work()
        except TrainfabricError as error:
            _LOG.warning("%s", error)
