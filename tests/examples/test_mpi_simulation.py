"""The script of the MPI example on two nodes, with programs in place of ssh-keygen, sshd and mpirun."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "examples/mpi_simulation/code/simulate.sh"
STAND_INS = {
    "ssh-keygen": 'for last; do :; done\ntouch "$last" "$last.pub"',
    "sshd": "exec sleep 60",
    "mpirun": 'printf "%s\\n" "$*" >"$TRAINFABRIC_LUSTRE/mpirun"\nexit "$STATUS"',
}


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in STAND_INS.items():
        (folder / name).write_text(f"#!/usr/bin/env bash\n{text}\n")
        (folder / name).chmod(0o755)
    return folder


def node(rank: int, tmp_path: Path, programs: Path, status: int) -> subprocess.Popen[str]:
    variables = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "TMPDIR": str(tmp_path),
        "TRAINFABRIC_LUSTRE": str(tmp_path),
        "TRAINFABRIC_JOB": "wind",
        "TRAINFABRIC_EPOCH": "3",
        "TRAINFABRIC_HOSTS": "10.0.0.1,10.0.0.2",
        "NODE_RANK": str(rank),
        "NNODES": "2",
        "NPROC_PER_NODE": "96",
        "WORLD_SIZE": "192",
        "STATUS": str(status),
    }
    return subprocess.Popen(["bash", SCRIPT], env=variables, text=True, stderr=subprocess.PIPE)


@pytest.mark.parametrize("status", [0, 75, 3])
def test_one_mpirun_spans_both_nodes_and_both_leave_with_its_status(
    tmp_path: Path, programs: Path, status: int
) -> None:
    nodes = [node(rank, tmp_path, programs, status) for rank in (1, 0)]

    ended = [(one.communicate(timeout=60)[1], one.returncode) for one in nodes]

    assert ended == [("", status), ("", status)]
    assert (tmp_path / "mpirun").read_text() == (
        "--host 10.0.0.1:96,10.0.0.2:96 -np 192 -x FI_PROVIDER=efa ./simulation\n"
    )
