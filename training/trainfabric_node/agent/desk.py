"""What the threads of a supervisor tell each other: what the next beat says, and what the last answer wants."""

from __future__ import annotations

import threading
from collections.abc import Callable

from trainfabric_node.agent.host import Node
from trainfabric_node.membership.protocol import Answer, Beat, NodeEpoch, Notice


class Desk:
    """The main loop says how the node is and takes answers; the beat thread takes beats and leaves answers.

    Args:
        node: Who speaks.
        token: Nonce of the run.
        ring: Called when an answer has come.
        now: Time in seconds of the clock that all times are of.
    """

    def __init__(self, node: Node, token: str, ring: Callable[[], None], now: float) -> None:
        self._ring = ring
        self._changed = threading.Condition()
        self._sequence = 0
        self._urgent = 0
        self._said = Beat(
            token=token,
            sequence=0,
            instance_id=node.instance_id,
            address=node.address,
            role=node.role,
            incarnation=node.incarnation,
            ready=False,
            pins=node.pins,
            placement=node.placement,
        )
        self._heard: Beat | None = None
        self._answer: Answer | None = None
        self._heard_at = now
        self.controller = ""
        """Incarnation of the controller that has answered last, empty if it may not be there any more."""

    @property
    def number(self) -> int:
        """Number of the epoch that the node says that it is in, 0 if none."""
        with self._changed:
            return self._said.epoch.number if self._said.epoch else 0

    def say(self, *, ready: bool, notice: Notice | None, epoch: NodeEpoch | None) -> None:
        """How the node is from now on; what is more than another step is said at once."""
        with self._changed:
            before = self._said
            self._said = before.model_copy(update={"ready": ready, "notice": notice, "epoch": epoch})
            if _news(before) != _news(self._said):
                self._urgent += 1
                self._changed.notify_all()

    def beat(self) -> tuple[Beat, int]:
        """The next beat, and how much news there were before it."""
        with self._changed:
            self._sequence += 1
            return self._said.model_copy(update={"sequence": self._sequence}), self._urgent

    def await_news(self, than: int, seconds: float) -> None:
        """Returns when something must be said at once that a beat did not say, or when the time is over."""
        with self._changed:
            self._changed.wait_for(lambda: self._urgent != than, seconds)

    def leave(self, answer: Answer, beat: Beat, now: float) -> None:
        """The controller has answered a beat."""
        with self._changed:
            self._answer, self._heard, self._heard_at = answer, beat, now
            self.controller = answer.controller
        self._ring()

    def take(self) -> Answer | None:
        """The last answer, once."""
        with self._changed:
            answer, self._answer = self._answer, None
            return answer

    def has_heard(self) -> bool:
        """Whether the controller knows how the node is."""
        with self._changed:
            return self._heard is not None and _news(self._heard) == _news(self._said)

    def silence(self, now: float) -> float:
        """Seconds since the controller has answered last, or since the beginning."""
        with self._changed:
            return now - self._heard_at


def _news(beat: Beat) -> tuple[bool, Notice | None, NodeEpoch | None]:
    epoch = beat.epoch and beat.epoch.model_copy(update={"step": 0})
    return beat.ready, beat.notice, epoch
