"""The epochs of a job in its bucket: each number is claimed once, and the checkpoint log fences all but the newest."""

from __future__ import annotations

from trainfabric_node.checkpoint import LogEntry, new_nonce
from trainfabric_node.jobs.ledger import JobLedger
from trainfabric_node.jobs.records import ControllerAddress, JobSpec, now
from trainfabric_node.jobs.run_records import read_record
from trainfabric_node.membership.actions import Form
from trainfabric_node.membership.protocol import EpochOrder, EpochRecord
from trainfabric_plan.contract import epoch_key
from trainfabric_plan.errors import Refused


class Epochs:
    """The epochs of one run, as one controller claims them. Used by one thread.

    All methods raise `Unreachable` if the bucket does not answer; asked again, they go on where they were.

    Args:
        ledger: The jobs of the environment.
        spec: The run.
        controller: The controller, and where its rendezvous store listens.
    """

    def __init__(self, ledger: JobLedger, spec: JobSpec, controller: ControllerAddress) -> None:
        self._store = ledger.store
        self._checkpoints = ledger.checkpoints(spec.job)
        self._spec = spec
        self._controller = controller
        self._prefix = epoch_key(spec.job, 1).rpartition("/")[0] + "/"
        self._known: dict[str, EpochRecord] = {}
        self._pending: tuple[Form, EpochRecord] | None = None

    def adopt(self) -> EpochOrder | None:
        """The newest epoch of this run, claimed in the log if its controller did not get so far; `None` if none is.

        Raises:
            Refused: If a later run has taken the job over.
        """
        self._read()
        newest = self._newest()
        if newest is None or newest.run < self._spec.run:
            return None
        if newest.run > self._spec.run:
            raise self._late(newest)
        self._claim_log(newest)
        return self._order(newest)

    def claim(self, form: Form) -> EpochOrder:
        """Claims the next number for a membership, and the log for its ranks.

        Raises:
            Refused: If another controller has taken the job over.
        """
        if self._pending is None or self._pending[0] != form:
            self._pending = form, self._next(form)
        record = self._pending[1]
        key = epoch_key(record.job, record.number)
        if not self._store.put_if_absent(key, record.model_dump_json(indent=2).encode()):
            raise self._late(read_record(self._store, key, EpochRecord))
        self._known[key] = record
        self._claim_log(record)
        self._pending = None
        return self._order(record)

    def commits(self) -> list[LogEntry]:
        """All commits of the job, in order."""
        return self._checkpoints.commits()

    def _next(self, form: Form) -> EpochRecord:
        others = [record for record in self._read() if record.controller != self._controller.incarnation]
        if others:
            raise self._late(others[-1])
        newest = self._newest()
        return EpochRecord(
            job=self._spec.job,
            run=self._spec.run,
            number=newest.number + 1 if newest else 1,
            nonce=new_nonce(),
            nodes=form.nodes,
            plan=form.plan,
            detail=form.detail,
            controller=self._controller.incarnation,
            claimed=now(),
        )

    def _read(self) -> list[EpochRecord]:
        """What is there besides what was known before."""
        keys = [key for key in self._store.list(self._prefix) if key not in self._known]
        found = {key: record for key in keys if (record := read_record(self._store, key, EpochRecord))}
        self._known.update(found)
        return list(found.values())

    def _newest(self) -> EpochRecord | None:
        return max(self._known.values(), key=lambda record: record.number, default=None)

    def _claim_log(self, record: EpochRecord) -> None:
        """After this, no earlier epoch commits; what it has committed before is what this one goes on from."""
        if record.nonce not in {entry.nonce for entry in self._checkpoints.claims()}:
            self._checkpoints.claim(record.nonce, epoch=record.number)

    def _order(self, record: EpochRecord) -> EpochOrder:
        newest = self._checkpoints.newest()
        own = {known.nonce for known in self._known.values() if known.run == self._spec.run}
        goes_on = newest is not None and newest.nonce in own
        return EpochOrder(
            record=record,
            resume=newest is not None,
            from_step=None if goes_on or newest is None else self._spec.from_step,
            rendezvous_host=self._controller.host,
            rendezvous_port=self._controller.rendezvous_port,
        )

    def _late(self, other: EpochRecord | None) -> Refused:
        who = f"epoch {other.number} of run {other.run} by {other.controller}" if other else "another epoch"
        return Refused(
            f"{self._store.uri}: controller must be the one of job {self._spec.job}, got {who} beside "
            f"{self._controller.incarnation}; the other one goes on"
        )
