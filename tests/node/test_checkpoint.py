from __future__ import annotations

import struct
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.node.commits import commit, manifest, write_part
from trainfabric_node.checkpoint import (
    CheckpointStore,
    Geometry,
    PartWriter,
    recipe_differences,
)
from trainfabric_node.store import Store, open_store
from trainfabric_plan.errors import InvalidInput, NotFound, Refused
from trainfabric_plan.recipes import recipe

REMEDY = "restore the object, or resume an older commit with --from-step"


def read_all(checkpoints: CheckpointStore) -> tuple[float, ...]:
    newest = checkpoints.newest()
    assert newest is not None
    reader = checkpoints.open(newest)
    pieces = reader.slices("weight", "master")
    data = b"".join(reader.read(piece.part, piece.slice.offset, 4 * piece.slice.count) for piece in pieces)
    return struct.unpack("<6f", data)


def change(store: Store, key: str, *, flip: int | None = None, keep: int | None = None) -> None:
    data = bytearray(store.get(key))
    if flip is not None:
        data[flip] ^= 1
    store.put(key, bytes(data[:keep]))


def test_a_committed_checkpoint_reads_back_as_it_was_written(store: Store) -> None:
    commit(store, step=10)

    seen = CheckpointStore(open_store(store.uri))

    assert read_all(seen) == (0.0, 1.0, 2.0, 3.0, 4.0, 5.0)
    newest = seen.newest()
    assert newest is not None
    reader = seen.open(newest)
    reader.verify()
    assert reader.manifest == manifest(10, "run-1", list(reader.manifest.parts))
    assert reader.parameters == {"weight"}
    assert seen.checkpoint_uri(newest) == f"{store.uri}steps/00000010-run-1/"


def test_what_is_not_committed_does_not_exist(store: Store) -> None:
    checkpoints = CheckpointStore(store)
    checkpoints.claim("run-1")
    write_part(checkpoints, 10, "run-1")

    assert CheckpointStore(store).newest() is None


def test_the_newest_commit_is_the_last_of_the_log_not_the_highest_step(store: Store) -> None:
    commit(store, step=20, nonce="run-1")
    checkpoints = commit(store, step=10, nonce="run-2")

    newest = checkpoints.newest()

    assert newest is not None
    assert (newest.step, newest.nonce) == (10, "run-2")
    assert [entry.step for entry in checkpoints.commits()] == [20, 10]


def test_an_older_commit_is_found_by_its_step(store: Store) -> None:
    commit(store, step=10, nonce="run-1")
    checkpoints = commit(store, step=20, nonce="run-2")

    assert checkpoints.at_step(10).nonce == "run-1"
    with pytest.raises(NotFound) as caught:
        checkpoints.at_step(15)
    assert str(caught.value) == f"{store.uri}: step must be a committed one, got 15; committed steps: 10, 20"


def test_a_run_that_lost_the_job_cannot_commit(store: Store) -> None:
    stale = CheckpointStore(store)
    stale.claim("run-1")
    parts = write_part(stale, 10, "run-1")
    CheckpointStore(store).claim("run-2")

    with pytest.raises(Refused) as caught:
        stale.commit(manifest(10, "run-1", parts))

    assert str(caught.value) == (
        f"{store.uri}: run must be the one that owns the job, got run-1 while run-2 owns it; "
        "stop this run, the other one goes on"
    )
    assert stale.newest() is None


def test_a_step_is_committed_once_by_a_run(store: Store) -> None:
    checkpoints = commit(store, step=10)
    changed = manifest(10, "run-1", []).model_copy(update={"created": "later"})

    with pytest.raises(Refused) as caught:
        checkpoints.commit(changed)

    assert str(caught.value) == (
        f"{store.uri}: steps/00000010-run-1/manifest.json must be written once, got a second commit of step 10"
    )


def test_racing_runs_leave_one_ordered_log(store: Store) -> None:
    runs = 16
    barrier = threading.Barrier(runs)

    def race(run: int) -> str:
        checkpoints, nonce = CheckpointStore(store), f"run-{run}"
        barrier.wait()
        checkpoints.claim(nonce)
        try:
            checkpoints.commit(manifest(run, nonce, []))
        except Refused:
            return "refused"
        return "committed"

    with ThreadPoolExecutor(runs) as pool:
        outcomes = list(pool.map(race, range(runs)))

    keys = store.list("log/")
    checkpoints = CheckpointStore(store)
    assert keys == [f"log/{number:08d}.json" for number in range(1, len(keys) + 1)]
    assert len(keys) == runs + outcomes.count("committed")
    assert len(checkpoints.commits()) == outcomes.count("committed") >= 1
    assert sorted(entry.step for entry in checkpoints.commits()) == [
        run for run, outcome in enumerate(outcomes) if outcome == "committed"
    ]


def test_a_flipped_bit_in_a_part_is_refused(store: Store) -> None:
    checkpoints = commit(store, step=10)
    change(store, "steps/00000010-run-1/rank00000-0000.bin", flip=5)

    with pytest.raises(InvalidInput) as caught:
        read_all(checkpoints)

    assert str(caught.value) == (
        f"{store.uri}: steps/00000010-run-1/rank00000-0000.bin must be an object whose chunk 0 has CRC32C 78743a5d, "
        f"got c14f76ba; {REMEDY}"
    )


def test_a_truncated_part_is_refused(store: Store) -> None:
    checkpoints = commit(store, step=10)
    change(store, "steps/00000010-run-1/rank00000-0000.bin", keep=20)

    with pytest.raises(InvalidInput) as caught:
        read_all(checkpoints)

    assert str(caught.value) == (
        f"{store.uri}: steps/00000010-run-1/rank00000-0000.bin must be an object of 24 bytes, got 20; {REMEDY}"
    )


def test_a_missing_part_is_named(store: Store) -> None:
    checkpoints = commit(store, step=10)
    store.delete("steps/00000010-run-1/rank00000-0000.bin")

    with pytest.raises(NotFound) as caught:
        read_all(checkpoints)

    assert str(caught.value) == (f"{store.uri}: steps/00000010-run-1/rank00000-0000.bin must exist, got none; {REMEDY}")


def test_a_checkpoint_of_which_all_is_there_is_complete_whatever_its_bytes_are(store: Store) -> None:
    checkpoints = commit(store, step=10)
    change(store, "steps/00000010-run-1/rank00000-0000.bin", flip=5)

    checkpoints.open(checkpoints.at_step(10)).check_complete()


def test_a_checkpoint_that_lacks_a_part_is_not_complete(store: Store) -> None:
    checkpoints = commit(store, step=10)
    store.delete("steps/00000010-run-1/rank00000-0000.bin")

    with pytest.raises(NotFound) as caught:
        checkpoints.open(checkpoints.at_step(10)).check_complete()

    assert str(caught.value) == f"{store.uri}: steps/00000010-run-1/rank00000-0000.bin must exist, got none; {REMEDY}"


@pytest.mark.parametrize("size", [20, 0])
def test_a_checkpoint_with_a_part_of_another_size_is_not_complete(store: Store, size: int) -> None:
    checkpoints = commit(store, step=10)
    change(store, "steps/00000010-run-1/rank00000-0000.bin", keep=size)

    with pytest.raises(InvalidInput) as caught:
        checkpoints.open(checkpoints.at_step(10)).check_complete()

    assert str(caught.value) == (
        f"{store.uri}: steps/00000010-run-1/rank00000-0000.bin must be an object of 24 bytes, got {size}; {REMEDY}"
    )


def test_a_changed_manifest_is_refused(store: Store) -> None:
    checkpoints = commit(store, step=10)
    newest = checkpoints.newest()
    assert newest is not None
    change(store, newest.manifest_key, flip=100)

    with pytest.raises(InvalidInput) as caught:
        read_all(checkpoints)

    message = str(caught.value)
    assert message.startswith(
        f"{store.uri}: steps/00000010-run-1/manifest.json must be an object with SHA-256 {newest.manifest_sha256}, got "
    )
    assert message.endswith(f"; {REMEDY}")


def test_a_missing_manifest_is_named(store: Store) -> None:
    checkpoints = commit(store, step=10)
    store.delete("steps/00000010-run-1/manifest.json")

    with pytest.raises(NotFound) as caught:
        read_all(checkpoints)

    assert str(caught.value) == f"{store.uri}: steps/00000010-run-1/manifest.json must exist, got none; {REMEDY}"


def test_a_hole_in_the_log_is_named(store: Store) -> None:
    commit(store, step=10)
    store.delete("log/00000001.json")

    with pytest.raises(NotFound) as caught:
        CheckpointStore(store).newest()

    assert str(caught.value) == (f"{store.uri}: log/00000001.json must exist, got none; restore it, or start a new job")


def test_an_unreadable_log_entry_is_named(store: Store) -> None:
    commit(store, step=10)
    store.put("log/00000002.json", b"{")

    with pytest.raises(InvalidInput) as caught:
        CheckpointStore(store).newest()

    assert str(caught.value) == (
        f"{store.uri}: log/00000002.json must be a valid log entry, got "
        "Invalid JSON: EOF while parsing an object at line 1 column 1; restore it, or start a new job"
    )


def test_a_manifest_of_a_newer_format_is_refused(store: Store) -> None:
    checkpoints = CheckpointStore(store)
    checkpoints.claim("run-1")
    newer = manifest(10, "run-1", []).model_copy(update={"format_version": 2})
    entry = checkpoints.commit(newer)

    with pytest.raises(InvalidInput) as caught:
        checkpoints.open(entry)

    assert str(caught.value) == (
        f"{store.uri}: steps/00000010-run-1/manifest.json must be a manifest of format version 1, got "
        "format_version: Input should be less than or equal to 1; use the version that wrote it"
    )


def test_an_unknown_parameter_is_refused(store: Store) -> None:
    checkpoints = commit(store, step=10)
    newest = checkpoints.newest()
    assert newest is not None

    with pytest.raises(InvalidInput) as caught:
        checkpoints.open(newest).slices("bias", "master")

    assert str(caught.value) == (
        f"{store.uri}: manifest.json must be one with bias (master), got none of it; check the recipe"
    )


def test_slices_go_on_in_the_next_part_and_every_chunk_is_checked(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    writer = PartWriter(store, "rank0", part_bytes=40, chunk_bytes=16)
    geometry = Geometry(local_shape=(25,))
    data = memoryview(struct.pack("<25f", *map(float, range(25))))

    writer.add(parameter="weight", kind="exp_avg", geometry=geometry, start=0, data=data)
    parts = writer.finish()

    assert [(part.key, part.size, len(part.crc32c)) for part in parts] == [
        ("rank0-0000.bin", 40, 3),
        ("rank0-0001.bin", 40, 3),
        ("rank0-0002.bin", 20, 2),
    ]
    assert [(piece.start, piece.count, piece.offset) for part in parts for piece in part.slices] == [
        (0, 10, 0),
        (10, 10, 0),
        (20, 5, 0),
    ]
    assert b"".join(store.get(part.key) for part in parts) == bytes(data)


def test_a_recipe_may_change_its_length_but_not_what_is_learned() -> None:
    saved = recipe("tiny_cpu")

    assert recipe_differences(saved, saved.model_copy(update={"steps": 90, "micro_batch": 4})) == []
    assert recipe_differences(saved, saved.model_copy(update={"learning_rate": 0.5, "seed": 1})) == [
        "learning_rate: 0.001 → 0.5",
        "seed: 1234 → 1",
    ]
