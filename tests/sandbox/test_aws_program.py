from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from botocore.session import get_session
from botocore.validate import ParamValidator

from sandbox.endpoints import aws_variables
from sandbox.node.programs.aws import Misused, main, understood
from sandbox.s3 import s3_client
from tests.sandbox.conftest import Aws

BOOT = Path(__file__).parents[2] / "training/trainfabric_node/boot"
MENTION = re.compile(r"\baws ((?:s3|ssm|autoscaling) [a-z-]+)")
RECORDER = """#!/bin/bash
printf '%s\\x1f' "$@" >>"$CALLS"
echo >>"$CALLS"
case "$2" in
  get-parameter) echo '{"groups": [{"name": "c", "role": "coordinator"}, {"name": "w", "role": "worker"}]}' ;;
  describe-auto-scaling-groups) echo i-1 ;;
  cp) [ "$5" = - ] || echo '{"job": "first", "run": 1}' ;;
  ls) exit 1 ;;
esac
"""
VARIABLES = ("REGION", "ENVIRONMENT", "ASSET_BUCKET", "ASSET_KEY", "CHECKPOINT_BUCKET")


def test_every_call_of_the_boot_scripts_is_one_that_aws_knows(tmp_path: Path) -> None:
    # given a command line that writes down how it is called
    calls = tmp_path / "calls"
    (tmp_path / "aws").write_text(RECORDER)
    (tmp_path / "aws").chmod(0o755)
    (tmp_path / "var/lib/cloud/data").mkdir(parents=True)
    (tmp_path / "var/lib/cloud/data/instance-id").write_text("i-1")
    variables = {f"TRAINFABRIC_{name}": name.lower() for name in VARIABLES} | {"TRAINFABRIC_ROOT": str(tmp_path)}
    # when
    subprocess.run(
        ["bash", "-c", f'source "{BOOT}/first-boot.sh"; fetch s3://a/b; abandon "no node"'],
        env={**variables, "PATH": f"{tmp_path}:/usr/bin:/bin", "CALLS": str(calls)},
        check=True,
        capture_output=True,
    )
    # then
    made = [line.split("\x1f")[:-1] for line in calls.read_text().split("\n")[:-1]]
    mentions = {match for script in BOOT.glob("*.sh") for match in MENTION.findall(script.read_text())}
    assert {" ".join(words[:2]) for words in made} == mentions
    for words in made:
        call = understood(get_session(), words)
        if call.service != "s3":
            shape = get_session().get_service_model(call.service).operation_model(call.operation).input_shape
            assert shape is not None
            assert not ParamValidator().validate(call.parameters, shape).has_errors()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("scaling set", "argument command: Invalid choice: scaling"),
        ("autoscaling set-capacity", "argument operation: Invalid choice: autoscaling set-capacity"),
        ("ssm get-parameter", "the following arguments are required: --name"),
        ("ssm get-parameter --names x", "Unknown options: --names"),
        ("ssm get-parameter --name", "argument --name: expected one argument, got 0"),
        ("s3 cp --sse s3://a/b c", "the stand-in for aws does not know: s3 cp --sse s3://a/b c"),
    ],
)
def test_a_call_that_the_command_line_would_refuse_is_refused(line: str, message: str) -> None:
    with pytest.raises(Misused) as failure:
        understood(get_session(), line.split())

    assert str(failure.value) == message


@pytest.fixture
def nodes_aws(aws: Aws, s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Aws:
    for name, value in aws_variables(aws.endpoint, s3_endpoint).items():
        monkeypatch.setenv(name, value)
    return aws


def test_values_are_printed_as_asked(nodes_aws: Aws, capsys: pytest.CaptureFixture[str]) -> None:
    nodes_aws.client("ssm").put_parameter(Name="/own", Value='{"a": 1}', Type="String")

    asked = "ssm get-parameter --region us-east-1 --name /own"

    assert main(f"{asked} --query Parameter.Value --output text".split()) == 0
    assert capsys.readouterr().out == '{"a": 1}\n'
    assert main(f"{asked} --query [Parameter.Name]".split()) == 0
    assert capsys.readouterr().out == '[\n    "/own"\n]\n'


def test_a_call_that_the_service_refuses_has_the_exit_status_of_the_real_one(
    nodes_aws: Aws, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ssm", "get-parameter", "--region", "us-east-1", "--name", "/missing"]) == 254
    assert "ParameterNotFound" in capsys.readouterr().err
    assert main(["ssm", "get-parameter"]) == 252


def test_objects_are_copied_to_and_from_files_and_streams(
    nodes_aws: Aws,
    s3_endpoint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    s3_client(s3_endpoint).create_bucket(Bucket="copies")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"outcome")))

    assert main(["s3", "cp", "--region", "us-east-1", "-", "s3://copies/jobs/outcome.json"]) == 0
    assert main(["s3", "cp", "--no-progress", "s3://copies/jobs/outcome.json", str(tmp_path / "copy")]) == 0
    capfdbinary.readouterr()
    assert main(["s3", "cp", "s3://copies/jobs/outcome.json", "-"]) == 0

    assert ((tmp_path / "copy").read_bytes(), capfdbinary.readouterr().out) == (b"outcome", b"outcome")
    assert main(["s3", "ls", "s3://copies/jobs/outcome.json"]) == 0
    assert capfdbinary.readouterr().out.split()[-2:] == [b"7", b"outcome.json"]
    assert main(["s3", "ls", "s3://copies/jobs/none"]) == 1
