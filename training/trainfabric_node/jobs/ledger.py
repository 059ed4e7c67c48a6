"""Which job runs, and which there have been: the records of an environment in its checkpoint bucket."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from trainfabric_node.checkpoint import CheckpointStore
from trainfabric_node.jobs.prefixed import PrefixedStore
from trainfabric_node.jobs.records import JobSpec, RunPointer
from trainfabric_node.jobs.run_records import RunRecords, parsed, read_record, replaced
from trainfabric_node.store import Store
from trainfabric_plan.contract import CURRENT_JOB_KEY, LAST_JOB_KEY, checkpoint_prefix, epoch_key, job_prefix
from trainfabric_plan.errors import NotFound, Refused


def filled(steps: list[dict[str, Any]], checkpoints: CheckpointStore) -> list[dict[str, Any]]:
    """Steps with what commits have kept of those that are missing below the last one or the newest commit."""
    by_step = {line["step"]: line for line in steps}
    commits = checkpoints.commits()
    last = max((*by_step, *(commit.step for commit in commits)), default=0)
    if len(by_step) == last:
        return steps
    missing = set(range(1, last + 1)) - by_step.keys()
    for before, commit in pairwise([None, *commits]):
        first = before.step if before and commit and before.step < commit.step else 0
        if commit and any(first < step <= commit.step for step in missing):
            kept = parsed(checkpoints.kept_steps(commit))
            by_step.update({line["step"]: line for line in kept if line["step"] in missing})
    return [by_step[step] for step in sorted(by_step)]


class JobLedger:
    """The jobs of one environment; `store` is its checkpoint bucket."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def store(self) -> Store:
        """The checkpoint bucket."""
        return self._store

    def claim(self, spec: JobSpec) -> None:
        """Makes this run the one of its environment, and the job's newest.

        Raises:
            Refused: If another one is running.
        """
        running = self.current()
        if running and self.run(running.job, running.run).outcome():
            self.release(running)
        data = spec.model_dump_json(indent=2).encode()
        if not self._store.put_if_absent(CURRENT_JOB_KEY, data):
            raise self._taken(spec.environment, spec.job)
        pointer = RunPointer(job=spec.job, run=spec.run)
        self._store.put(f"{job_prefix(spec.job)}job.json", data)
        self._store.put(LAST_JOB_KEY, pointer.model_dump_json(indent=2).encode())

    def check_free(self, environment: str, job: str) -> None:
        """Raises `Refused` if a run that has not ended holds the environment; claims and changes nothing."""
        running = self.current()
        if running and not self.run(running.job, running.run).outcome():
            raise self._taken(environment, job)

    def release(self, spec: JobSpec) -> None:
        """Frees the environment, if it is still this run that holds it."""
        running = self.current()
        if running and running.nonce == spec.nonce:
            self._store.delete(CURRENT_JOB_KEY)

    def current(self) -> JobSpec | None:
        """The run that holds the environment."""
        return read_record(self._store, CURRENT_JOB_KEY, JobSpec)

    def newest(self) -> JobSpec | None:
        """The run that holds the environment, or the last one that did."""
        pointer = read_record(self._store, LAST_JOB_KEY, RunPointer)
        return self.current() or (self.job(pointer.job) if pointer else None)

    def job(self, job: str) -> JobSpec:
        """The newest run of a job.

        Raises:
            NotFound: If there is no such job; the message names those that there are.
        """
        found = read_record(self._store, f"{job_prefix(job)}job.json", JobSpec)
        if found is None:
            there = ", ".join(self.jobs()) or "none"
            raise NotFound(f"{self._store.uri}: job must be an existing one, got {job}; existing jobs: {there}")
        return found

    def jobs(self) -> list[str]:
        """Names of all jobs there have been."""
        keys = (key.split("/") for key in self._store.list("jobs/"))
        return sorted({parts[1] for parts in keys if len(parts) == 3 and parts[2] == "job.json"})

    def run(self, job: str, run: int) -> RunRecords:
        """The records of one run."""
        return RunRecords(self._store, job, run)

    def next_run(self, job: str) -> int:
        """The number that the next run of a job has."""
        prefix = f"{job_prefix(job)}runs/"
        used = {int(key.removeprefix(prefix).split("/")[0]) for key in self._store.list(prefix)}
        known = read_record(self._store, f"{job_prefix(job)}job.json", JobSpec)
        return max(used | {known.run if known else 0}) + 1

    def checkpoints(self, job: str) -> CheckpointStore:
        """The checkpoints of a job."""
        return CheckpointStore(PrefixedStore(self._store, checkpoint_prefix(job)))

    def has_checkpoint_objects(self, job: str) -> bool:
        """Whether a trainer of this job has ever written anything."""
        return bool(self._store.list(checkpoint_prefix(job)))

    def has_begun(self, job: str) -> bool:
        """Whether there has been an epoch of this job."""
        return bool(self._store.list(epoch_key(job, 0).rpartition("/")[0] + "/"))

    def steps(self, job: str) -> list[dict[str, Any]]:
        """One line per optimizer step of a job; a run replaces what earlier ones did from its first step on.

        Steps that a node took with it before it could upload them are taken from the checkpoints that hold them.
        """
        merged: list[dict[str, Any]] = []
        for number in range(1, self.job(job).run + 1):
            merged = replaced(merged, self.run(job, number).steps())
        return filled(merged, self.checkpoints(job))

    def last_step(self, job: str) -> dict[str, Any] | None:
        """See `RunRecords.last_step`; of the newest run that has one."""
        for number in range(self.job(job).run, 0, -1):
            if line := self.run(job, number).last_step():
                return line
        return None

    def _taken(self, environment: str, job: str) -> Refused:
        running = self.current()
        name = (
            f"{running.job} (run {running.run}, since {running.created:%Y-%m-%d %H:%M} UTC)" if running else "another"
        )
        remedy = "wait for it, or end it with trainfabric job stop"
        return Refused(
            f"environment {environment}: jobs must run one at a time, got {job} while {name} is running; {remedy}"
        )
