"""A demo stopped with Ctrl-C leaves no process behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 120


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Path]:
    """A second checkout of what git tracks, sharing the installed packages of this one."""
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.split(b"\0")
    copy = tmp_path / "checkout"
    for name in filter(None, files):
        target = copy / os.fsdecode(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / os.fsdecode(name)).read_bytes())
    (copy / "node_modules").symlink_to(ROOT / "node_modules")
    yield copy
    assert _processes_of(copy) == []


def _processes_of(directory: Path) -> list[str]:
    """Command lines of running processes that name the directory or work in it."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and process.name != str(os.getpid()):
            try:
                command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                place = str((process / "cwd").readlink())
            except OSError:
                continue
            if str(directory) in command or place.startswith(str(directory)):
                found.append(command)
    return found


def test_ctrl_c_in_the_middle_of_the_deploy_leaves_nothing(checkout: Path) -> None:
    variables = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    demo = subprocess.Popen(
        [sys.executable, "-m", "sandbox.demo"],
        cwd=checkout,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    _wait_for(checkout / "build/demo/logs/bootstrap.log", demo)
    running = _processes_of(checkout)

    for _ in range(3):  # an impatient one
        demo.send_signal(signal.SIGINT)
        time.sleep(0.3)
    _, said = demo.communicate(timeout=TIMEOUT_S)

    assert any("sandbox aws" in command for command in running)
    assert any("weed" in command for command in running)
    assert demo.returncode == 130
    assert said.endswith("demo: stopped; nothing runs on\n")
    assert _processes_of(checkout) == []


def _wait_for(file: Path, demo: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not file.exists():
        assert demo.poll() is None, demo.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.1)
