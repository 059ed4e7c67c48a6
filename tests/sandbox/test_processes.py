from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sandbox.processes import Children, free_ports, local_environment, node_environment, wait_until
from trainfabric_plan.errors import InvalidInput, Unreachable

# a command that starts another in a session of its own, and both ignore SIGTERM
STUBBORN = """
import os, pathlib, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
inner = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
pathlib.Path(sys.argv[1]).write_text(f"{os.getpid()} {inner.pid}")
time.sleep(600)
"""


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def pids(file: Path) -> list[int]:
    wait_until(lambda: file.exists() and len(file.read_text().split()) == 2, timeout_s=10, what="the command")
    return [int(pid) for pid in file.read_text().split()]


def test_nothing_is_left_of_a_stubborn_command_and_its_children_when_the_block_ends(tmp_path: Path) -> None:
    with Children() as children:
        command = [sys.executable, "-c", STUBBORN, str(tmp_path / "pids")]
        children.start("stubborn", command, log=tmp_path / "log", grace_s=0.2)
        started = pids(tmp_path / "pids")
        assert all(map(alive, started))
    assert not any(map(alive, started))


def test_nothing_is_left_when_the_one_who_started_it_is_killed(tmp_path: Path) -> None:
    # given a process that starts the stubborn command and has no chance to clean up
    script = f"""
import pathlib, sys, time
from sandbox.processes import Children
pathlib.Path({str(tmp_path / "log")!r}).touch()
Children().start("stubborn", [sys.executable, "-c", {STUBBORN!r}, {str(tmp_path / "pids")!r}],
    log=pathlib.Path({str(tmp_path / "log")!r}), grace_s=0.2)
time.sleep(600)
"""
    root = Path(__file__).parents[2]
    starter = subprocess.Popen([sys.executable, "-c", script], cwd=root)
    started = pids(tmp_path / "pids")
    # when
    starter.kill()
    starter.wait()
    # then
    wait_until(lambda: not any(map(alive, started)), timeout_s=10, what="the end of everything")


def test_a_command_does_not_outlive_its_guard(tmp_path: Path) -> None:
    with Children() as children:
        command = [sys.executable, "-c", "import os, time; print(os.getpid(), flush=True); time.sleep(600)"]
        child = children.start("guarded", command, log=tmp_path / "log")
        wait_until(lambda: child.last_lines().isdecimal(), timeout_s=10, what="the command", child=child)
        child.process.kill()
        wait_until(lambda: not alive(int(child.last_lines())), timeout_s=10, what="the end of the command")


def test_a_command_gets_sigterm_first_and_its_exit_status_is_passed_on(tmp_path: Path) -> None:
    orderly = "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(7)); print('up', flush=True)"
    with Children() as children:
        command = [sys.executable, "-c", f"{orderly}; signal.pause()"]
        child = children.start("orderly", command, log=tmp_path / "log", grace_s=30)
        wait_until(lambda: "up" in child.last_lines(), timeout_s=10, what="the command", child=child)
        began = time.monotonic()
        child.stop()
        assert (child.exit_status, time.monotonic() - began < 10) == (7, True)


def test_a_stubborn_command_can_be_killed_at_once_with_all_that_is_below_it(tmp_path: Path) -> None:
    with Children() as children:
        command = [sys.executable, "-c", STUBBORN, str(tmp_path / "pids")]
        child = children.start("stubborn", command, log=tmp_path / "log", grace_s=600)
        started = pids(tmp_path / "pids")
        assert set(started) <= child.below()
        child.kill()
        assert (any(map(alive, started)), child.below()) == (False, set())


def test_a_command_killed_by_a_signal_has_a_status_as_in_a_shell(tmp_path: Path) -> None:
    with Children() as children:
        command = [sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"]
        child = children.start("killed", command, log=tmp_path / "log")
        wait_until(lambda: not child.running, timeout_s=10, what="the command")
        assert child.exit_status == 128 + signal.SIGKILL


def test_waiting_for_a_child_that_ends_shows_the_end_of_its_log(tmp_path: Path) -> None:
    with Children() as children:
        command = [sys.executable, "-c", "print('no port left'); raise SystemExit(3)"]
        child = children.start("server", command, log=tmp_path / "log")
        with pytest.raises(Unreachable) as failure:
            wait_until(lambda: False, timeout_s=10, what="the server", child=child)
    assert str(failure.value) == "the server ended with exit status 3; its log says:\nno port left"


def test_waiting_too_long_says_how_long() -> None:
    with pytest.raises(Unreachable) as failure:
        wait_until(lambda: False, timeout_s=0.1, what="the server")
    assert str(failure.value) == "the server did not answer within 0.1 s"


def test_free_ports_are_different() -> None:
    assert len(set(free_ports(20))) == 20


def test_nothing_of_a_real_account_is_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "production")
    environment = local_environment(AWS_ACCESS_KEY_ID="testing")
    assert {name for name in environment if name.startswith("AWS_")} == {"AWS_ACCESS_KEY_ID"}
    assert environment["PATH"] == os.environ["PATH"]


def test_a_node_takes_over_where_the_sandbox_is_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"AWS_ENDPOINT_URL": "http://localhost:1", "AWS_ACCESS_KEY_ID": "testing"}
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in {**given, "AWS_EC2_METADATA_DISABLED": "true"}.items():
        monkeypatch.setenv(name, value)

    assert node_environment() == given


def test_a_node_without_an_embedded_aws_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with pytest.raises(InvalidInput) as failure:
        node_environment()
    assert str(failure.value) == (
        "sandbox: AWS_ENDPOINT_URL must be the address of the embedded AWS, got nothing; "
        "start it with python -m sandbox up, and export what it prints"
    )
