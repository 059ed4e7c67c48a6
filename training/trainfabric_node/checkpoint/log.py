"""The one ordered log of a job: which run owns it, and which checkpoints exist."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from trainfabric_node.store import ObjectMissing, Store
from trainfabric_plan.errors import NotFound, mistake
from trainfabric_plan.model import Strict

LOG_PREFIX = "log/"
_READ_ONE_BY_ONE = 3
_READ_AT_ONCE = 16


class LogEntry(Strict):
    """One line of the log. A claim names the run that writes from here on; a commit names its step and manifest."""

    number: Annotated[int, Field(ge=1)]
    event: Literal["claim", "commit"]
    nonce: str
    time: str
    step: int = 0
    epoch: int = 0
    """Of a claim: number of the epoch whose ranks may commit; 0 for a run that numbers none."""
    manifest_key: str = ""
    manifest_sha256: str = ""


class Log:
    """Reads the log to its tail and appends. Entries are immutable, so each is read once. Used by one thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: list[LogEntry] = []

    @property
    def known(self) -> list[LogEntry]:
        """The first entries in order, as many as were read or appended; others may have appended since."""
        return list(self._known)

    def entries(self) -> list[LogEntry]:
        """All entries in order.

        Raises:
            NotFound: If one is missing below a later one.
            InvalidInput: If one cannot be read.
        """
        newest = max((_number(key) for key in self._store.list(LOG_PREFIX)), default=0)
        self._read_up_to(newest)
        return self.known

    def append(self, entry: LogEntry) -> bool:
        """Appends an entry whose number is one more than the tail's; `False` if somebody else was first."""
        appended = self._store.put_if_absent(_key(entry.number), entry.model_dump_json().encode())
        if appended and entry.number == len(self._known) + 1:
            self._known.append(entry)
        return appended

    def _read_up_to(self, newest: int) -> None:
        """Several at a time if many are missing: a run of a thousand commits is read at every epoch's start."""
        missing = range(len(self._known) + 1, newest + 1)
        if len(missing) <= _READ_ONE_BY_ONE:
            self._known.extend(map(self._read, missing))
            return
        with ThreadPoolExecutor(_READ_AT_ONCE) as pool:
            self._known.extend(pool.map(self._read, missing))

    def _read(self, number: int) -> LogEntry:
        remedy = "restore it, or start a new job"
        try:
            entry = LogEntry.model_validate_json(self._store.get(_key(number)))
        except ObjectMissing:
            raise NotFound(f"{self._store.uri}: {_key(number)} must exist, got none; {remedy}") from None
        except ValidationError as error:
            reason = error.errors()[0]["msg"]
            raise mistake(self._store.uri, _key(number), "a valid log entry", reason, remedy) from None
        if entry.number != number:
            raise mistake(self._store.uri, _key(number), f"entry {number}", entry.number, remedy)
        return entry


def _key(number: int) -> str:
    return f"{LOG_PREFIX}{number:08d}.json"


def _number(key: str) -> int:
    digits = key.removeprefix(LOG_PREFIX).removesuffix(".json")
    return int(digits) if digits.isdecimal() else 0
