"""Keeps a run's checkpoints: takes the job over, restores, saves and says so."""

from __future__ import annotations

import time

from trainfabric_node.checkpoint import CheckpointStore, LogEntry, new_nonce
from trainfabric_training.engine.checkpoint import Run, restore, save
from trainfabric_training.engine.protocol import StatefulEngine
from trainfabric_training.parallel import Ranks
from trainfabric_training.telemetry import Records
from trainfabric_training.version import code_version


class Keeper:
    """The checkpoints of one run of a job; every rank has one and calls it alike."""

    def __init__(
        self,
        engine: StatefulEngine,
        checkpoints: CheckpointStore,
        ranks: Ranks,
        records: Records,
        *,
        job: str,
        nonce: str | None = None,
    ) -> None:
        self._engine = engine
        self._checkpoints = checkpoints
        self._ranks = ranks
        self._records = records
        self._records.take_unsaved()
        self._run = Run(job=job, nonce=nonce or ranks.on_first(new_nonce), code_version=code_version())

    def claim(self) -> None:
        """Makes this run the only one that can commit; the commit to start from is chosen after it, not before.

        A run that was given a nonce commits under the claim that was made with it, for as long as it is the newest.
        """
        self._ranks.on_first(lambda: self._checkpoints.claim(self._run.nonce))

    def restore(self, commit: LogEntry) -> None:
        """Sets the engine to a commit; raises `Agreed` if it is damaged, incomplete or of another recipe."""
        restore(self._engine, self._checkpoints, self._ranks, commit)
        self._records.event("resume", step=commit.step, checkpoint=self._checkpoints.checkpoint_uri(commit))

    def save(self, step: int) -> None:
        """Saves the state after a step; returns when it is committed."""
        began = time.perf_counter()
        lines = self._records.take_unsaved()
        saved = save(self._engine, self._checkpoints, self._ranks, self._run, step, lines)
        self._records.event(
            "commit",
            step=step,
            checkpoint=self._checkpoints.checkpoint_uri(saved.commit),
            seconds=time.perf_counter() - began,
            bytes=saved.size,
        )
