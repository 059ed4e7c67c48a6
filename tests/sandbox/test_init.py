from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.processes import Children, wait_until
from tests.sandbox.machines import Machine, alive, start_machine

# writes its number, starts a child in a session of its own, and both ignore SIGTERM
STUBBORN = """\
[Service]
ExecStart=/usr/bin/python3 -c 'import os, pathlib, signal, subprocess, sys, time; \
signal.signal(signal.SIGTERM, signal.SIG_IGN); \
inner = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True); \
pathlib.Path("pids").write_text(f"{os.getpid()}\\n{inner.pid}\\n"); time.sleep(600)'
"""


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    with Children() as children:
        yield start_machine(children, tmp_path / "root")


def sleeper(more: str = "", command: str = "/usr/bin/sleep 600") -> str:
    return f"[Service]\nType=exec\nExecStart={command}\n{more}"


def test_a_unit_runs_its_command_below_the_root_with_the_environments_of_manager_and_unit(machine: Machine) -> None:
    # given
    machine.write("etc/own.env", "SECOND=from the file\n# a comment\nTHIRD='quoted words'\n")
    machine.unit(
        "own.service",
        "[Service]\nType=oneshot\nEnvironment=FIRST=1 SECOND=2\nEnvironmentFile=/etc/own.env\n"
        "EnvironmentFile=-/etc/missing.env\nExecStart=/usr/bin/sh -c 'pwd; echo $GREETING, $FIRST, $SECOND, $THIRD'\n",
    )
    # when
    status = machine.systemctl("start", "own.service")
    # then
    assert status == (0, "")
    assert machine.journal("own.service").splitlines() == [
        str(machine.root),
        "good morning, 1, from the file, quoted words",
    ]


def test_a_unit_is_active_while_its_command_runs_and_stops_when_it_is_told_to(machine: Machine) -> None:
    machine.unit("own.service", sleeper())
    assert machine.systemctl("is-active", "own.service") == (3, "inactive")

    assert machine.systemctl("start", "own.service") == (0, "")
    pid = machine.pid("own.service")
    assert machine.systemctl("is-active", "own.service") == (0, "active")
    assert alive(pid)

    assert machine.systemctl("stop", "own.service") == (0, "")
    assert (machine.systemctl("is-active", "own.service"), alive(pid)) == ((3, "inactive"), False)


@pytest.mark.parametrize(("restart", "comes_back"), [("always", True), ("on-failure", True), ("no", False)])
def test_a_killed_service_comes_back_as_restart_says(machine: Machine, restart: str, comes_back: bool) -> None:
    machine.unit("own.service", sleeper(f"Restart={restart}\nRestartSec=50ms\n"))
    machine.systemctl("start", "own.service")
    first = machine.pid("own.service")

    os.kill(first, signal.SIGKILL)
    wait_until(lambda: machine.pid("own.service") != first, timeout_s=10, what="its end")

    if comes_back:
        wait_until(lambda: machine.pid("own.service") not in (0, first), timeout_s=10, what="its return")
    else:
        assert machine.systemctl("is-active", "own.service") == (3, "failed")


def test_a_service_that_ends_in_order_comes_back_with_restart_always_alone(machine: Machine) -> None:
    for restart in ("always", "on-failure"):
        command = f"/usr/bin/sh -c 'echo up >>{restart}'"
        more = f"Restart={restart}\nRestartSec=20ms\n[Unit]\nStartLimitIntervalSec=0\n"
        machine.unit(f"{restart}.service", sleeper(more, command))
        machine.systemctl("start", f"{restart}.service")

    machine.wait_for_lines("always", 8)

    assert (machine.root / "on-failure").read_text() == "up\n"
    assert machine.systemctl("is-active", "on-failure.service") == (3, "inactive")


def test_a_service_that_fails_too_often_too_quickly_is_given_up(machine: Machine) -> None:
    command = "/usr/bin/sh -c 'echo up >>ups; exit 1'"
    machine.unit("own.service", sleeper("Restart=always\nRestartSec=1ms\n[Unit]\nStartLimitBurst=3\n", command))

    machine.systemctl("start", "own.service")
    wait_until(lambda: machine.systemctl("is-active", "own.service")[1] == "failed", timeout_s=10, what="the end")

    assert (machine.root / "ups").read_text() == "up\n" * 3


@pytest.mark.parametrize("mode", ["control-group", "mixed"])
def test_nothing_of_a_stubborn_service_is_left_once_it_is_stopped(machine: Machine, mode: str) -> None:
    machine.unit("own.service", f"{STUBBORN}KillMode={mode}\nTimeoutStopSec=300ms\n")
    machine.systemctl("start", "own.service")
    pids = [int(line) for line in machine.wait_for_lines("pids", 2)]

    machine.systemctl("stop", "own.service")

    assert not any(map(alive, pids))


def test_what_a_service_leaves_behind_as_it_is_killed_is_gone_before_it_comes_back(machine: Machine) -> None:
    machine.unit("own.service", f"{STUBBORN}KillMode=mixed\nTimeoutStopSec=300ms\nRestart=always\nRestartSec=1ms\n")
    machine.systemctl("start", "own.service")
    main, inner = (int(line) for line in machine.wait_for_lines("pids", 2))

    os.kill(main, signal.SIGKILL)
    wait_until(lambda: machine.pid("own.service") not in (0, main), timeout_s=10, what="its return")

    assert not alive(inner)


# ends its child in order, which a SIGTERM to the child would end out of order
PARENT = """#!/usr/bin/bash
usr/bin/child & child=$!
trap 'kill -USR1 $child; wait $child; exit 0' TERM
wait $child
wait $child
"""
CHILD = """#!/usr/bin/bash
trap 'echo drained >>told; exit' USR1
trap 'echo struck >>told; exit' TERM
echo up >>ups
while :; do sleep 0.05; done
"""


def test_a_mixed_service_is_asked_alone_and_may_end_what_is_below_it(machine: Machine) -> None:
    for name, text in (("parent", PARENT), ("child", CHILD)):
        machine.write(f"usr/bin/{name}", text)
        (machine.root / "usr/bin" / name).chmod(0o755)
    machine.unit("own.service", sleeper("KillMode=mixed\n", "/usr/bin/parent"))
    machine.systemctl("start", "own.service")
    machine.wait_for_lines("ups", 1)

    machine.systemctl("stop", "own.service")

    assert (machine.root / "told").read_text() == "drained\n"


def test_a_command_that_is_not_there_fails_and_is_tried_again(machine: Machine) -> None:
    machine.unit("own.service", sleeper("Restart=always\nRestartSec=20ms\n", "/opt/late"))

    status, text = machine.systemctl("start", "own.service")
    assert (status, text.startswith("Job for own.service failed: ")) == (1, True)

    machine.write("opt/late", "#!/bin/sh\nexec sleep 600\n")
    (machine.root / "opt/late").chmod(0o755)
    wait_until(lambda: machine.pid("own.service") > 0, timeout_s=10, what="the service")


def test_a_oneshot_that_fails_is_told_to_who_started_it(machine: Machine) -> None:
    machine.unit("own.service", "[Service]\nType=oneshot\nExecStart=/usr/bin/sh -c 'exit 7'\n")

    assert machine.systemctl("start", "own.service") == (1, "Job for own.service failed with status 7.")
    assert machine.systemctl("is-active", "own.service") == (3, "failed")


def test_a_restart_replaces_the_process(machine: Machine) -> None:
    machine.unit("own.service", sleeper())
    machine.systemctl("start", "own.service")
    first = machine.pid("own.service")

    assert machine.systemctl("restart", "own.service") == (0, "")

    assert machine.pid("own.service") not in (0, first)
    assert not alive(first)


def test_changed_units_are_read_when_the_daemon_is_told_to(machine: Machine) -> None:
    machine.unit("own.service", sleeper(command="/usr/bin/sh -c 'echo old >>said'").replace("exec", "oneshot", 1))
    machine.systemctl("start", "own.service")
    machine.unit("own.service", sleeper(command="/usr/bin/sh -c 'echo new >>said'").replace("exec", "oneshot", 1))

    machine.systemctl("start", "own.service")
    machine.systemctl("daemon-reload")
    machine.systemctl("start", "own.service")

    assert (machine.root / "said").read_text() == "old\nold\nnew\n"


def test_a_service_waits_for_no_mount_it_needs_but_is_refused(machine: Machine) -> None:
    machine.unit("own.service", "[Unit]\nRequiresMountsFor=/fsx\n" + sleeper())

    assert machine.systemctl("start", "own.service") == (
        1,
        "Dependency failed for own.service: nothing is mounted at /fsx.",
    )


def test_units_and_verbs_that_it_does_not_know_are_refused(machine: Machine) -> None:
    machine.unit("own.service", sleeper("CPUQuota=20%\n"))

    assert machine.systemctl("start", "own.service") == (
        1,
        "own.service: the stand-in for systemd does not know CPUQuota in [Service]",
    )
    assert machine.systemctl("start", "none.service") == (1, "Unit none.service not found.")
    assert machine.systemctl("mask", "own.service") == (1, "Unknown command verb mask.")


def test_what_is_enabled_starts_with_the_machine_and_stops_before_what_it_comes_after(tmp_path: Path) -> None:
    def unit(name: str, after: str) -> str:
        command = (
            f"/usr/bin/bash -c 'trap \"echo {name} >>ends; exit\" TERM; echo up >>ups; while :; do sleep 0.02; done'"
        )
        return f"[Unit]\nAfter={after}\n" + sleeper("KillMode=process\n", command)

    # given
    units = {"a.service": unit("a", ""), "b.service": unit("b", "a.service"), "c.service": unit("c", "b.service")}
    with Children() as children:
        machine = start_machine(children, tmp_path / "root", units)
        machine.wait_for_lines("ups", 3)
        # when
        machine.child.stop()
        # then
        assert (machine.root / "ends").read_text() == "c\nb\na\n"
        assert machine.child.exit_status == 0


def test_enabling_a_unit_makes_the_link_that_its_target_wants(machine: Machine) -> None:
    machine.unit("own.service", sleeper("[Install]\nWantedBy=multi-user.target\n"))

    assert machine.systemctl("enable", "own.service") == (0, "")

    link = machine.root / "etc/systemd/system/multi-user.target.wants/own.service"
    assert link.resolve() == machine.root / "etc/systemd/system/own.service"


def test_nothing_outlives_an_init_that_is_killed(machine: Machine) -> None:
    machine.unit("own.service", STUBBORN)
    machine.systemctl("start", "own.service")
    pids = [int(line) for line in machine.wait_for_lines("pids", 2)]

    for pid in machine.child.below():
        if b"sandbox.node.init" in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(pid, signal.SIGKILL)

    wait_until(lambda: not any(map(alive, pids)), timeout_s=10, what="the end of everything")


def test_the_power_can_be_cut_and_nobody_has_time_to_say_goodbye(machine: Machine) -> None:
    machine.unit("own.service", STUBBORN)
    machine.systemctl("start", "own.service")
    pids = [int(line) for line in machine.wait_for_lines("pids", 2)]

    machine.child.kill()

    assert not any(map(alive, pids))
    assert machine.child.below() == set()
