"""`trainfabric job` and `trainfabric plan` of an environment that runs somebody else's command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.job.lab import epoch_event, play, publish_events
from trainfabric_node.jobs import JobLedger, JobSpec, Outcome, RunRecords
from trainfabric_node.jobs.records import now
from trainfabric_plan.contract import epoch_key

OWN = """\
training:
  command: ./train --fast
  code: code
  ranks_per_node: 2
"""


@pytest.fixture
def start(trainfabric: Any, job: Any, environment_file: Any, tmp_path: Path) -> Callable[..., Any]:
    """`trainfabric job start … --environment demo.yaml`, where that runs a command with a code folder."""
    file = tmp_path / environment_file()
    file.write_text(file.read_text().partition("training:")[0] + OWN)
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "train").write_text("echo 1")
    return lambda *arguments: trainfabric("job", "start", *arguments, "--environment", "demo.yaml")


@pytest.fixture
def end(ledger: JobLedger) -> Callable[[JobSpec], None]:
    """Lets a run end after an epoch."""

    def of(spec: JobSpec) -> None:
        ledger.store.put(epoch_key(spec.job, spec.run), b"{}")
        ledger.run(spec.job, spec.run).conclude(Outcome(state="stopped", ended=now()))

    return of


def words(table: str) -> str:
    """A table without its spaces between columns."""
    return " ".join(table.split())


def refusal(ended: Any) -> str:
    assert (ended.status, ended.out) != (0, "")
    return str(ended.err).strip()


def test_a_job_of_a_command_keeps_the_code_that_it_was_started_with(start: Any, ledger: JobLedger) -> None:
    spec = JobSpec.model_validate_json(start("first", "--json").out)

    assert spec.recipe is None
    assert spec.command is not None
    assert spec.command.code is not None
    assert (spec.command.command, spec.command.image, spec.data) == ("./train --fast", None, "s3://demo-data/data/")
    assert spec.plan.shape == "4 × 2 ranks of a command"
    assert spec.command.code.key == f"jobs/first/code/{spec.command.code.sha256}.zip"
    assert b"echo 1" in ledger.store.get(spec.command.code.key)


def test_a_resumed_job_runs_what_it_ran_unless_new_code_is_asked_for(
    start: Any, end: Any, ledger: JobLedger, tmp_path: Path
) -> None:
    first = JobSpec.model_validate_json(start("first", "--json").out)
    end(first)
    (tmp_path / "code" / "train").write_text("echo 2")
    (tmp_path / "demo.yaml").write_text((tmp_path / "demo.yaml").read_text().replace("--fast", "--slow"))

    second = JobSpec.model_validate_json(start("first", "--resume", "--json").out)
    end(second)
    third = JobSpec.model_validate_json(start("first", "--resume", "--new-code", "--json").out)

    assert (second.run, second.command) == (2, first.command)
    assert third.command is not None
    assert third.command.command == "./train --slow"
    assert third.command.code is not None
    assert b"echo 2" in ledger.store.get(third.command.code.key)


def test_what_a_command_has_none_of_is_refused(start: Any, end: Any, tmp_path: Path) -> None:
    assert refusal(start("first", "--steps", "3")) == (
        "demo.yaml: --steps must be left out for a command, got 3; put it into training.command"
    )
    assert refusal(start("first", "--new-code")) == (
        "demo.yaml: --new-code must be given only to resume a command, got it without that; "
        "remove it: a new job has the code of now"
    )
    assert refusal(start("first", "--resume", "--from-step", "3")) == (
        "environment demo: from-step must be left out for a command, which chooses its checkpoint itself, got 3; "
        "remove --from-step"
    )
    end(JobSpec.model_validate_json(start("first", "--json").out))
    assert refusal(start("first")) == (
        "environment demo: job must be a new one, got first, which has run; resume it, or choose another name"
    )


def test_a_code_folder_that_is_not_there_is_named_before_anything_is_started(
    start: Any, ledger: JobLedger, tmp_path: Path
) -> None:
    (tmp_path / "code" / "train").unlink()
    (tmp_path / "code").rmdir()

    assert refusal(start("first")) == (
        "demo.yaml: training.code must be an existing folder, got code; it is relative to the environment file"
    )
    assert ledger.current() is None


def test_status_shows_the_command_and_its_steps_as_far_as_it_tells_them(start: Any, job: Any, run: RunRecords) -> None:
    start("first")
    publish_events(run, epoch_event(4))

    silent = job("status", "--json").json
    play(run, steps=3)
    told = job("status", "--json").json

    assert (silent["state"], silent["step"], silent["summary"]) == ("running", None, "running")
    assert (told["step"], told["steps"], told["summary"]) == (3, None, "running at step 3")
    assert (told["recipe"], told["command"]) == (None, "./train --fast")
    assert "command ./train --fast" in words(job("status").out)


def test_plan_shows_what_a_command_runs_on_and_what_that_costs(start: Any, trainfabric: Any) -> None:
    shown, found = trainfabric("plan", "demo.yaml").out, trainfabric("plan", "demo.yaml", "--json").json

    assert shown.startswith("demo: a command of its own, on 4 × p5.48xlarge\n")
    assert "WORLD_SIZE 8 = 4 nodes × 2" in words(shown)
    assert "Memory" not in shown
    assert (found["ranks"], found["usd_per_hour"], found["minimum_nodes"]) == (8, 134.581, 4)
    assert not {"layout", "fits", "parameters", "memory_bytes"} & found.keys()
