from __future__ import annotations

import re
import subprocess
import sys
from importlib import resources
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.node.samples import deployed, spec
from trainfabric_node.jobs import JobLedger, JobState, Outcome
from trainfabric_node.jobs.records import now
from trainfabric_node.jobs.status import job_status
from trainfabric_node.store import open_store
from trainfabric_plan.contract import (
    CURRENT_JOB_KEY,
    OUTCOME_FILE,
    SYSTEMD_UNIT,
    NodeVariable,
    Paths,
    environment_parameter,
    run_prefix,
)

BOOT = Path(str(resources.files("trainfabric_node"))) / "boot"
SCRIPT = BOOT / "boot.sh"
UNIT = BOOT / SYSTEMD_UNIT
NODE = {
    NodeVariable.REGION: "eu-west-1",
    NodeVariable.LUSTRE_DNS_NAME: "fs-1.fsx.eu-west-1.amazonaws.com",
    NodeVariable.LUSTRE_MOUNT_NAME: "abcdef",
    NodeVariable.LUSTRE_MOUNT_POINT: "/fsx",
    NodeVariable.STATE_DIRECTORY: Paths.STATE,
}


def _boot(command: str, variables: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Runs functions of the script, which does nothing when it is sourced."""
    return subprocess.run(
        ["bash", "-c", f'source "{SCRIPT}"; {command}'],
        env={"PATH": "/usr/bin:/bin", **(NODE if variables is None else variables)},
        capture_output=True,
        text=True,
        check=False,
    )


def _setting(name: str) -> list[str]:
    return re.findall(rf"(?m)^{name}=(.*)$", UNIT.read_text())


def _verify(unit: Path) -> str:
    checked = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    return checked.stdout + checked.stderr + f"status {checked.returncode}"


def test_the_script_has_no_findings() -> None:
    shellcheck = Path(sys.executable).with_name("shellcheck")

    checked = subprocess.run([shellcheck, str(SCRIPT)], capture_output=True, text=True, check=False)

    assert (checked.stdout, checked.returncode) == ("", 0)


def test_the_script_reads_only_variables_of_the_contract() -> None:
    known = {value for name, value in vars(NodeVariable).items() if name.isupper()}

    read = set(re.findall(r"TRAINFABRIC_[A-Z_]+", SCRIPT.read_text()))

    assert read <= known


def test_paths_and_names_are_those_of_the_contract() -> None:
    script = SCRIPT.read_text()

    assert f"node_environment={Paths.NODE_ENVIRONMENT}\n" in script
    assert f"install={Paths.INSTALL}\n" in script
    assert f"unit={SYSTEMD_UNIT}\n" in script
    assert f'"{environment_parameter("$TRAINFABRIC_ENVIRONMENT")}"' in script
    assert f"/{CURRENT_JOB_KEY}" in script
    assert run_prefix("%s", 0).replace("0000", "%04d") + OUTCOME_FILE in script
    assert _setting("EnvironmentFile") == [Paths.NODE_ENVIRONMENT, "-/etc/trainfabric/agent.env"]
    assert _setting("Environment") == [f"PYTHONPATH={Paths.INSTALL}/code"]
    assert _setting("ExecStart") == [f"{Paths.INSTALL}/venv/bin/python -m trainfabric_node agent"]


def test_systemd_accepts_the_agents_unit(tmp_path: Path) -> None:
    copy = tmp_path / SYSTEMD_UNIT
    copy.write_text(re.sub(r"(?m)^ExecStart=\S+", "ExecStart=/bin/true", UNIT.read_text()))

    assert _verify(copy) == "status 0"


def test_nothing_of_a_job_outlives_its_agent_and_it_may_register_memory() -> None:
    assert _setting("KillMode") == ["mixed"]
    assert _setting("LimitMEMLOCK") == ["infinity"]
    assert _setting("Restart") == ["on-failure"]


def test_systemd_accepts_the_mount_with_the_options_that_lustre_needs(tmp_path: Path) -> None:
    (tmp_path / "fsx.mount").write_text(_boot("lustre_mount_unit").stdout)

    assert _verify(tmp_path / "fsx.mount") == "status 0"
    mount = (tmp_path / "fsx.mount").read_text()
    assert "What=fs-1.fsx.eu-west-1.amazonaws.com@tcp:/abcdef\n" in mount
    assert "Options=noatime,flock,lazystatfs,_netdev\n" in mount


def test_the_agent_finds_its_region_where_the_aws_sdk_looks() -> None:
    assert _boot("agent_variables").stdout == "AWS_DEFAULT_REGION=eu-west-1\n"


def test_a_command_is_tried_until_it_succeeds(tmp_path: Path) -> None:
    tried = _boot(
        f'second() {{ test -e {tmp_path}/x || {{ touch {tmp_path}/x; false; }}; }}; retry 3 0 second; echo "$?"'
    )

    assert tried.stdout == "trainfabric boot: attempt 1 of 3 failed: second\n0\n"


def test_a_command_that_never_succeeds_fails_after_its_tries() -> None:
    tried = _boot("retry 2 0 false")

    assert tried.returncode == 1
    assert tried.stdout.count("failed: false") == 2


@pytest.fixture
def devices(tmp_path: Path) -> Path:
    """Three RDMA devices, two of them EFA."""
    for name, driver in (("rdmap0", "efa"), ("rdmap1", "efa"), ("mlx5_0", "mlx5_core")):
        (tmp_path / "drivers" / driver).mkdir(parents=True, exist_ok=True)
        (tmp_path / "infiniband" / name / "device").mkdir(parents=True)
        (tmp_path / "infiniband" / name / "device" / "driver").symlink_to(tmp_path / "drivers" / driver)
    return tmp_path / "infiniband"


def test_devices_of_other_drivers_are_not_counted_as_efa(devices: Path, tmp_path: Path) -> None:
    assert _boot(f"efa_devices {devices}").stdout == "2\n"
    assert _boot(f"efa_devices {tmp_path}/none").stdout == "0\n"


def test_a_node_without_its_efa_devices_is_refused() -> None:
    checked = _boot("efa_devices() { echo 31; }; sleep() { :; }; check_efa", {NodeVariable.EFA_DEVICES: "32"})

    assert checked.returncode == 1
    assert checked.stderr == (
        "trainfabric boot: EFA devices must be 32, got 31; replace the node, or check its interfaces and EFA driver\n"
    )


def test_efa_is_not_looked_for_where_no_number_is_given() -> None:
    assert _boot("efa_devices() { exit 9; }; check_efa").returncode == 0


def test_needrestart_keeps_its_hands_off_our_services(tmp_path: Path) -> None:
    _boot(f"keep_needrestart_away {tmp_path}/conf.d")

    assert (tmp_path / "conf.d" / "90-trainfabric.conf").read_text() == "$nrconf{override_rc}{qr(^trainfabric-)} = 0;\n"


def test_a_missing_variable_is_named_before_anything_is_done(tmp_path: Path) -> None:
    (tmp_path / "node.env").write_text("TRAINFABRIC_REGION=eu-west-1\n")

    read = _boot(f"read_variables {tmp_path}/node.env; echo done", {})

    assert read.returncode != 0
    assert "TRAINFABRIC_LUSTRE_DNS_NAME: parameter null or not set" in read.stderr
    assert read.stdout == ""


@pytest.mark.parametrize(
    ("there", "says"),
    [
        ("mount.lustre modinfo", ""),
        ("modinfo", "install lustre-client\nload lustre\n"),
        ("mount.lustre", "install lustre-client\nload lustre\n"),
    ],
)
def test_the_lustre_client_is_installed_where_its_module_or_its_command_is_missing(there: str, says: str) -> None:
    stubs = """
    has() { [[ " $there " == *" $1 "* ]]; }
    modinfo() { has modinfo; }
    say() { :; }
    install_packages() { echo "install $*"; }
    modprobe() { echo "load $*"; }
    """

    assert _boot(f'there="{there}"; {stubs} install_lustre_client').stdout == says


COORDINATOR = {
    **NODE,
    NodeVariable.ENVIRONMENT: "lab",
    NodeVariable.ROLE: "coordinator",
    NodeVariable.CHECKPOINT_BUCKET: "checkpoints",
}
# the AWS command line with a folder as its bucket, and a machine of which only the named step fails
MACHINE = """
aws() {
  printf '%s\\n' "$*" >>"$folder/calls"
  case "$1 $2" in
    "ssm get-parameter") cat "$folder/parameter" ;;
    "s3 ls") [[ -e $folder/${5#s3://} ]] ;;
    "s3 cp") if [[ $5 == - ]]; then cat >"$folder/${6#s3://}"; else cat "$folder/${5#s3://}"; fi ;;
    "autoscaling set-desired-capacity") [[ ! -e $folder/refuse ]] ;;
  esac
}
systemctl() { [[ -e $folder/active ]]; }
uname() { echo node-1; }
sleep() { :; }
for step in read_variables wait_for_apt keep_needrestart_away install_python create_environment check_efa \
  install_lustre_client mount_lustre install_agent; do
  eval "$step() { :; }"
done
"""


@pytest.fixture
def ledger(tmp_path: Path) -> JobLedger:
    """The records of an environment in which a job waits for its nodes."""
    (tmp_path / "parameter").write_text(deployed().model_dump_json())
    (tmp_path / "checkpoints" / "jobs" / "first" / "runs" / "0001").mkdir(parents=True)
    made = JobLedger(open_store(str(tmp_path / "checkpoints")))
    made.claim(spec())
    return made


def _failing(folder: Path, step: str, **changes: str) -> subprocess.CompletedProcess[str]:
    return _boot(f'folder="{folder}"; {MACHINE} {step}; main', {**COORDINATOR, **changes})


def _released(folder: Path) -> list[str]:
    calls = (folder / "calls").read_text().splitlines() if (folder / "calls").exists() else []
    return [
        line.partition("--auto-scaling-group-name ")[2] for line in calls if line.startswith("autoscaling set-desired")
    ]


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


def test_boot_that_fails_where_an_agent_runs_already_leaves_the_job_to_it(ledger: JobLedger, tmp_path: Path) -> None:
    (tmp_path / "active").touch()

    booted = _failing(tmp_path, "check_efa() { fail no EFA; }")

    assert booted.returncode == 1
    assert not (tmp_path / "calls").exists()


def test_boot_that_succeeds_releases_nothing(ledger: JobLedger, tmp_path: Path) -> None:
    booted = _failing(tmp_path, ":")

    assert (booted.returncode, booted.stdout) == (0, "trainfabric boot: ready\n")
    assert not (tmp_path / "calls").exists()


def test_every_line_of_the_lock_pins_one_version() -> None:
    lines = [line for line in (BOOT / "requirements.lock").read_text().splitlines() if not line.startswith("#")]

    assert all(re.fullmatch(r"[a-z0-9-]+==[0-9][0-9a-z.]*", line) for line in lines)
    assert lines == sorted(lines)
    assert {"torch", "deepspeed", "boto3", "pydantic", "numpy", "tokenizers", "google-crc32c", "pyyaml"} <= {
        line.partition("==")[0] for line in lines
    }


def test_the_lock_has_the_versions_that_are_tested_here() -> None:
    pinned = dict(
        line.split("==")
        for line in (BOOT / "requirements.lock").read_text().splitlines()
        if line and not line.startswith("#")
    )
    tested = {name: version(name) for name in ("boto3", "pydantic", "deepspeed", "numpy", "tokenizers")}

    assert {name: pinned[name] for name in tested} == tested
