"""A real Slurm controller without nodes: it reads its files, shows what it knows, and places jobs on nodes.

Slurm's cloud nodes need no machine until a job is placed on them, and even then `ResumeProgram` would have to start it
(power_save.html of Slurm's documentation, 2026-11).
"""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

STARTS_WITHIN_S = 10.0

CONFIGURATION = """\
ClusterName=judge
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
AuthType=auth/none
CredType=cred/none
StateSaveLocation={directory}/state
SlurmctldPidFile={directory}/slurmctld.pid
ProctrackType=proctrack/linuxproc
MailProg=/bin/true
MpiDefault=none
TopologyPlugin=topology/tree
SelectType=select/cons_tres
SchedulerParameters=sched_min_interval=0,batch_sched_delay=0,sched_interval=1
SuspendProgram=/bin/true
ResumeProgram=/bin/true
SuspendTime=600
NodeName={nodes} CPUs=1 State=CLOUD
PartitionName=train Nodes=ALL Default=YES State=UP OverSubscribe=EXCLUSIVE
"""


@dataclass(frozen=True)
class Slurm:
    """A running slurmctld, by its configuration file."""

    configuration: Path

    def run(self, *command: str) -> str:
        """What a command of Slurm prints."""
        variables = {**os.environ, "SLURM_CONF": str(self.configuration)}
        done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=10, check=False)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def answers(self) -> bool:
        """Whether the controller is up."""
        with contextlib.suppress(AssertionError):
            return " is UP" in self.run("scontrol", "ping")
        return False

    def switches(self) -> dict[str, dict[str, str]]:
        """What it made of its topology.conf: by the name of the switch, `Nodes`, `Switches` and others."""
        lines = self.run("scontrol", "show", "topology").splitlines()
        found = [dict(word.split("=", 1) for word in line.split()) for line in lines]
        return {switch.pop("SwitchName"): switch for switch in found}

    def nodes_of_job(self, nodes: int) -> list[str]:
        """Names of the nodes that it places a job of so many nodes on."""
        directory = str(self.configuration.parent)
        job = self.run("sbatch", "--parsable", "-N", str(nodes), "-D", directory, "--wrap", "sleep 60").strip()
        deadline = time.monotonic() + STARTS_WITHIN_S
        while not (placed := self.run("squeue", "--noheader", "--jobs", job, "--format", "%N").strip()):
            assert time.monotonic() < deadline, self.run("squeue")
            time.sleep(0.05)
        return self.run("scontrol", "show", "hostnames", placed).split()


@contextlib.contextmanager
def slurm(directory: Path, *, nodes: str, topology: str) -> Iterator[Slurm]:
    """A controller that knows these nodes and reads this topology.conf.

    Args:
        directory: Of its files.
        nodes: As Slurm writes them, such as `node-[1-400]`.
        topology: Text of topology.conf.
    """
    program = shutil.which("slurmctld")
    assert program, "slurmctld must be installed, got none; apt-get install slurmctld slurm-client"
    (directory / "state").mkdir()
    (directory / "topology.conf").write_text(topology)
    configuration = directory / "slurm.conf"
    host, user = socket.gethostname().partition(".")[0], getpass.getuser()
    configuration.write_text(
        CONFIGURATION.format(host=host, user=user, port=_free_port(), directory=directory, nodes=nodes)
    )
    log = directory / "slurmctld.log"
    with log.open("w") as output:
        controller = subprocess.Popen([program, "-D", "-f", configuration], stdout=output, stderr=output)
    try:
        made = Slurm(configuration)
        deadline = time.monotonic() + STARTS_WITHIN_S
        while not made.answers():
            assert controller.poll() is None and time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        yield made
    finally:
        controller.kill()
        controller.wait()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port
