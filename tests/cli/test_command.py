"""The installed command as a process of its own: how fast it starts, what it loads, how it ends."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

COMMAND = Path(sys.executable).with_name("trainfabric")
HEAVY = {"aws_cdk", "boto3", "botocore", "constructs", "deepspeed", "matplotlib", "numpy", "tokenizers", "torch"}


def run(*arguments: str, directory: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMAND, *arguments], capture_output=True, text=True, check=False, cwd=directory)


def loaded_by(*arguments: str) -> set[str]:
    """Top-level modules that a command has loaded when it ends."""
    code = (
        "import sys\n"
        "from trainfabric_cli.main import run\n"
        "try:\n    run()\n"
        "except SystemExit: pass\n"
        "print(*{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)"
    )
    command = [sys.executable, "-c", code, *arguments]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stderr.split())


def test_help_loads_neither_types_nor_services() -> None:
    assert loaded_by("--help") & (HEAVY | {"pydantic", "yaml", "trainfabric_node", "trainfabric_training"}) == set()


@pytest.mark.parametrize("arguments", [("catalog",), ("plan", "environments/demo.yaml", "--json")])
def test_commands_without_services_load_no_client_of_them(arguments: tuple[str, ...]) -> None:
    assert loaded_by(*arguments) & (HEAVY | {"trainfabric_node", "trainfabric_training"}) == set()


def test_help_costs_less_than_half_a_second_of_computing() -> None:
    def seconds() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run("--help")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert min(seconds() for _ in range(3)) < 0.5


def test_the_version_is_that_of_the_distribution() -> None:
    ended = run("--version")

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, f"trainfabric {version('trainfabric')}\n", "")


@pytest.mark.parametrize("command", ["plan", "catalog", "job", "checkpoint", "init"])
def test_help_names_every_command(trainfabric: Any, command: str) -> None:
    assert f" {command} " in trainfabric("--help").out
    assert trainfabric(command, "-h").status == 0


def test_a_mistake_ends_with_status_2_one_message_and_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "demo.yaml").write_text("name: demo\n")

    ended = run("plan", "demo.yaml", "--json", directory=tmp_path)

    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.splitlines() == [
        "demo.yaml: region must be given, got nothing; add region",
        "demo.yaml: availability_zone must be given, got nothing; add availability_zone",
        "demo.yaml: fleet must be given, got nothing; add fleet",
        "demo.yaml: training must be given, got nothing; add training",
    ]


def test_wrong_usage_ends_with_status_2() -> None:
    ended = run("plan", "show")

    assert (ended.returncode, ended.stdout) == (2, "")
    assert "Missing argument 'ENVIRONMENT_FILE'" in ended.stderr


def test_a_reader_that_closes_the_pipe_gets_no_traceback() -> None:
    process = subprocess.Popen([COMMAND, "catalog", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout and process.stderr
    process.stdout.close()
    error = process.stderr.read().decode()
    process.stderr.close()
    process.wait()

    assert "Traceback" not in error


def test_no_credentials_end_with_status_2(tmp_path: Path, environment_file: Any) -> None:
    environment_file()
    bare = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    nothing = {"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/nowhere", "HOME": str(tmp_path)}

    ended = subprocess.run(
        [COMMAND, "job", "status", "--environment", "demo.yaml", "--json"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**bare, **nothing},
    )

    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == (
        "environment demo: AWS credentials must be given, got none; "
        "set AWS_PROFILE or run aws configure; on a node, check its instance profile\n"
    )


@pytest.mark.parametrize("path", ["folder", "file/below"])
@pytest.mark.parametrize(
    "command",
    [
        ("plan", "show"),
        ("plan", "draw", "-o", "picture.svg"),
        ("policy", "--account", "123456789012"),
        ("retained",),
        ("capacity", "check"),
        ("checkpoint", "ls"),
        ("job", "status", "-e"),
        ("job", "stop", "-e"),
        ("job", "start", "first", "-e"),
    ],
)
def test_what_is_no_file_is_no_environment_file(
    trainfabric: Any, no_aws: None, command: tuple[str, ...], path: str
) -> None:
    Path("folder").mkdir()
    Path("file").touch()
    got = {"folder": "a directory", "file/below": "not a directory"}[path]

    ended = trainfabric(*command, path)

    assert (ended.status, ended.out) == (2, "")
    assert ended.err == f"{path}: the file must be a readable UTF-8 file, got {got}\n"


def test_a_directory_is_no_file_of_the_users_own_facts(trainfabric: Any, fake_catalog: Path, no_aws: None) -> None:
    message = f"{fake_catalog}: the file must be a readable UTF-8 file, got a directory\n"

    for command in (("catalog", "p5.48xlarge"), ("catalog", "refresh", "-r", "us-east-1")):
        ended = trainfabric(*command)
        assert (ended.status, ended.out, ended.err) == (2, "", message)


@pytest.fixture
def fake_catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "facts"
    path.mkdir()
    monkeypatch.setenv("TRAINFABRIC_CATALOG", str(path))
    return path
