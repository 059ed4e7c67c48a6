from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from tests.cli.job.lab import DEPLOYED, Nodes
from trainfabric_node.jobs import JobControl, JobLedger, RunRecords
from trainfabric_node.jobs.pins import Pinning
from trainfabric_node.store import PosixStore


@pytest.fixture
def nodes() -> Nodes:
    return Nodes()


@pytest.fixture
def ledger(tmp_path: Path) -> JobLedger:
    """The records of environment demo, on this disk."""
    return JobLedger(PosixStore(tmp_path / "checkpoints"))


@pytest.fixture
def run(ledger: JobLedger) -> RunRecords:
    """The records of the first run of the first job."""
    return ledger.run("first", 1)


@pytest.fixture
def job(
    trainfabric: Any,
    environment_file: Any,
    tmp_path: Path,
    ledger: JobLedger,
    nodes: Nodes,
    monkeypatch: pytest.MonkeyPatch,
) -> Any:
    """Runs `trainfabric job COMMAND … --environment demo.yaml`; `start` takes the prepared corpus on this disk."""
    (tmp_path / "corpus.json").write_text("{}")
    control = JobControl(DEPLOYED, ledger, cast(Any, nodes), Pinning(DEPLOYED))
    monkeypatch.setattr("trainfabric_node.jobs.connect", lambda *_: control)
    more = {"start": ("--data", str(tmp_path / "corpus"))}
    file = environment_file()
    return lambda command, *arguments: trainfabric(
        "job", command, *more.get(command, ()), *arguments, "--environment", file
    )
