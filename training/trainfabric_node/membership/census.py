"""Compares what the fleet has with what is heard, on a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable

from trainfabric_node.jobs.records import JobSpec
from trainfabric_node.membership.actions import Replace
from trainfabric_node.membership.core import Core
from trainfabric_node.membership.hands import Hands
from trainfabric_node.membership.unheard import Missing, Unheard


class Census:
    """Gives nodes back that never come up, and asks for those that the fleet has lost from its size.

    Args:
        spec: The run.
        own_id: The controller's own node.
        core: What is heard.
        lock: Held while the core is asked.
        hands: Reach the fleet.
        clock: Seconds, monotonic.
    """

    def __init__(
        self, spec: JobSpec, own_id: str, core: Core, lock: threading.Lock, hands: Hands, clock: Callable[[], float]
    ) -> None:
        self._spec = spec
        self._own_id = own_id
        self._core = core
        self._lock = lock
        self._hands = hands
        self._clock = clock
        self._unheard = Unheard(spec.policy.start_deadline_s)
        self._missing = Missing(spec.instances)

    def count(self) -> None:
        """Looks at the fleet once; raises `TrainfabricError`."""
        there = self._hands.there()
        with self._lock:
            is_over, is_refusing = self._core.concluded is not None, self._core.is_refusing
            ready = [node.beat.instance_id for node in self._core.roster if node.was_ready]
        if is_over:
            return
        for name in self._unheard.overdue(there, [*ready, self._own_id], self._clock()):
            self._give_back(name)
        if not is_refusing and self._missing.is_due(len(there), self._clock()):
            self._hands.restore(self._spec.plan.nodes, self._spec.spares)

    def _give_back(self, name: str) -> None:
        with self._lock:
            self._core.give_up(name)
        detail = f"runs, but was not up and warm within {self._spec.policy.start_deadline_s} s"
        self._hands.replace(Replace(instance_id=name, detail=detail))
