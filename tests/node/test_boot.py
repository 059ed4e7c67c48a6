from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import packages_distributions, version
from pathlib import Path

import pytest

from tests.node.booting import BOOT, BOOT_SCRIPT, COMMON, FIRST_SCRIPT, NODE, boot
from trainfabric_plan.contract import (
    COMMAND_UNIT,
    CONTROLLER_UNIT,
    CURRENT_JOB_KEY,
    LAUNCHER_UNIT,
    OUTCOME_FILE,
    OWN_COMMAND,
    RENDEZVOUS_UNIT,
    SYSTEMD_UNIT,
    NodeVariable,
    Paths,
    code_key,
    environment_parameter,
    run_prefix,
)


@pytest.mark.parametrize("script", [BOOT_SCRIPT, FIRST_SCRIPT, COMMON], ids=lambda script: script.name)
def test_the_scripts_have_no_findings(script: Path) -> None:
    shellcheck = Path(sys.executable).with_name("shellcheck")

    checked = subprocess.run(
        [shellcheck, "--external-sources", script], capture_output=True, text=True, cwd=BOOT, check=False
    )

    assert (checked.stdout, checked.returncode) == ("", 0)
    assert subprocess.run(["bash", "-n", script], check=False).returncode == 0


def test_the_scripts_read_only_variables_of_the_contract() -> None:
    known = {value for name, value in vars(NodeVariable).items() if name.isupper()}

    read = {name for script in BOOT.glob("*.sh") for name in re.findall(r"TRAINFABRIC_[A-Z_]+", script.read_text())}

    assert read <= known


def test_paths_and_names_are_those_of_the_contract() -> None:
    common, first = COMMON.read_text(), FIRST_SCRIPT.read_text()

    assert f"node_environment=$root{Paths.NODE_ENVIRONMENT}\n" in common
    assert f"install=$root{Paths.INSTALL}\n" in common
    assert f"controller={CONTROLLER_UNIT}\n" in common
    assert f"agent={SYSTEMD_UNIT}\n" in common
    assert f'"{environment_parameter("$TRAINFABRIC_ENVIRONMENT")}"' in common
    assert f"/{CURRENT_JOB_KEY}" in common
    assert f'"{run_prefix("%s", 0).replace("0000", "%04d")}"' in common
    assert f"key=${{1}}{OUTCOME_FILE}\n" in common
    assert f'"s3://$TRAINFABRIC_CHECKPOINT_BUCKET/{code_key("$key")}"' in first


@pytest.mark.parametrize("root", ["", "/tmp/node"])
def test_the_services_find_region_code_and_state_below_the_root(root: str) -> None:
    assert boot("agent_variables", {**NODE, NodeVariable.ROOT: root}).stdout.splitlines() == [
        "AWS_DEFAULT_REGION=eu-west-1",
        "AWS_METADATA_SERVICE_NUM_ATTEMPTS=5",
        "AWS_METADATA_SERVICE_TIMEOUT=5",
        f"PYTHONPATH={root}/opt/trainfabric/code",
        f"TRAINFABRIC_STATE_DIRECTORY={root}/var/lib/trainfabric",
        f"TRAINFABRIC_LUSTRE_MOUNT_POINT={root}/fsx",
    ]


@pytest.mark.parametrize(
    ("role", "units"),
    [
        ("worker", [LAUNCHER_UNIT, SYSTEMD_UNIT]),
        ("coordinator", [LAUNCHER_UNIT, RENDEZVOUS_UNIT, CONTROLLER_UNIT, SYSTEMD_UNIT]),
    ],
)
def test_a_coordinator_has_the_controller_and_the_rendezvous_as_well(role: str, units: list[str]) -> None:
    assert boot("services", {**NODE, NodeVariable.ROLE: role}).stdout.splitlines() == units


@pytest.mark.parametrize(
    ("role", "units"),
    [("worker", [COMMAND_UNIT, SYSTEMD_UNIT]), ("coordinator", [COMMAND_UNIT, CONTROLLER_UNIT, SYSTEMD_UNIT])],
)
def test_a_node_of_a_command_has_neither_launcher_nor_rendezvous(role: str, units: list[str]) -> None:
    node = {**NODE, NodeVariable.ROLE: role, NodeVariable.TRAINING: OWN_COMMAND}

    assert boot("services", node).stdout.splitlines() == units


def test_a_node_of_a_command_gets_an_environment_without_torch() -> None:
    assert boot("lock_file", {**NODE, NodeVariable.TRAINING: OWN_COMMAND}).stdout == f"{BOOT}/requirements-command.lock"
    assert boot("lock_file", NODE).stdout == f"{BOOT}/requirements.lock"


def test_the_lock_of_a_command_is_the_part_of_the_other_that_the_node_imports() -> None:
    light, full = (set(_pins(BOOT / name)) for name in ("requirements-command.lock", "requirements.lock"))
    modules = "agent command.serve membership.controller __main__"
    program = "; ".join(
        ["import sys", *(f"import trainfabric_node.{name}" for name in modules.split()), "print(*sys.modules)"]
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    imported = {name.partition(".")[0] for name in said.split()}
    of_modules = packages_distributions()
    needed = {one.lower().replace("_", "-") for name in imported for one in of_modules.get(name, [])}

    assert light < full
    if_there = {"certifi", "setuptools"}  # botocore has certificates of its own; setuptools hooks into every Python
    assert needed - {"trainfabric"} - if_there <= {line.partition("==")[0] for line in light}
    assert {"boto3", "pydantic"} <= needed


def _pins(lock: Path) -> list[str]:
    return [line for line in lock.read_text().splitlines() if line and not line.startswith("#")]


def test_a_coordinator_that_only_controls_has_neither_launcher_nor_supervisor() -> None:
    variables = {**NODE, NodeVariable.ROLE: "coordinator", NodeVariable.TRAINS: "0"}

    assert boot("services", variables).stdout.splitlines() == [RENDEZVOUS_UNIT, CONTROLLER_UNIT]


@pytest.mark.parametrize(
    ("trains", "steps"),
    [
        ("0", "install_python create_environment install_services"),
        ("1", "install_python create_environment check_accelerators check_efa install_lustre_client mount_lustre "
         "mount_home install_services"),
    ],
)  # fmt: skip
def test_a_coordinator_that_only_controls_needs_no_accelerators_no_efa_and_no_data(trains: str, steps: str) -> None:
    stubs = """
    for step in read_variables wait_for_apt keep_needrestart_away; do eval "$step() { :; }"; done
    for step in install_python create_environment check_accelerators check_efa install_lustre_client mount_lustre \\
      mount_home install_services; do eval "$step() { printf '%s ' $step; }"; done
    tell_failures() { :; }
    say() { :; }
    """

    booted = boot(f"{stubs} main", {**NODE, NodeVariable.ROLE: "coordinator", NodeVariable.TRAINS: trains})

    assert booted.stdout.split() == steps.split()


@pytest.mark.parametrize(("trains", "waits"), [("0", False), ("1", True)])
def test_the_services_of_a_node_that_only_controls_wait_for_no_mount(tmp_path: Path, trains: str, waits: bool) -> None:
    variables = {
        **NODE,
        NodeVariable.ROLE: "coordinator",
        NodeVariable.TRAINS: trains,
        NodeVariable.ROOT: str(tmp_path),
    }
    (tmp_path / "etc/trainfabric").mkdir(parents=True)

    installed = boot("systemctl() { :; }; install_services", variables)

    units = tmp_path / "etc/systemd/system"
    assert installed.returncode == 0, installed.stderr
    assert (units / CONTROLLER_UNIT).exists()
    assert (units / f"{CONTROLLER_UNIT}.d/lustre.conf").exists() is waits


def test_a_command_is_tried_until_it_succeeds(tmp_path: Path) -> None:
    tried = boot(
        f'second() {{ test -e {tmp_path}/x || {{ touch {tmp_path}/x; false; }}; }}; retry 3 0 second; echo "$?"'
    )

    assert tried.stdout == "trainfabric boot: attempt 1 of 3 failed: second\n0\n"


def test_a_command_that_never_succeeds_fails_after_its_tries() -> None:
    tried = boot("retry 2 0 false")

    assert tried.returncode == 1
    assert tried.stdout.count("failed: false") == 2


@pytest.fixture
def devices(tmp_path: Path) -> dict[str, str]:
    """A root with three RDMA devices, two of them EFA."""
    for name, driver in (("rdmap0", "efa"), ("rdmap1", "efa"), ("mlx5_0", "mlx5_core")):
        (tmp_path / "drivers" / driver).mkdir(parents=True, exist_ok=True)
        device = tmp_path / "sys/class/infiniband" / name / "device"
        device.mkdir(parents=True)
        (device / "driver").symlink_to(tmp_path / "drivers" / driver)
    return {NodeVariable.ROOT: str(tmp_path)}


def test_devices_of_other_drivers_are_not_counted_as_efa(devices: dict[str, str], tmp_path: Path) -> None:
    assert boot("efa_devices", devices).stdout == "2\n"
    assert boot("efa_devices", {NodeVariable.ROOT: f"{tmp_path}/none"}).stdout == "0\n"


def test_a_node_without_its_efa_devices_is_refused() -> None:
    checked = boot("efa_devices() { echo 31; }; sleep() { :; }; check_efa", {NodeVariable.EFA_DEVICES: "32"})

    assert checked.returncode == 1
    assert checked.stderr == (
        "trainfabric boot: EFA devices must be 32, got 31; replace the node, or check its interfaces and EFA driver\n"
    )


def test_efa_is_not_looked_for_where_no_number_is_given() -> None:
    assert boot("efa_devices() { exit 9; }; check_efa").returncode == 0


def test_a_node_whose_accelerators_do_not_answer_is_refused() -> None:
    checked = boot("has() { true; }; nvidia-smi() { return 9; }; check_accelerators")

    assert (checked.returncode, checked.stderr) == (
        1,
        "trainfabric boot: the NVIDIA driver does not answer; replace the node, or check its image\n",
    )
    assert boot("has() { false; }; check_accelerators").returncode == 0


def test_needrestart_keeps_its_hands_off_our_services(tmp_path: Path) -> None:
    boot("keep_needrestart_away", {NodeVariable.ROOT: str(tmp_path)})

    written = (tmp_path / "etc/needrestart/conf.d/90-trainfabric.conf").read_text()
    assert written == "$nrconf{override_rc}{qr(^trainfabric-)} = 0;\n"


def test_a_missing_variable_is_named_before_anything_is_done(tmp_path: Path) -> None:
    file = tmp_path / Paths.NODE_ENVIRONMENT.lstrip("/")
    file.parent.mkdir(parents=True)
    file.write_text("TRAINFABRIC_REGION=eu-west-1\n")

    read = boot("read_variables TRAINFABRIC_REGION TRAINFABRIC_ROLE; echo done", {NodeVariable.ROOT: str(tmp_path)})

    assert (read.returncode, read.stdout) == (1, "")
    assert read.stderr == f"trainfabric boot: TRAINFABRIC_ROLE must stand in {file}\n"


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

    assert boot(f'there="{there}"; {stubs} install_lustre_client').stdout == says


HOME = {NodeVariable.HOME_SERVER: "10.0.0.9", NodeVariable.HOME_PATH: "/fsx"}


@pytest.mark.parametrize(
    ("there", "says"),
    [("mount.nfs4", ""), ("apt-get", "install nfs-common\n"), ("", "install nfs-utils\n")],
)
def test_the_nfs_client_is_installed_where_it_is_missing(there: str, says: str) -> None:
    stubs = 'has() { [[ $1 == "$there" ]]; }; say() { :; }; install_packages() { echo "install $*"; };'

    assert boot(f'there="{there}"; {stubs} install_nfs_client').stdout == says


def test_a_shared_home_is_mounted_by_a_unit_of_its_own(tmp_path: Path) -> None:
    stubs = """
    install_nfs_client() { :; }
    systemd-escape() { echo shared.mount; }
    systemctl() { echo "systemctl $*"; }
    """

    mounted = boot(f"{stubs} mount_home", {**NODE, **HOME, NodeVariable.ROOT: str(tmp_path)})

    assert mounted.stdout.splitlines() == [
        "systemctl daemon-reload",
        "systemctl enable --quiet shared.mount",
        "systemctl start shared.mount",
    ]
    unit = (tmp_path / "etc/systemd/system/shared.mount").read_text().splitlines()
    assert {"What=10.0.0.9:/fsx", f"Where={Paths.SHARED_HOME}", "Type=nfs4"} <= set(unit)
    assert (tmp_path / Paths.SHARED_HOME.lstrip("/")).is_dir()


def test_without_a_shared_home_nothing_is_installed_or_mounted() -> None:
    assert boot("install_nfs_client() { exit 9; }; systemctl() { exit 9; }; mount_home").returncode == 0


def test_a_shared_home_that_does_not_mount_is_named(tmp_path: Path) -> None:
    stubs = """
    install_nfs_client() { :; }
    systemd-escape() { echo shared.mount; }
    systemctl() { [[ $1 != start ]]; }
    retry() { "${@:3}"; }
    """

    mounted = boot(f"{stubs} mount_home", {**NODE, **HOME, NodeVariable.ROOT: str(tmp_path)})

    assert (mounted.returncode, mounted.stderr) == (
        1,
        "trainfabric boot: the shared home does not mount: 10.0.0.9; see journalctl -u shared.mount\n",
    )


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
    tested = {name: version(name) for name in ("boto3", "pydantic", "deepspeed", "numpy", "py-spy", "tokenizers")}

    assert {name: pinned[name] for name in tested} == tested
