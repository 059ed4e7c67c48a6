"""How the log is read and appended: as few requests as its order allows, several at a time."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.node.commits import manifest
from trainfabric_node.checkpoint import CheckpointStore, LogEntry
from trainfabric_node.checkpoint.log import Log
from trainfabric_node.store import Store
from trainfabric_plan.errors import NotFound, Refused

ENTRIES = 40


class Watched:
    """A store that counts listings, and whose reads wait until several are under way if it is told so."""

    def __init__(self, store: Store, readers: int = 1) -> None:
        self._store = store
        self._together = threading.Barrier(readers, timeout=10)
        self.listings = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def list(self, prefix: str) -> list[str]:
        self.listings += 1
        return self._store.list(prefix)

    def get(self, key: str) -> bytes:
        self._together.wait()
        return self._store.get(key)


def fill(store: Store, entries: int = ENTRIES) -> list[LogEntry]:
    log = Log(store)
    made = [LogEntry(number=number, event="claim", nonce=f"n{number}", time="") for number in range(1, entries + 1)]
    assert all(log.append(entry) for entry in made)
    return made


def test_many_entries_are_read_several_at_a_time_and_in_order(store: Store) -> None:
    made = fill(store)

    assert Log(Watched(store, readers=8)).entries() == made


def test_few_entries_are_read_without_more_threads(store: Store) -> None:
    made = fill(store, 3)
    before = threading.active_count()
    seen: list[int] = []

    class Counting(Watched):
        def get(self, key: str) -> bytes:
            seen.append(threading.active_count())
            return super().get(key)

    assert Log(Counting(store)).entries() == made
    assert seen == [before] * 3


def test_of_many_entries_the_first_hole_is_named_and_what_was_before_stays_known(store: Store) -> None:
    made = fill(store)
    for number in (20, 30):
        store.delete(f"log/{number:08d}.json")
    log = Log(store)

    with pytest.raises(NotFound) as caught:
        log.entries()

    assert str(caught.value) == f"{store.uri}: log/00000020.json must exist, got none; restore it, or start a new job"
    assert log.known == made[:19]


def test_a_run_that_knows_the_log_commits_without_listing_it(store: Store) -> None:
    CheckpointStore(store).claim("run-1", epoch=1)
    watched = Watched(store)
    checkpoints = CheckpointStore(watched)
    assert checkpoints.newest() is None
    watched.listings = 0

    for step in (10, 20, 30):
        checkpoints.commit(manifest(step, "run-1", []))

    assert watched.listings == 0
    assert [entry.step for entry in CheckpointStore(store).commits()] == [10, 20, 30]
    assert checkpoints.commits() == CheckpointStore(store).commits()


def test_a_run_that_has_not_read_the_log_lists_it_once(store: Store) -> None:
    fill(store)
    watched = Watched(store)

    CheckpointStore(watched).claim("run-1")

    assert watched.listings == 1


def test_a_run_that_was_followed_since_it_read_the_log_is_refused(store: Store) -> None:
    stale = CheckpointStore(store)
    stale.claim("run-1", epoch=1)
    CheckpointStore(store).claim("run-2", epoch=2)

    with pytest.raises(Refused, match="got run-1 while run-2 owns it"):
        stale.commit(manifest(10, "run-1", []))
    with pytest.raises(Refused, match="got 2 after 2"):
        CheckpointStore(store).claim("run-3", epoch=2)
    assert [entry.nonce for entry in CheckpointStore(store).claims()] == ["run-1", "run-2"]


def test_a_run_that_another_has_claimed_for_since_the_log_was_read_may_commit(store: Store) -> None:
    checkpoints = CheckpointStore(store)
    checkpoints.claim("run-1", epoch=1)
    CheckpointStore(store).claim("run-2", epoch=2)

    checkpoints.commit(manifest(10, "run-2", []))

    assert [(entry.number, entry.step) for entry in checkpoints.commits()] == [(3, 10)]


def test_entries_of_others_between_ones_own_are_read(store: Store) -> None:
    first, second = CheckpointStore(store), CheckpointStore(store)
    first.claim("run-1")
    for step in (10, 30):
        first.commit(manifest(step, "run-1", []))
        second.commit(manifest(step + 10, "run-1", []))

    assert [entry.step for entry in first.commits()] == [10, 20, 30, 40]
    assert first.commits() == second.commits()
