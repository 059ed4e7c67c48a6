"""The thread that beats to the controller."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from trainfabric_node.agent.bell import Bell
from trainfabric_node.agent.desk import Desk
from trainfabric_node.jobs.records import ControllerAddress
from trainfabric_node.membership.client import Channel
from trainfabric_node.membership.timing import Timing
from trainfabric_plan.errors import Unreachable

_LOG = logging.getLogger(__name__)
_LONGEST_EXCHANGE_S = 5.0


class Beats:
    """Says what is on the desk to the controller, at once if it is news, and leaves the answers there.

    Args:
        desk: What to say.
        address: Where the controller is, if that is known.
        renew: Called with the time at which a beat was said that has been answered.
        miss: Called when the controller does not answer any more.
        timing: How often to beat.
        clock: Seconds, monotonic.
    """

    def __init__(
        self,
        desk: Desk,
        address: Callable[[], ControllerAddress | None],
        renew: Callable[[float], None],
        miss: Callable[[], None],
        timing: Timing,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._desk = desk
        self._address = address
        self._renew = renew
        self._miss = miss
        self._timing = timing
        self._clock = clock
        self._exchange_s = min(_LONGEST_EXCHANGE_S, timing.lease_s / 3)
        self._bell = Bell()
        self._stopped = False
        self._trouble = ""

    def run(self) -> None:
        """Beats until `stop`."""
        while not self._stopped:
            address = self._address()
            if address is None:
                self._bell.wait(self._timing.beat_s)
                continue
            try:
                with Channel(address.host, address.port) as channel:
                    self._talk(channel, address)
            except Unreachable as error:
                self._desk.controller = ""
                self._note(str(error))
                self._bell.wait(self._timing.beat_s)

    def stop(self) -> None:
        """Lets `run` return after the next answer."""
        self._stopped = True
        self._bell.ring()

    def _talk(self, channel: Channel, address: ControllerAddress) -> None:
        """Beats on one connection, as long as this is the run's controller."""
        while not self._stopped and self._address() == address:
            beat, news = self._desk.beat()
            said = self._clock()
            answer = channel.exchange(beat, self._exchange_s)
            if answer.epoch < self._desk.number:
                raise Unreachable(f"{address.host}:{address.port}: controller {answer.controller} is one of the past")
            self._renew(said)
            self._desk.leave(answer, beat, self._clock())
            self._note("")
            self._desk.await_news(news, self._timing.beat_s)

    def _note(self, trouble: str) -> None:
        """Tells of trouble with the controller when it begins or changes, and of its end."""
        if trouble and trouble != self._trouble:
            _LOG.warning("%s", trouble)
            self._miss()
        elif self._trouble and not trouble:
            _LOG.info("the controller answers again")
        self._trouble = trouble
