from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.node.supervisor.processes import until
from trainfabric_node.agent.files import EpochFiles, RunFiles
from trainfabric_node.agent.publisher import Publisher, Uploads
from trainfabric_node.jobs import JobLedger, RunRecords
from trainfabric_node.store import open_store
from trainfabric_plan.errors import Unreachable


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def records(tmp_path: Path) -> RunRecords:
    return JobLedger(open_store(str(tmp_path / "bucket"))).run("first", 1)


@pytest.fixture
def run_files(tmp_path: Path) -> RunFiles:
    return RunFiles(directory=tmp_path / "run", cache=tmp_path / "cache")


def _begun(files: EpochFiles) -> EpochFiles:
    files.output.mkdir(parents=True)
    return files


@contextmanager
def _running(uploads: Uploads) -> Iterator[None]:
    thread = threading.Thread(target=uploads.run)
    thread.start()
    try:
        yield
    finally:
        uploads.stop()
        thread.join(5)
        assert not thread.is_alive()


def test_files_of_an_epoch_are_uploaded_when_they_have_changed(records: RunRecords, run_files: RunFiles) -> None:
    files = _begun(run_files.epoch(7))
    publisher = Publisher(records, 7, files, "i-1")
    files.log.write_text("one\n")
    publisher.publish()
    first = records.log("i-1")
    with files.log.open("a") as log:
        log.write("two\n")
    (files.output / "steps.jsonl").write_text('{"step": 1}\n')
    publisher.publish()

    assert (first, records.log("i-1")) == ("== epoch 7 ==\none\n", "== epoch 7 ==\none\ntwo\n")
    assert records.steps_by_epoch() == {7: [{"step": 1}]}
    assert records.result() is None


def test_only_the_end_of_a_long_log_is_uploaded(records: RunRecords, run_files: RunFiles) -> None:
    files = _begun(run_files.epoch(1))
    files.log.write_bytes(b"x" * 5_000_000 + b"end\n")

    Publisher(records, 1, files, "i-1").publish()

    log = records.log("i-1").removeprefix("== epoch 1 ==\n")
    assert len(log) == 4 * 1024 * 1024
    assert log.endswith("xend\n")


def test_an_epoch_that_has_begun_is_uploaded_and_so_is_what_an_earlier_supervisor_left(
    records: RunRecords, run_files: RunFiles
) -> None:
    _begun(run_files.epoch(1)).log.write_text("old\n")
    uploads = Uploads(records, run_files, "i-1", 0.01, lambda: None)
    _begun(run_files.epoch(2)).log.write_text("new\n")

    uploads.add(2)
    uploads.publish()

    assert records.log("i-1") == "== epoch 1 ==\nold\n== epoch 2 ==\nnew\n"


def test_an_upload_that_is_asked_for_is_made_at_once_and_told(records: RunRecords, run_files: RunFiles) -> None:
    files = _begun(run_files.epoch(1))
    rings: list[None] = []
    uploads = Uploads(records, run_files, "i-1", 1000.0, lambda: rings.append(None))

    with _running(uploads):
        first = uploads.ask()
        until(lambda: uploads.has_finished(first))
        files.log.write_text("end\n")
        asked = uploads.ask()
        until(lambda: uploads.has_finished(asked))

    assert records.log("i-1") == "== epoch 1 ==\nend\n"
    assert len(rings) == 2
    assert not uploads.has_finished(asked + 1)


def test_an_upload_that_fails_is_not_told_as_made_and_is_tried_again(
    records: RunRecords, run_files: RunFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = _begun(run_files.epoch(1))
    files.log.write_text("end\n")
    uploads = Uploads(records, run_files, "i-1", 1000.0, lambda: None)
    tries: list[bool] = []

    def publish(epoch: int, name: str, data: bytes) -> None:
        tries.append(uploads.has_finished(1))
        if len(tries) < 2:
            raise Unreachable("s3 must answer")

    monkeypatch.setattr(records, "publish", publish)
    with _running(uploads):
        asked = uploads.ask()
        until(lambda: uploads.has_finished(asked))

    assert tries == [False, False]


def test_slow_uploads_are_made_seldom(
    records: RunRecords, run_files: RunFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, pauses = Clock(), list[float]()
    files = _begun(run_files.epoch(1))
    uploads = Uploads(records, run_files, "i-1", 3.0, lambda: None, clock)

    def slow(epoch: int, name: str, data: bytes) -> None:
        clock.now += 2.0

    def turn(pause: float, *, failed: bool) -> bool:
        pauses.append(pause)
        files.log.write_text("x" * len(pauses))
        return len(pauses) < 4

    monkeypatch.setattr(records, "publish", slow)
    monkeypatch.setattr(uploads, "_await_turn", turn)
    uploads.run()

    assert pauses == [0.0, 40.0, 40.0, 40.0]
