"""What the nodes of one run write, and what those who watch it read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from trainfabric_node.jobs.records import ControllerAddress, NodeStatus, Outcome, StopRequest, TrainerResult
from trainfabric_node.store import ObjectMissing, Store
from trainfabric_plan.contract import EVENTS_FILE, OUTCOME_FILE, RESULT_FILE, STEPS_FILE, run_prefix
from trainfabric_plan.errors import mistake

Record = TypeVar("Record", bound=BaseModel)


class RunRecords:
    """What the controller and the nodes of one run, and those who watch it, tell each other.

    The controller writes what concerns the whole run. A member of an epoch writes below that epoch, so that nothing is
    written by two.
    """

    def __init__(self, store: Store, job: str, run: int) -> None:
        self._store = store
        self._prefix = run_prefix(job, run)

    @property
    def uri(self) -> str:
        """Address below which the records lie."""
        return self._store.uri + self._prefix

    def request_stop(self, request: StopRequest) -> None:
        """Asks the controller to end the run; the first request counts."""
        self._store.put_if_absent(f"{self._prefix}stop", request.model_dump_json().encode())

    def stop_request(self) -> StopRequest | None:
        """The request to end the run, if there is one."""
        return read_record(self._store, f"{self._prefix}stop", StopRequest)

    def announce(self, controller: ControllerAddress) -> None:
        """Tells the nodes where the controller listens; replaces an earlier one."""
        self._put("controller.json", controller)

    def controller(self) -> ControllerAddress | None:
        """Where the controller listens, once it has said so."""
        return read_record(self._store, f"{self._prefix}controller.json", ControllerAddress)

    def report(self, status: NodeStatus) -> None:
        """Says how far a node is."""
        self._put(f"nodes/{status.instance_id}.json", status)

    def nodes(self) -> list[NodeStatus]:
        """How far all nodes are, coordinator first."""
        keys = self._store.list(f"{self._prefix}nodes/")
        found = [status for key in keys if (status := read_record(self._store, key, NodeStatus))]
        return sorted(found, key=lambda status: (status.role, status.instance_id))

    def conclude(self, outcome: Outcome) -> None:
        """Says how the run ended; the first one counts."""
        self._store.put_if_absent(f"{self._prefix}{OUTCOME_FILE}", outcome.model_dump_json(indent=2).encode())

    def outcome(self) -> Outcome | None:
        """How the run ended, once it has."""
        return read_record(self._store, f"{self._prefix}{OUTCOME_FILE}", Outcome)

    def publish_events(self, incarnation: str, data: bytes) -> None:
        """Writes all events of a controller so far: lines of JSON."""
        self._store.put(f"{self._prefix}events/{incarnation}.jsonl", data)

    def publish(self, epoch: int, name: str, data: bytes) -> None:
        """Writes a file of an epoch, such as `steps.jsonl` or `logs/<instance id>.log`."""
        self._store.put(f"{self._epoch(epoch)}{name}", data)

    def epochs(self) -> list[int]:
        """Numbers of the epochs of this run that have published anything, ascending."""
        prefix = f"{self._prefix}epochs/"
        return sorted({int(key.removeprefix(prefix).split("/")[0]) for key in self._store.list(prefix)})

    def steps_by_epoch(self) -> dict[int, list[dict[str, Any]]]:
        """One line per optimizer step, of each epoch that has published any."""
        found = {number: list(self._lines(self._epoch(number) + STEPS_FILE)) for number in self.epochs()}
        return {number: lines for number, lines in found.items() if lines}

    def steps(self) -> list[dict[str, Any]]:
        """One line per optimizer step; an epoch replaces what earlier ones did from its first step on."""
        merged: list[dict[str, Any]] = []
        for lines in self.steps_by_epoch().values():
            merged = replaced(merged, lines)
        return merged

    def last_step(self) -> dict[str, Any] | None:
        """The last line of `steps` with its `epoch`, without reading more epochs than it takes; `None` if none."""
        for number in reversed(self.epochs()):
            if lines := list(self._lines(self._epoch(number) + STEPS_FILE)):
                return {**lines[-1], "epoch": number}
        return None

    def steps_from(self, epoch: int, offset: int, length: int) -> bytes:
        """Bytes of an epoch's published steps from an offset on, empty if there are none yet."""
        try:
            return self._store.get_range(self._epoch(epoch) + STEPS_FILE, offset, length)
        except ObjectMissing:
            return b""

    def events(self) -> list[dict[str, Any]]:
        """One line per event of the controllers and of the ranks, by time; those of an epoch say its `epoch`."""
        found = [line for key in self._store.list(f"{self._prefix}events/") for line in self._lines(key)]
        for number in self.epochs():
            found += [{"epoch": number, **line} for line in self._lines(self._epoch(number) + EVENTS_FILE)]
        return sorted(found, key=_time_of)

    def result(self) -> TrainerResult | None:
        """What the ranks left behind: of the newest epoch that has published it."""
        for number in reversed(self.epochs()):
            if result := read_record(self._store, self._epoch(number) + RESULT_FILE, TrainerResult):
                return result
        return None

    def logging_nodes(self) -> list[str]:
        """Instance ids of the nodes that have published a log."""
        return sorted({name for names in self._logs().values() for name in names})

    def log(self, instance_id: str) -> str:
        """What a node's ranks have printed, each epoch under its number; raises `ObjectMissing`."""
        numbers = [number for number, names in self._logs().items() if instance_id in names]
        if not numbers:
            raise ObjectMissing(self.uri, f"epochs/*/{log_file(instance_id)}")
        return "".join(f"== epoch {number} ==\n{self._log(number, instance_id)}" for number in numbers)

    def _log(self, epoch: int, instance_id: str) -> str:
        text = self._store.get(self._epoch(epoch) + log_file(instance_id)).decode(errors="replace")
        return text if not text or text.endswith("\n") else f"{text}\n"

    def _logs(self) -> dict[int, set[str]]:
        """Instance ids by epoch."""
        prefix, found = f"{self._prefix}epochs/", dict[int, set[str]]()
        for key in self._store.list(prefix):
            number, _, name = key.removeprefix(prefix).partition("/")
            if name.startswith("logs/"):
                found.setdefault(int(number), set()).add(name.removeprefix("logs/").removesuffix(".log"))
        return found

    def _epoch(self, number: int) -> str:
        return f"{self._prefix}epochs/{number:08d}/"

    def _put(self, name: str, record: BaseModel) -> None:
        self._store.put(self._prefix + name, record.model_dump_json(indent=2).encode())

    def _lines(self, key: str) -> Iterator[dict[str, Any]]:
        try:
            data = self._store.get(key)
        except ObjectMissing:
            return
        yield from parsed(data)


def parsed(data: bytes) -> list[dict[str, Any]]:
    """JSON lines, without one that is not whole yet."""
    whole, _, _ = data.rpartition(b"\n")
    return [json.loads(line) for line in whole.splitlines() if line.strip()]


def log_file(instance_id: str) -> str:
    """Name of a node's log among the published files of an epoch."""
    return f"logs/{instance_id}.log"


def replaced(steps: list[dict[str, Any]], later: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Steps of which later ones replace what was done from their first on."""
    return [line for line in steps if line["step"] < later[0]["step"]] + later if later else steps


def read_record(store: Store, key: str, kind: type[Record]) -> Record | None:
    """An object as a record, or `None` if there is none.

    Raises:
        InvalidInput: If it is none of this version.
    """
    try:
        return kind.model_validate_json(store.get(key))
    except ObjectMissing:
        return None
    except ValidationError as error:
        problem = error.errors()[0]
        got = f"{'.'.join(map(str, problem['loc']))}: {problem['msg'].lower()}"
        remedy = "use the version of trainfabric that wrote it, or remove the object"
        raise mistake(f"{store.uri}{key}", "the object", f"a {kind.__name__} of this version", got, remedy) from None


def _time_of(event: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(event["time"])
