"""The checkpoints of one job."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime

from pydantic import ValidationError

from trainfabric_node.checkpoint.log import Log, LogEntry
from trainfabric_node.checkpoint.manifest import FORMAT_VERSION, Manifest
from trainfabric_node.checkpoint.reader import REMEDY, CheckpointReader
from trainfabric_node.checkpoint.writer import PartWriter
from trainfabric_node.store import ObjectMissing, Store
from trainfabric_plan.contract import STEPS_FILE
from trainfabric_plan.errors import NotFound, Refused, mistake


def new_nonce() -> str:
    """A name for one run of a job that no other run has."""
    return uuid.uuid4().hex[:12]


class CheckpointStore:
    """Commits and checkpoints of one job in a store of their own.

    A run claims the job once, writes parts from all ranks, and commits from one. A run whose claim is not the newest
    any more cannot commit.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._log = Log(store)

    @property
    def uri(self) -> str:
        """Address of the job's checkpoints."""
        return self._store.uri

    def commits(self) -> list[LogEntry]:
        """All commits, in the order of the log."""
        return [entry for entry in self._log.entries() if entry.event == "commit"]

    def claims(self) -> list[LogEntry]:
        """All claims, in the order of the log; the last one owns the job."""
        return [entry for entry in self._log.entries() if entry.event == "claim"]

    def newest(self) -> LogEntry | None:
        """The last commit of the log, or `None` if there is none."""
        return next(reversed(self.commits()), None)

    def at_step(self, step: int) -> LogEntry:
        """The last commit of this step; raises `NotFound` with the steps there are."""
        commits = self.commits()
        for entry in reversed(commits):
            if entry.step == step:
                return entry
        there = ", ".join(str(entry.step) for entry in commits) or "none"
        raise NotFound(f"{self.uri}: step must be a committed one, got {step}; committed steps: {there}")

    def claim(self, nonce: str, epoch: int = 0) -> None:
        """Makes the run of this nonce the only one that can commit.

        Args:
            nonce: Name of the run, or of the epoch.
            epoch: Number of the epoch; 0 for a run that numbers none.

        Raises:
            Refused: If a later epoch has claimed the job.
        """

        def entry(before: list[LogEntry]) -> LogEntry:
            self._refuse_late(epoch, before)
            return LogEntry(number=len(before) + 1, event="claim", nonce=nonce, time=_now(), epoch=epoch)

        self._append(entry)

    def writer(self, step: int, nonce: str, rank: int) -> PartWriter:
        """Writes the parts of one rank for a step that is not committed yet."""
        return PartWriter(self._store, f"{folder(step, nonce)}rank{rank:05d}")

    def keep_steps(self, step: int, nonce: str, lines: bytes) -> None:
        """Writes the lines of `steps.jsonl` since the commit before beside a checkpoint that is not committed yet.

        What a step was is then known wherever its state is: the node that had the file may be gone.
        """
        self._store.put(f"{folder(step, nonce)}{STEPS_FILE}", lines)

    def kept_steps(self, commit: LogEntry) -> bytes:
        """What was kept with a commit; empty if nothing was."""
        try:
            return self._store.get(f"{folder(commit.step, commit.nonce)}{STEPS_FILE}")
        except ObjectMissing:
            return b""

    def commit(self, manifest: Manifest) -> LogEntry:
        """Makes a checkpoint exist, whose parts are all written.

        Raises:
            Refused: If another run has claimed the job since, or this run has committed the step before.
        """
        key, data = f"{folder(manifest.step, manifest.nonce)}manifest.json", manifest.to_bytes()
        if not self._store.put_if_absent(key, data):
            raise Refused(f"{self.uri}: {key} must be written once, got a second commit of step {manifest.step}")

        def entry(before: list[LogEntry]) -> LogEntry:
            self._refuse_stale(manifest.nonce, before)
            return LogEntry(
                number=len(before) + 1,
                event="commit",
                nonce=manifest.nonce,
                time=_now(),
                step=manifest.step,
                manifest_key=key,
                manifest_sha256=hashlib.sha256(data).hexdigest(),
            )

        return self._append(entry)

    def open(self, commit: LogEntry) -> CheckpointReader:
        """A reader of a committed checkpoint.

        Raises:
            NotFound: If the manifest is missing.
            InvalidInput: If it is not the one that was committed, or of a format that is not known.
        """
        try:
            data = self._store.get(commit.manifest_key)
        except ObjectMissing:
            raise NotFound(f"{self.uri}: {commit.manifest_key} must exist, got none; {REMEDY}") from None
        digest = hashlib.sha256(data).hexdigest()
        if digest != commit.manifest_sha256:
            rule = f"an object with SHA-256 {commit.manifest_sha256}"
            raise mistake(self.uri, commit.manifest_key, rule, digest, REMEDY)
        try:
            return CheckpointReader(self._store, Manifest.model_validate_json(data))
        except ValidationError as error:
            rule = f"a manifest of format version {FORMAT_VERSION}"
            reason = error.errors()[0]
            got = f"{'.'.join(map(str, reason['loc']))}: {reason['msg']}"
            raise mistake(self.uri, commit.manifest_key, rule, got, "use the version that wrote it") from None

    def checkpoint_uri(self, commit: LogEntry) -> str:
        """Address below which the objects of a commit lie."""
        return self.uri + folder(commit.step, commit.nonce)

    def _append(self, entry: Callable[[list[LogEntry]], LogEntry]) -> LogEntry:
        """Appends behind the tail; somebody else's entry there is read, and the next number tried.

        What is known of the log is its tail as a rule, and needs no listing: an entry that somebody else has appended
        since takes the number. Nobody is refused by it, though, before all that is there was read.
        """
        if known := self._log.known:
            with suppress(Refused):
                made = entry(known)
                if self._log.append(made):
                    return made
        while True:
            made = entry(self._log.entries())
            if self._log.append(made):
                return made

    def _refuse_late(self, epoch: int, before: list[LogEntry]) -> None:
        newest = max((entry.epoch for entry in before), default=0)
        if epoch and epoch <= newest:
            raise Refused(
                f"{self.uri}: epoch must be later than the last one that was claimed, got {epoch} after {newest}; "
                "another controller goes on"
            )

    def _refuse_stale(self, nonce: str, before: list[LogEntry]) -> None:
        owner = next((entry.nonce for entry in reversed(before) if entry.event == "claim"), None)
        if owner != nonce:
            raise Refused(
                f"{self.uri}: run must be the one that owns the job, got {nonce} while {owner} owns it; "
                "stop this run, the other one goes on"
            )


def folder(step: int, nonce: str) -> str:
    """Key prefix of one checkpoint."""
    return f"steps/{step:08d}-{nonce}/"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
