from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.node.booting import NODE, boot, program
from tests.node.samples import deployed, groups, spec
from trainfabric_node.jobs import JobLedger, JobState, Outcome
from trainfabric_node.jobs.records import now
from trainfabric_node.jobs.status import job_status
from trainfabric_node.store import open_store
from trainfabric_plan.contract import CURRENT_JOB_KEY, NodeVariable, Role
from trainfabric_plan.deployed import NodeGroup

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
  "autoscaling terminate-instance-in-auto-scaling-group") [[ ! -e $folder/refuse ]] ;;
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
    (tmp_path / "checkpoints" / "jobs" / "first" / "runs" / "0001" / "nodes").mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    program(tmp_path / "bin/aws", AWS)
    program(tmp_path / "bin/systemctl", f"[[ -e {tmp_path}/active ]]")
    program(tmp_path / "bin/sleep", "true")
    (tmp_path / "root/var/lib/cloud/data").mkdir(parents=True)
    (tmp_path / "root/var/lib/cloud/data/instance-id").write_text("i-1\n")
    made = JobLedger(open_store(str(tmp_path / "checkpoints")))
    made.claim(spec())
    return made


def _failing(folder: Path, step: str, **changes: str) -> subprocess.CompletedProcess[str]:
    variables = {**COORDINATOR, "PATH": f"{folder}/bin:/usr/bin:/bin", NodeVariable.ROOT: f"{folder}/root", **changes}
    return boot(f"{MACHINE} {step}; main", variables)


def _calls(folder: Path) -> list[str]:
    return (folder / "calls").read_text().splitlines() if (folder / "calls").exists() else []


def _changes(folder: Path) -> list[str]:
    """What was asked of the Auto Scaling groups and written, in order."""
    words = ("set-desired-capacity", "set-instance-protection", "terminate-instance-in-auto-scaling-group", "- s3://")
    calls = [line.replace(" --region eu-west-1", "") for line in _calls(folder)]
    return [line for line in calls if any(word in line for word in words)]


WORKERS = (
    "autoscaling set-desired-capacity --auto-scaling-group-name lab-workers --desired-capacity 0 --no-honor-cooldown"
)
OUTCOME = "s3 cp - s3://checkpoints/jobs/first/runs/0001/outcome.json"
GIVEN_BACK = (
    "autoscaling terminate-instance-in-auto-scaling-group --instance-id i-1 --should-decrement-desired-capacity"
)
RENEWED = GIVEN_BACK.replace("--should", "--no-should")


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
    assert _changes(tmp_path) == [WORKERS, OUTCOME, GIVEN_BACK]
    assert (status.state, status.summary) == (
        JobState.FAILED,
        f"failed: boot of the coordinator node-1 failed: {why}",
    )


def test_workers_that_a_running_job_protects_are_released_too(ledger: JobLedger, tmp_path: Path) -> None:
    (tmp_path / "protected").write_text("i-2\ti-3\n")

    _failing(tmp_path, "check_efa() { fail no EFA; }")

    unprotected = "--auto-scaling-group-name lab-workers --no-protected-from-scale-in --instance-ids i-2 i-3"
    assert _changes(tmp_path)[:2] == [f"autoscaling set-instance-protection {unprotected}", WORKERS]


def test_a_command_of_boot_that_fails_is_named_with_its_line(ledger: JobLedger, tmp_path: Path) -> None:
    _failing(tmp_path, "mount_lustre() { cat /nonexistent; }")

    assert re.search(r": line \d+: cat /nonexistent$", job_status(ledger, ledger.job("first")).summary)


def test_nodes_that_cannot_be_released_are_named_in_the_jobs_status_and_in_the_log(
    ledger: JobLedger, tmp_path: Path
) -> None:
    (tmp_path / "refuse").touch()

    booted = _failing(tmp_path, "check_efa() { fail no EFA; }")

    assert _changes(tmp_path) == [*[WORKERS] * 5, OUTCOME, *[GIVEN_BACK] * 5]
    assert job_status(ledger, ledger.job("first")).summary == (
        "failed: boot of the coordinator node-1 failed: no EFA; its workers could not be released: "
        "scale their Auto Scaling groups to zero"
    )
    assert booted.stderr.endswith("trainfabric boot: this node could not be given back: terminate it\n")


def test_the_outcome_that_a_run_has_already_is_kept(ledger: JobLedger, tmp_path: Path) -> None:
    ledger.run("first", 1).conclude(Outcome(state="done", step=60, ended=now()))

    _failing(tmp_path, "check_efa() { fail no EFA; }")

    assert job_status(ledger, ledger.job("first")).state is JobState.DONE
    assert _changes(tmp_path) == [WORKERS, GIVEN_BACK]


def test_a_coordinator_that_does_not_boot_releases_the_fleet_without_a_job_too(
    ledger: JobLedger, tmp_path: Path
) -> None:
    ledger.release(ledger.job("first"))

    booted = _failing(tmp_path, "check_efa() { fail no EFA; }")

    assert booted.returncode == 1
    assert _changes(tmp_path) == [WORKERS, GIVEN_BACK]


def test_a_run_that_has_begun_meanwhile_gets_another_coordinator(ledger: JobLedger, tmp_path: Path) -> None:
    # given a start that claims the environment as soon as it sees the outcome
    current = tmp_path / "checkpoints" / CURRENT_JOB_KEY
    following = tmp_path / "following"
    following.write_text(spec(run=2, nonce="b").model_dump_json())
    claim = f'[[ $6 == *outcome.json ]] && cp "{following}" "{current}"'
    program(tmp_path / "bin/aws", f"{AWS}\nstatus=$?; {claim}; exit $status")

    _failing(tmp_path, "check_efa() { fail no EFA; }")

    assert _changes(tmp_path) == [WORKERS, OUTCOME, RENEWED]


def test_a_worker_that_does_not_boot_tells_the_job_why_and_gives_itself_back(ledger: JobLedger, tmp_path: Path) -> None:
    booted = _failing(tmp_path, "check_efa() { fail no EFA; }", **{NodeVariable.ROLE: "worker"})

    (told,) = ledger.run("first", 1).nodes()
    assert booted.returncode == 1
    assert (told.instance_id, told.role, told.state, told.detail) == ("i-1", Role.WORKER, "failed", "boot: no EFA")
    assert _changes(tmp_path) == ["s3 cp - s3://checkpoints/jobs/first/runs/0001/nodes/i-1.json", GIVEN_BACK]
    assert ledger.run("first", 1).outcome() is None


def test_a_worker_that_does_not_boot_gives_itself_back_without_a_job_too(ledger: JobLedger, tmp_path: Path) -> None:
    ledger.release(ledger.job("first"))

    _failing(tmp_path, "check_efa() { fail no EFA; }", **{NodeVariable.ROLE: "worker"})

    assert _changes(tmp_path) == [GIVEN_BACK]


def test_a_worker_that_cannot_tell_the_job_still_gives_itself_back(ledger: JobLedger, tmp_path: Path) -> None:
    (tmp_path / "checkpoints/jobs/first/runs/0001/nodes").rmdir()

    booted = _failing(tmp_path, "check_efa() { fail no EFA; }", **{NodeVariable.ROLE: "worker"})

    assert "trainfabric boot: the job could not be told\n" in booted.stderr
    assert _changes(tmp_path)[-1] == GIVEN_BACK


@pytest.mark.parametrize("role", ["coordinator", "worker"])
def test_boot_that_fails_where_the_service_runs_leaves_the_job_to_it(
    ledger: JobLedger, tmp_path: Path, role: str
) -> None:
    (tmp_path / "active").touch()

    booted = _failing(tmp_path, "check_efa() { fail no EFA; }", **{NodeVariable.ROLE: role})

    assert booted.returncode == 1
    assert not (tmp_path / "calls").exists()


def test_the_workers_of_every_placement_group_are_released_before_the_coordinator_goes(
    ledger: JobLedger, tmp_path: Path
) -> None:
    more = NodeGroup(name="lab-workers-2", role=Role.WORKER, launch_template=None, nodes=2, placement=1)
    (tmp_path / "parameter").write_text(deployed(groups=(*groups(2), more)).model_dump_json())

    _failing(tmp_path, "check_efa() { fail no EFA; }")

    assert _changes(tmp_path) == [WORKERS, WORKERS.replace("lab-workers", "lab-workers-2"), OUTCOME, GIVEN_BACK]


def test_boot_that_succeeds_releases_nothing(ledger: JobLedger, tmp_path: Path) -> None:
    booted = _failing(tmp_path, ":")

    assert (booted.returncode, booted.stdout) == (0, "trainfabric boot: ready\n")
    assert not (tmp_path / "calls").exists()
