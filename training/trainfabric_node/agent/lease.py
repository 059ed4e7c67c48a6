"""How long ranks may run without the controller's word, and the thread that ends them then."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Lease:
    """Lasts some seconds from when a beat was said that was answered; pure, with times in seconds of one clock."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until = float("-inf")

    def renew(self, said: float) -> None:
        """The controller has answered a beat that was said at this time."""
        self._until = max(self._until, said + self._seconds)

    def left(self, now: float) -> float:
        """Seconds left, 0 or less when it is lost."""
        return self._until - now


class LeaseKeeper:
    """Calls `fence` whenever the lease is lost, from a thread of its own that waits for nothing else.

    Python's waits end by a monotonic time, so that a node that was stopped meanwhile fences as soon as it goes on.

    Args:
        seconds: How long a lease lasts.
        fence: Ends what must not run without a lease; called once per loss.
        clock: Seconds, monotonic.
    """

    def __init__(self, seconds: float, fence: Callable[[], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._lease = Lease(seconds)
        self._fence = fence
        self._clock = clock
        self._changed = threading.Condition()
        self._held = False
        self._stopped = False

    def renew(self, said: float) -> None:
        """A beat that was said at this time has been answered."""
        with self._changed:
            self._lease.renew(said)
            self._held = self._held or self._lease.left(self._clock()) > 0
            self._changed.notify()

    def run(self) -> None:
        """Watches the lease until `stop`."""
        while self._await_loss():
            self._fence()

    def stop(self) -> None:
        """Lets `run` return."""
        with self._changed:
            self._stopped = True
            self._changed.notify()

    def _await_loss(self) -> bool:
        """Whether the lease is lost that was held; `False` when the watch is over."""
        with self._changed:
            while not self._stopped:
                left = self._lease.left(self._clock())
                if self._held and left <= 0:
                    self._held = False
                    return True
                self._changed.wait(left if self._held else None)
            return False
