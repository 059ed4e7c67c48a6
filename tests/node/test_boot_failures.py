from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.node.booting import NODE, boot, program
from tests.node.samples import deployed, spec
from trainfabric_node.jobs import JobLedger, JobState, Outcome
from trainfabric_node.jobs.records import now
from trainfabric_node.jobs.status import job_status
from trainfabric_node.store import open_store
from trainfabric_plan.contract import NodeVariable

COORDINATOR = {**NODE, NodeVariable.ROLE: "coordinator"}
# the AWS command line with a folder as its bucket
AWS = """
folder=$(dirname "$0")/..
printf '%s\\n' "$*" >>"$folder/calls"
case "$1 $2" in
  "ssm get-parameter") cat "$folder/parameter" ;;
  "s3 ls") [[ -e $folder/${5#s3://} ]] ;;
  "s3 cp") if [[ $5 == - ]]; then cat >"$folder/${6#s3://}"; else cat "$folder/${5#s3://}"; fi ;;
  "autoscaling describe-auto-scaling-groups") cat "$folder/protected" 2>/dev/null || true ;;
  "autoscaling set-instance-protection") ;;
  "autoscaling set-desired-capacity") [[ ! -e $folder/refuse ]] ;;
esac
"""
# a machine of which only the named step fails
MACHINE = """
uname() { echo node-1; }
for step in read_variables wait_for_apt keep_needrestart_away install_python create_environment check_accelerators \\
  check_efa install_lustre_client mount_lustre install_services; do
  eval "$step() { :; }"
done
"""


@pytest.fixture
def ledger(tmp_path: Path) -> JobLedger:
    """The records of an environment in which a job waits for its nodes."""
    (tmp_path / "parameter").write_text(deployed().model_dump_json())
    (tmp_path / "checkpoints" / "jobs" / "first" / "runs" / "0001").mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    program(tmp_path / "bin/aws", AWS)
    program(tmp_path / "bin/systemctl", f"[[ -e {tmp_path}/active ]]")
    program(tmp_path / "bin/sleep", "true")
    made = JobLedger(open_store(str(tmp_path / "checkpoints")))
    made.claim(spec())
    return made


def _failing(folder: Path, step: str, **changes: str) -> subprocess.CompletedProcess[str]:
    variables = {**COORDINATOR, "PATH": f"{folder}/bin:/usr/bin:/bin", **changes}
    return boot(f"{MACHINE} {step}; main", variables)


def _calls(folder: Path, operation: str) -> list[str]:
    calls = (folder / "calls").read_text().splitlines() if (folder / "calls").exists() else []
    begin = f"autoscaling {operation} --region eu-west-1 --auto-scaling-group-name "
    return [line.removeprefix(begin) for line in calls if line.startswith(begin)]


def _released(folder: Path) -> list[str]:
    return _calls(folder, "set-desired-capacity")


RELEASED = [
    "lab-workers --desired-capacity 0 --no-honor-cooldown",
    "lab-coordinator --desired-capacity 0 --no-honor-cooldown",
]


@pytest.mark.parametrize(
    ("step", "why"),
    [
        ("check_efa() { fail no EFA; }", "no EFA"),
        ("create_environment() { retry 2 0 false; }", "2 attempts failed: false"),
    ],
)
def test_a_coordinator_that_does_not_boot_fails_the_job_and_releases_the_fleet(
    ledger: JobLedger, tmp_path: Path, step: str, why: str
) -> None:
    booted = _failing(tmp_path, step)

    status = job_status(ledger, ledger.job("first"))
    assert booted.returncode == 1
    assert f"trainfabric boot: failed: {why}\n" in booted.stderr
    assert _released(tmp_path) == RELEASED
    assert (status.state, status.summary) == (
        JobState.FAILED,
        f"failed: boot of the coordinator node-1 failed: {why}",
    )


def test_nodes_that_a_running_job_protects_are_released_too(ledger: JobLedger, tmp_path: Path) -> None:
    (tmp_path / "protected").write_text("i-1\ti-2\n")

    _failing(tmp_path, "check_efa() { fail no EFA; }")

    assert _calls(tmp_path, "set-instance-protection") == [
        "lab-workers --no-protected-from-scale-in --instance-ids i-1 i-2",
        "lab-coordinator --no-protected-from-scale-in --instance-ids i-1 i-2",
    ]
    assert _released(tmp_path) == RELEASED


def test_a_command_of_boot_that_fails_is_named_with_its_line(ledger: JobLedger, tmp_path: Path) -> None:
    _failing(tmp_path, "mount_lustre() { cat /nonexistent; }")

    assert re.search(r": line \d+: cat /nonexistent$", job_status(ledger, ledger.job("first")).summary)


def test_a_fleet_that_cannot_be_released_is_named_in_the_jobs_status(ledger: JobLedger, tmp_path: Path) -> None:
    (tmp_path / "refuse").touch()

    _failing(tmp_path, "check_efa() { fail no EFA; }")

    assert _released(tmp_path) == RELEASED * 5
    assert job_status(ledger, ledger.job("first")).summary == (
        "failed: boot of the coordinator node-1 failed: no EFA; its nodes could not be released: "
        "scale the Auto Scaling groups to zero"
    )


def test_the_outcome_that_a_run_has_already_is_kept(ledger: JobLedger, tmp_path: Path) -> None:
    ledger.run("first", 1).conclude(Outcome(state="done", step=60, ended=now()))

    _failing(tmp_path, "check_efa() { fail no EFA; }")

    assert job_status(ledger, ledger.job("first")).state is JobState.DONE
    assert _released(tmp_path) == RELEASED


def test_a_coordinator_that_does_not_boot_releases_the_fleet_without_a_job_too(
    ledger: JobLedger, tmp_path: Path
) -> None:
    ledger.release(ledger.job("first"))

    booted = _failing(tmp_path, "check_efa() { fail no EFA; }")

    assert booted.returncode == 1
    assert _released(tmp_path) == RELEASED


def test_a_worker_that_does_not_boot_leaves_the_others_alone(ledger: JobLedger, tmp_path: Path) -> None:
    booted = _failing(tmp_path, "check_efa() { fail no EFA; }", **{NodeVariable.ROLE: "worker"})

    assert booted.returncode == 1
    assert not (tmp_path / "calls").exists()


def test_boot_that_fails_where_a_controller_runs_leaves_the_job_to_it(ledger: JobLedger, tmp_path: Path) -> None:
    (tmp_path / "active").touch()

    booted = _failing(tmp_path, "check_efa() { fail no EFA; }")

    assert booted.returncode == 1
    assert not (tmp_path / "calls").exists()


def test_boot_that_succeeds_releases_nothing(ledger: JobLedger, tmp_path: Path) -> None:
    booted = _failing(tmp_path, ":")

    assert (booted.returncode, booted.stdout) == (0, "trainfabric boot: ready\n")
    assert not (tmp_path / "calls").exists()
