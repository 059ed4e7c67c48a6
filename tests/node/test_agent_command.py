from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.node.imds import running_imds
from trainfabric_node.__main__ import run

AGENT = [sys.executable, "-m", "trainfabric_node", "agent"]


def _variables(tmp_path: Path, **more: str) -> dict[str, str]:
    return {
        **os.environ,
        "TRAINFABRIC_ENVIRONMENT": "lab",
        "TRAINFABRIC_ROLE": "coordinator",
        "TRAINFABRIC_REGION": "us-east-1",
        "TRAINFABRIC_CHECKPOINT_BUCKET": "tests",
        "TRAINFABRIC_STATE_DIRECTORY": str(tmp_path),
        **more,
    }


def test_an_agent_waits_for_a_job_and_leaves_when_told_to(tmp_path: Path, s3_uri: str) -> None:
    with running_imds() as imds:
        variables = _variables(tmp_path, AWS_EC2_METADATA_SERVICE_ENDPOINT=imds.endpoint)
        with subprocess.Popen(
            AGENT, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as agent:
            assert agent.stdout is not None
            said = next(line for line in agent.stdout if "waiting" in line)
            agent.send_signal(signal.SIGTERM)
            rest = agent.stdout.read()

    assert said.endswith("INFO coordinator i-0123456789abcdef0 at 10.0.0.7: waiting for a job\n")
    assert (rest, agent.returncode) == ("", 0)


def test_the_agent_needs_no_torch() -> None:
    loaded = "import sys, trainfabric_node.agent; print({'torch', 'deepspeed', 'numpy'} & set(sys.modules))"

    printed = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True).stdout

    assert printed == "set()\n"


def test_wrong_settings_leave_with_two(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for name, value in _variables(tmp_path, TRAINFABRIC_ROLE="boss").items():
        monkeypatch.setenv(name, value)

    status = run(["agent"])

    assert status == 2
    assert capsys.readouterr().err == (
        "node settings: TRAINFABRIC_ROLE must be one of coordinator, worker, got boss; "
        "correct /etc/trainfabric/node.env, which the user data writes\n"
    )
