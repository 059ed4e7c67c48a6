from __future__ import annotations

import os
import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.node.booting import COMMON, FIRST_SCRIPT, NODE, program
from trainfabric_plan.contract import NodeVariable, Paths, code_key


@pytest.fixture
def bucket(tmp_path: Path) -> Path:
    """The AWS command line with a folder in the place of S3, and the training code as a deploy leaves it there."""
    (tmp_path / "bin").mkdir()
    copy = f'cp "{tmp_path}/${{6#s3://}}" "$7" 2>/dev/null || exit 254'
    program(tmp_path / "bin/aws", f'if [[ $1 == s3 ]]; then {copy}; else echo "$@" >"{tmp_path}/asked"; fi')
    (tmp_path / "root/var/lib/cloud/data").mkdir(parents=True)
    (tmp_path / "root/var/lib/cloud/data/instance-id").write_text("i-1\n")
    for place in ("assets/code.zip", f"checkpoints/{code_key('code.zip')}"):
        file = tmp_path / place
        file.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(file, "w") as asset:
            asset.writestr("trainfabric_node/boot/boot.sh", f'echo "$GREETING from {place} in $PWD"\n')
    return tmp_path


def _first_boot(bucket: Path, commands: str = "", **changes: str) -> subprocess.CompletedProcess[str]:
    """Runs the script as the user data leaves it on a node."""
    root = bucket / "root"
    install = root / Paths.INSTALL.lstrip("/")
    variables = root / Paths.NODE_ENVIRONMENT.lstrip("/")
    for folder in (install, variables.parent):
        folder.mkdir(parents=True, exist_ok=True)
    variables.write_text("".join(f"{name}={value}\n" for name, value in {**NODE, **changes}.items()))
    for script in (FIRST_SCRIPT, COMMON):
        (install / script.name).write_text(script.read_text())
    if commands:
        (install / "boot-commands.sh").write_text(commands)
    program(bucket / "bin/sleep", "true")
    program(bucket / "bin/systemctl", "exit 3")
    return subprocess.run(
        ["bash", install / FIRST_SCRIPT.name],
        env={"PATH": f"{bucket}/bin:{os.environ['PATH']}", NodeVariable.ROOT: str(root)},
        capture_output=True,
        text=True,
        cwd="/",
        check=False,
    )


def test_first_boot_fetches_the_code_runs_the_users_commands_and_hands_over(bucket: Path) -> None:
    booted = _first_boot(bucket, "export GREETING=$TRAINFABRIC_ROLE\ncd /tmp\n")

    assert (booted.returncode, booted.stdout, booted.stderr) == (0, "worker from assets/code.zip in /tmp\n", "")


def test_code_that_a_deploy_took_the_permission_for_is_read_from_the_jobs_copy(bucket: Path) -> None:
    (bucket / "assets/code.zip").unlink()

    booted = _first_boot(bucket, "export GREETING=hello\n")

    assert booted.stdout == f"hello from checkpoints/{code_key('code.zip')} in /\n"


def test_code_that_is_nowhere_is_told_with_both_places(bucket: Path) -> None:
    for place in ("assets/code.zip", f"checkpoints/{code_key('code.zip')}"):
        (bucket / place).unlink()

    booted = _first_boot(bucket)

    places = f"s3://assets/code.zip s3://checkpoints/{code_key('code.zip')}"
    assert booted.returncode == 1
    assert booted.stderr == f"trainfabric boot: failed: 5 attempts failed: fetch {places}\n"
    assert (bucket / "asked").read_text() == (
        "autoscaling terminate-instance-in-auto-scaling-group --region eu-west-1 --instance-id i-1 "
        "--should-decrement-desired-capacity\n"
    )


def test_a_command_of_the_user_that_fails_is_named(bucket: Path) -> None:
    booted = _first_boot(bucket, "cat /nonexistent\n")

    assert booted.returncode == 1
    assert "trainfabric boot: failed: line 1: cat /nonexistent\n" in booted.stderr
