"""Who runs, what was asked and what was said: the records of all jobs of an environment in its checkpoint bucket."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from trainfabric_node.checkpoint import CheckpointStore
from trainfabric_node.jobs.prefixed import PrefixedStore
from trainfabric_node.jobs.records import (
    BECAUSE_OF_ANOTHER,
    JobSpec,
    NodeState,
    NodeStatus,
    Outcome,
    Rendezvous,
    RunPointer,
    StopRequest,
    TrainerResult,
    now,
)
from trainfabric_node.store import ObjectMissing, Store
from trainfabric_plan.contract import (
    CURRENT_JOB_KEY,
    EVENTS_FILE,
    LAST_JOB_KEY,
    OUTCOME_FILE,
    RESULT_FILE,
    STEPS_FILE,
    checkpoint_prefix,
    job_prefix,
    run_prefix,
)
from trainfabric_plan.errors import NotFound, Refused, mistake

Record = TypeVar("Record", bound=BaseModel)


class JobLedger:
    """The jobs of one environment; `store` is its checkpoint bucket."""

    def __init__(self, store: Store) -> None:
        self._store = store

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
        return _read(self._store, CURRENT_JOB_KEY, JobSpec)

    def newest(self) -> JobSpec | None:
        """The run that holds the environment, or the last one that did."""
        pointer = _read(self._store, LAST_JOB_KEY, RunPointer)
        return self.current() or (self.job(pointer.job) if pointer else None)

    def job(self, job: str) -> JobSpec:
        """The newest run of a job.

        Raises:
            NotFound: If there is no such job; the message names those that there are.
        """
        found = _read(self._store, f"{job_prefix(job)}job.json", JobSpec)
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
        known = _read(self._store, f"{job_prefix(job)}job.json", JobSpec)
        return max(used | {known.run if known else 0}) + 1

    def checkpoints(self, job: str) -> CheckpointStore:
        """The checkpoints of a job."""
        return CheckpointStore(PrefixedStore(self._store, checkpoint_prefix(job)))

    def has_checkpoint_objects(self, job: str) -> bool:
        """Whether a trainer of this job has ever written anything."""
        return bool(self._store.list(checkpoint_prefix(job)))

    def steps(self, job: str) -> list[dict[str, Any]]:
        """One line per optimizer step of a job; a run replaces what earlier ones did from its first step on."""
        merged: list[dict[str, Any]] = []
        for number in range(1, self.job(job).run + 1):
            lines = self.run(job, number).steps()
            if lines:
                merged = [line for line in merged if line["step"] < lines[0]["step"]] + lines
        return merged

    def _taken(self, environment: str, job: str) -> Refused:
        running = self.current()
        name = (
            f"{running.job} (run {running.run}, since {running.created:%Y-%m-%d %H:%M} UTC)" if running else "another"
        )
        remedy = "wait for it, or end it with trainfabric job stop"
        return Refused(
            f"environment {environment}: jobs must run one at a time, got {job} while {name} is running; {remedy}"
        )


class RunRecords:
    """What the nodes of one run and those who watch it tell each other."""

    def __init__(self, store: Store, job: str, run: int) -> None:
        self._store = store
        self._prefix = run_prefix(job, run)

    @property
    def uri(self) -> str:
        """Address below which the records lie."""
        return self._store.uri + self._prefix

    def request_stop(self, request: StopRequest) -> None:
        """Asks all nodes to end the run; the first request counts, unless a later one says that it failed."""
        data = request.model_dump_json().encode()
        if request.reason == "failed":
            self._store.put(f"{self._prefix}stop", data)
        else:
            self._store.put_if_absent(f"{self._prefix}stop", data)

    def stop_request(self) -> StopRequest | None:
        """The request to end the run, if there is one."""
        return _read(self._store, f"{self._prefix}stop", StopRequest)

    def announce(self, rendezvous: Rendezvous) -> None:
        """Tells the nodes where to meet."""
        self._put("rendezvous.json", rendezvous)

    def rendezvous(self) -> Rendezvous | None:
        """Where the nodes meet, once the coordinator has said so."""
        return _read(self._store, f"{self._prefix}rendezvous.json", Rendezvous)

    def report(self, status: NodeStatus) -> None:
        """Says how far a node is."""
        self._put(f"nodes/{status.instance_id}.json", status)

    def node(self, instance_id: str) -> NodeStatus | None:
        """What a node last said, if it said anything."""
        return _read(self._store, f"{self._prefix}nodes/{instance_id}.json", NodeStatus)

    def nodes(self) -> list[NodeStatus]:
        """What all nodes last said, coordinator first."""
        keys = self._store.list(f"{self._prefix}nodes/")
        found = [status for key in keys if (status := _read(self._store, key, NodeStatus))]
        return sorted(found, key=lambda status: (status.role, status.instance_id))

    def conclude(self, outcome: Outcome) -> None:
        """Says how the run ended; the first one counts."""
        self._store.put_if_absent(f"{self._prefix}{OUTCOME_FILE}", outcome.model_dump_json(indent=2).encode())

    def how_it_ended(self, nodes: list[NodeStatus]) -> Outcome:
        """What follows from what its nodes and its trainer have said; a node's own reason tells more than an echo."""
        failed = sorted((node for node in nodes if node.state is NodeState.FAILED), key=_rank_as_reason)
        result, stop = self.result(), self.stop_request()
        step = result.step if result else None
        if failed:
            detail = f"{failed[0].instance_id}: {failed[0].detail}"
            return Outcome(state="failed", step=step, detail=detail, ended=now())
        why = f"{stop.reason} {stop.detail}".strip() if stop else ""
        if result is None:
            return Outcome(state="stopped", detail=", ".join(filter(None, ("before training began", why))), ended=now())
        return Outcome(state=result.status, step=step, detail=why if result.status == "stopped" else "", ended=now())

    def outcome(self) -> Outcome | None:
        """How the run ended, once it has."""
        return _read(self._store, f"{self._prefix}{OUTCOME_FILE}", Outcome)

    def result(self) -> TrainerResult | None:
        """What the trainer left behind, once the node of rank 0 has published it."""
        return _read(self._store, self._prefix + RESULT_FILE, TrainerResult)

    def publish(self, name: str, data: bytes) -> None:
        """Writes a file of the run, such as `steps.jsonl` or `logs/<instance id>.log`."""
        self._store.put(self._prefix + name, data)

    def log(self, instance_id: str) -> str:
        """What a node's trainer printed, as far as it is published; raises `ObjectMissing`."""
        return self._store.get(f"{self._prefix}logs/{instance_id}.log").decode(errors="replace")

    def logging_nodes(self) -> list[str]:
        """Instance ids of the nodes that have published a log."""
        keys = self._store.list(f"{self._prefix}logs/")
        return [key.rpartition("/")[2].removesuffix(".log") for key in keys]

    def steps(self) -> list[dict[str, Any]]:
        """One line per optimizer step, as far as they are published."""
        return list(self._lines(STEPS_FILE))

    def events(self) -> list[dict[str, Any]]:
        """One line per event, as far as they are published."""
        return list(self._lines(EVENTS_FILE))

    def steps_from(self, offset: int, length: int) -> bytes:
        """Bytes of the published steps from an offset on, empty if there are none yet."""
        try:
            return self._store.get_range(self._prefix + STEPS_FILE, offset, length)
        except ObjectMissing:
            return b""

    def _put(self, name: str, record: BaseModel) -> None:
        self._store.put(self._prefix + name, record.model_dump_json(indent=2).encode())

    def _lines(self, name: str) -> Iterator[dict[str, Any]]:
        try:
            data = self._store.get(self._prefix + name)
        except ObjectMissing:
            return
        whole, _, _ = data.rpartition(b"\n")
        yield from (json.loads(line) for line in whole.splitlines() if line.strip())


def _read(store: Store, key: str, kind: type[Record]) -> Record | None:
    try:
        return kind.model_validate_json(store.get(key))
    except ObjectMissing:
        return None
    except ValidationError as error:
        problem = error.errors()[0]
        got = f"{'.'.join(map(str, problem['loc']))}: {problem['msg'].lower()}"
        remedy = "use the version of trainfabric that wrote it, or remove the object"
        raise mistake(f"{store.uri}{key}", "the object", f"a {kind.__name__} of this version", got, remedy) from None


def _rank_as_reason(failed: NodeStatus) -> tuple[bool, datetime]:
    """Nodes with a reason of their own first, whoever reported first: the others ended because of them."""
    return failed.detail.startswith(BECAUSE_OF_ANOTHER), failed.updated
