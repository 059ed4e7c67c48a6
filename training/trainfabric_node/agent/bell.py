"""Waking a thread that waits."""

from __future__ import annotations

from queue import Empty, SimpleQueue


class Bell:
    """Wakes the one thread that waits for it.

    It may be rung from any thread and from a signal handler: `threading.Event.set` takes a lock that the interrupted
    thread may hold, whereas `SimpleQueue.put` is reentrant (Python's documentation of `queue`).
    """

    def __init__(self) -> None:
        self._rings: SimpleQueue[None] = SimpleQueue()

    def ring(self) -> None:
        """Wakes the thread that waits, or lets its next wait end at once."""
        self._rings.put(None)

    def wait(self, seconds: float) -> None:
        """Returns when the bell is rung, or was since the last wait, or when the time is over."""
        try:
            self._rings.get(timeout=max(0.0, seconds))
            while True:
                self._rings.get_nowait()
        except Empty:
            return
