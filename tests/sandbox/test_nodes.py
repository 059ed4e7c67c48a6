from __future__ import annotations

import io
import json
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox.fleet import Fleet, node_variables
from sandbox.nodes import NodeRunner
from sandbox.processes import Children, wait_until
from sandbox.s3 import s3_client
from sandbox.services import aws_variables
from tests.sandbox.conftest import Aws
from trainfabric_plan.contract import environment_parameter
from trainfabric_plan.deployed import DeployedEnvironment
from trainfabric_plan.errors import InvalidInput, NotFound, Unreachable

USER_DATA = """#!/bin/bash
set -euo pipefail
cat > /etc/trainfabric/node.env <<'NODE_ENVIRONMENT'
TRAINFABRIC_ROLE=ROLE
TRAINFABRIC_ASSET_BUCKET=BUCKET
TRAINFABRIC_ASSET_KEY=code.zip
TRAINFABRIC_RENDEZVOUS_PORT=29400
TRAINFABRIC_STATE_DIRECTORY=/var/lib/trainfabric
NODE_ENVIRONMENT
exec true
"""

# stands for the agent: writes what it was given, runs the asset's code, and waits to be told to leave
AGENT = """
import json, os, pathlib, signal, sys, time
import deployed_code
signal.signal(signal.SIGTERM, lambda *_: (pathlib.Path("left").touch(), sys.exit(0)))
given = {name: value for name, value in os.environ.items()}
pathlib.Path("part").write_text(json.dumps({**given, "code": deployed_code.VERSION}))
pathlib.Path("part").rename("given.json")
time.sleep(600)
"""


@pytest.fixture
def environment(aws: Aws, s3_endpoint: str, new_name: Callable[[str], str]) -> str:
    """A deployed environment of two Auto Scaling groups without instances, and its asset in the nodes' S3."""
    name = new_name("environment")
    s3 = s3_client(s3_endpoint)
    s3.create_bucket(Bucket=f"{name}-assets")
    s3.put_object(Bucket=f"{name}-assets", Key="code.zip", Body=asset())
    groups = {role: make_group(aws, name, role) for role in ("coordinator", "worker")}
    deployed = DeployedEnvironment(
        name=name,
        region="us-east-1",
        data_bucket="data",
        checkpoint_bucket="checkpoints",
        lustre_dns_name="fs",
        lustre_mount_name="mount",
        coordinator_group=groups["coordinator"],
        worker_group=groups["worker"],
        nodes=3,
        ranks_per_node=2,
        spares=0,
        launch_templates={},
        asset_bucket=f"{name}-assets",
        asset_key="code.zip",
    )
    parameter = environment_parameter(name)
    aws.client("ssm").put_parameter(Name=parameter, Value=deployed.model_dump_json(), Type="String")
    return name


def asset() -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        archive.writestr("deployed_code.py", "VERSION = 'deployed'\n")
    return written.getvalue()


def make_group(aws: Aws, environment: str, role: str) -> str:
    name = f"{environment}-{role}"
    text = USER_DATA.replace("ROLE=ROLE", f"ROLE={role}").replace("BUCKET=BUCKET", f"BUCKET={environment}-assets")
    resources = {
        "Template": {
            "Type": "AWS::EC2::LaunchTemplate",
            "Properties": {
                "LaunchTemplateData": {
                    "ImageId": "ami-12c6146b",
                    "InstanceType": "p5.48xlarge",
                    "UserData": {"Fn::Base64": text},
                    **({"InstanceMarketOptions": {"MarketType": "spot"}} if role == "worker" else {}),
                }
            },
        },
        "Group": {
            "Type": "AWS::AutoScaling::AutoScalingGroup",
            "Properties": {
                "AutoScalingGroupName": name,
                "MinSize": "0",
                "MaxSize": "3",
                "AvailabilityZones": ["us-east-1a"],
                "LaunchTemplate": {
                    "LaunchTemplateId": {"Ref": "Template"},
                    "Version": {"Fn::GetAtt": ["Template", "LatestVersionNumber"]},
                },
            },
        },
    }
    aws.create(name, resources)
    return name


@pytest.fixture
def runner(
    aws: Aws, s3_endpoint: str, environment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[NodeRunner]:
    for name, value in aws_variables(aws.endpoint, s3_endpoint).items():
        monkeypatch.setenv(name, value)
    with Children() as children:
        made = NodeRunner(Fleet(environment), tmp_path / "nodes", children, [sys.executable, "-c", AGENT])
        yield made
        made.stop()


def scale(aws: Aws, environment: str, **capacity: int) -> None:
    for role, desired in capacity.items():
        aws.client("autoscaling").set_desired_capacity(
            AutoScalingGroupName=f"{environment}-{role}", DesiredCapacity=desired
        )


def given_to(directory: Path) -> dict[str, Any]:
    file = directory / "given.json"
    wait_until(file.exists, timeout_s=15, what=f"the node in {directory}")
    given: dict[str, Any] = json.loads(file.read_text())
    return given


def test_every_running_instance_becomes_a_node_with_the_deployed_code_and_variables(
    aws: Aws, environment: str, runner: NodeRunner
) -> None:
    # given no capacity, then a coordinator and two workers
    runner.tick()
    assert runner.nodes == {}
    scale(aws, environment, coordinator=1, worker=2)
    # when
    runner.tick()
    given = [given_to(node.directory) for node in runner.nodes.values()]
    # then
    assert sorted(one["TRAINFABRIC_ROLE"] for one in given) == ["coordinator", "worker", "worker"]
    assert {one["code"] for one in given} == {"deployed"}
    assert len({one["AWS_EC2_METADATA_SERVICE_ENDPOINT"] for one in given}) == 3
    assert len({one["TRAINFABRIC_STATE_DIRECTORY"] for one in given}) == 3
    ports = {one["TRAINFABRIC_RENDEZVOUS_PORT"] for one in given}
    assert len(ports) == 1
    assert ports != {"29400"}
    assert {one["AWS_ENDPOINT_URL"] for one in given} == {aws.endpoint}
    assert not any("AWS_EC2_METADATA_DISABLED" in one for one in given)
    assert sorted(node.instance.spot for node in runner.nodes.values()) == [False, True, True]


def test_the_node_of_an_instance_that_is_gone_is_told_to_leave(aws: Aws, environment: str, runner: NodeRunner) -> None:
    scale(aws, environment, worker=2)
    runner.tick()
    nodes = list(runner.nodes.values())
    for node in nodes:
        given_to(node.directory)

    scale(aws, environment, worker=0)
    runner.tick()
    wait_until(lambda: all((node.directory / "left").exists() for node in nodes), timeout_s=10, what="the end")

    assert runner.nodes == {}
    wait_until(lambda: not any(node.child.running for node in nodes), timeout_s=10, what="the end")


def test_a_notice_file_reaches_the_node_of_that_instance_alone(aws: Aws, environment: str, runner: NodeRunner) -> None:
    scale(aws, environment, worker=2)
    runner.tick()
    first, second = runner.nodes.values()

    (first.directory / "spot-notice").write_text("2030-01-01T00:02:00Z")
    runner.tick()

    notice = first.metadata.value("spot/instance-action")
    assert notice is not None
    assert json.loads(notice) == {"action": "terminate", "time": "2030-01-01T00:02:00Z"}
    assert second.metadata.value("spot/instance-action") is None


def test_an_agent_that_fails_is_started_again(
    aws: Aws, environment: str, runner: NodeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sandbox.nodes.RESTART_S", 0)
    scale(aws, environment, worker=1)
    runner.tick()
    (node,) = runner.nodes.values()
    given_to(node.directory)
    (node.directory / "given.json").unlink()
    failed = node.child

    failed.process.kill()
    failed.process.wait()
    runner.tick()

    assert node.child is not failed
    given_to(node.directory)


def test_the_commands_leave_with_status_2_and_a_reason(
    aws: Aws, children: Children, sandbox_root: Path, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "sandbox", "nodes", "--environment", "nowhere", "--state", str(tmp_path)]
    variables = {**aws_variables(aws.endpoint), "PATH": ""}
    child = children.start("nodes", command, log=tmp_path / "log", environment=variables, directory=sandbox_root)
    began = time.monotonic()
    wait_until(lambda: not child.running, timeout_s=30, what="the command")
    assert child.exit_status == 2, time.monotonic() - began
    assert child.last_lines() == (
        "sandbox: no environment nowhere is deployed; cdk deploy --all makes /trainfabric/nowhere/environment"
    )


def test_an_environment_that_is_not_deployed_and_an_aws_that_does_not_run_are_told_apart(
    aws: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in aws_variables(aws.endpoint).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(NotFound):
        Fleet("nowhere")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://localhost:1")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with pytest.raises(Unreachable, match=r"^sandbox: the embedded AWS must answer, got .*; is it running\?$"):
        Fleet("nowhere")


@pytest.mark.parametrize(
    ("user_data", "message"),
    [
        (
            "#!/bin/bash\necho hello\n",
            "launch template: user data must be a shell script with cat > /etc/trainfabric/node.env <<'WORD' in it, "
            "got none; see trainfabric_cdk/fleet/user_data.py",
        ),
        (
            "cat > /etc/trainfabric/node.env <<'E'\nnot a variable\nE\n",
            "launch template: user data must be lines of NAME=value between the marks, got 'not a variable'; "
            "see trainfabric_cdk/fleet/user_data.py",
        ),
    ],
)
def test_user_data_without_the_block_of_variables_is_refused(user_data: str, message: str) -> None:
    with pytest.raises(InvalidInput) as failure:
        node_variables(user_data)
    assert str(failure.value) == message
