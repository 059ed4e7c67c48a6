from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

HERE = Path(__file__).parent
PARALLELCLUSTER = HERE.parents[1] / "build/venvs/pcluster/bin/python"

Layout = list[list[Any]]


@pytest.fixture(scope="session")
def described() -> dict[str, dict[str, Any]]:
    """EC2's description of every instance type with EFA, as moto has it."""
    with mock_aws():
        ec2 = boto3.client("ec2", region_name="us-east-1", aws_access_key_id="none", aws_secret_access_key="none")
        with_efa = [{"Name": "network-info.efa-supported", "Values": ["true"]}]
        found = ec2.describe_instance_types(Filters=with_efa)["InstanceTypes"]
    return {one["InstanceType"]: one for one in found}


def parallelcluster_layouts(described: dict[str, dict[str, Any]]) -> dict[str, dict[str, Layout]]:
    """What ParallelCluster's launch templates would have, with EFA (`efa`) and without (`plain`), in one process."""
    layouts: dict[str, dict[str, Layout]] = asked("parallelcluster.py", described)
    return layouts


def asked(script: str, given: Any = None, *arguments: str) -> Any:
    """What a script of this directory writes for what it is given, both JSON, in ParallelCluster's own Python."""
    assert PARALLELCLUSTER.exists(), "run make oracle-setup first"
    done = subprocess.run(
        [PARALLELCLUSTER, HERE / script, *arguments],
        input=json.dumps(given),
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        text=True,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)
