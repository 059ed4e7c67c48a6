"""The end of a run: its nodes are released, then its outcome is told, then the environment is free."""

from __future__ import annotations

import logging
from collections.abc import Callable

from trainfabric_node.jobs.ledger import JobLedger
from trainfabric_node.jobs.records import JobSpec, Outcome, now
from trainfabric_plan.errors import TrainfabricError

_LOG = logging.getLogger(__name__)
ATTEMPT_S = 5.0
"""Until the second attempt; each later pause is twice as long."""

_LONGEST_S = 60.0


class Ending:
    """Tries each step until it succeeds: a run whose nodes are still there must not look as if it were over.

    Args:
        ledger: The jobs of the environment.
        spec: The run.
        release: Gives the nodes back; raises `TrainfabricError`.
        complain: Called once with why the nodes could not be given back.
        pause: Waits for some seconds; `False` if the process is to leave.
    """

    def __init__(
        self,
        ledger: JobLedger,
        spec: JobSpec,
        release: Callable[[], None],
        complain: Callable[[TrainfabricError], None],
        pause: Callable[[float], bool],
    ) -> None:
        self._ledger = ledger
        self._spec = spec
        self._give_back = release
        self._complain = complain
        self._pause = pause
        self._has_complained = False

    def bring_about(self, outcome: Outcome) -> bool:
        """In this order: whoever sees the outcome may start the next run, whose nodes must not be released then.

        Returns:
            Whether all is done; `False` if the process is to leave before.
        """
        records = self._ledger.run(self._spec.job, self._spec.run)
        return (
            self._persist(self._release, self._told)
            and self._persist(lambda: records.conclude(outcome.model_copy(update={"ended": now()})))
            and self._persist(lambda: self._ledger.release(self._spec))
        )

    def _release(self) -> None:
        if self._is_ours():
            self._give_back()

    def _is_ours(self) -> bool:
        """Whether nobody else has ended the run meanwhile, by force; then the nodes are another run's, or gone."""
        try:
            holder = self._ledger.current()
        except TrainfabricError:
            return True
        return holder is not None and holder.nonce == self._spec.nonce

    def _told(self, error: TrainfabricError) -> None:
        if not self._has_complained:
            self._has_complained = True
            self._complain(error)

    def _persist(
        self, action: Callable[[], None], failed: Callable[[TrainfabricError], None] = lambda error: None
    ) -> bool:
        pause_s = ATTEMPT_S
        while True:
            try:
                action()
            except TrainfabricError as error:
                _LOG.warning("%s", error)
                failed(error)
            else:
                return True
            if not self._pause(pause_s):
                return False
            pause_s = min(2 * pause_s, _LONGEST_S)
