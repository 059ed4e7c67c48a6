"""Processes of the kernel's own, each started by a Python that does nothing else."""

from __future__ import annotations

import os
import subprocess
import sys

ADOPTS_AND_KILLS = """
import os, signal, sys, time
from trainfabric_node.launch.processes import adopt_orphans, descendants, kill_descendants

adopt_orphans()
started, told = os.pipe()
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.write(told, b"x")
            time.sleep(600)
        os._exit(0)
ready = b""
while len(ready) < 3:
    ready += os.read(started, 3)
before = len(descendants(os.getpid()))
kill_descendants()
print(before >= 3, descendants(os.getpid()))
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    print("no child")
"""

DIES_WITH_PARENT = """
import os, time
from trainfabric_node.launch.processes import die_with_parent

parent = os.getpid()
child = os.fork()
if child == 0:
    die_with_parent(parent)
    print(os.getpid(), flush=True)
    time.sleep(600)
time.sleep(600)
"""

ORPHAN_OF_ANOTHER = """
import os
from trainfabric_node.launch.processes import die_with_parent

die_with_parent(os.getpid())
print("still here")
"""


def test_descendants_in_sessions_of_their_own_are_adopted_killed_and_taken() -> None:
    ran = subprocess.run([sys.executable, "-c", ADOPTS_AND_KILLS], capture_output=True, text=True, timeout=60)

    assert ran.stderr == ""
    assert ran.stdout.splitlines() == ["True []", "no child"]


def test_a_child_dies_with_its_parent() -> None:
    with subprocess.Popen([sys.executable, "-c", DIES_WITH_PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = os.pidfd_open(int(parent.stdout.readline()))
        parent.kill()

        assert parent.stdout.read() == ""  # its end comes when the child, which holds it too, is gone
        os.close(child)


def test_a_child_whose_parent_ended_before_it_could_ask_ends() -> None:
    ran = subprocess.run([sys.executable, "-c", ORPHAN_OF_ANOTHER], capture_output=True, text=True, timeout=60)

    assert (ran.returncode, ran.stdout) == (1, "")
