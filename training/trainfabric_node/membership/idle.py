"""Nodes without a job: they are released after a while, so that nobody pays for a fleet that was forgotten."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from trainfabric_node.jobs.ledger import JobLedger
from trainfabric_node.jobs.records import JobSpec
from trainfabric_node.membership.hands import FleetLike
from trainfabric_plan.errors import TrainfabricError

_LOG = logging.getLogger(__name__)

PATIENCE_S = 900.0
"""That a fleet may be without a job."""

AGAIN_S = 60.0
"""Between two attempts."""


class Idle:
    """Since when there is no job.

    Args:
        ledger: The jobs of the environment.
        deployed: Opens the environment's fleet as it is deployed.
        fleet: Opens the fleet of a job.
        clock: Seconds, monotonic.
    """

    def __init__(
        self,
        ledger: JobLedger,
        deployed: Callable[[], FleetLike],
        fleet: Callable[[JobSpec], FleetLike],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ledger = ledger
        self._deployed = deployed
        self._fleet = fleet
        self._clock = clock
        self._due: float | None = None

    def look(self, spec: JobSpec | None) -> None:
        """Takes in whether there is a job, and releases nodes that have had none for too long."""
        now = self._clock()
        if spec is not None:
            self._due = None
        elif self._due is None:
            self._due = now + PATIENCE_S
        elif now >= self._due:
            self._due = now + AGAIN_S
            self._try()

    def _try(self) -> None:
        try:
            self._release()
        except TrainfabricError as error:
            _LOG.warning("%s", error)

    def _release(self) -> None:
        if self._ledger.current() is not None:  # the bucket did not answer before, which is no job's end
            return
        fleet = self._deployed()
        if all(member.leaving for member in fleet.members()):
            return
        _LOG.info("no job for %g s: the nodes are released", PATIENCE_S)
        fleet.release()
        spec = self._ledger.current()
        if spec is not None:  # started between the two requests
            self._fleet(spec).restore(spec.plan.nodes, spec.spares)
