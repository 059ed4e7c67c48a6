"""Somebody else's training code in a deployed environment: boot, supervisor, command, spot notice, the end."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox.demo.session import Session, deploy, start_services, synthesise
from sandbox.nodes import SPOT_NOTICE
from sandbox.processes import Child, Children
from trainfabric_plan.contract import COMMAND_UNIT, CONTROLLER_UNIT, SYSTEMD_UNIT, Role
from trainfabric_plan.environment.file import read_environment

ROOT = Path(__file__).parents[2]
STEPS = 150
TIMEOUT_S = 120.0
ENVIRONMENT = f"""\
name: own
region: us-east-1
availability_zone: us-east-1a
account: "123456789012"
fleet:
  instance_type: p5.48xlarge
  nodes: 3
training:
  command: cd . && python3 train.py {STEPS}
  code: code
  leave_by: file
  ranks_per_node: 1
fault_tolerance:
  minimum_nodes: 2
  wait_for_replacement_s: 0
  heartbeats: fast
"""


class Deployed:
    """The environment, and what the job's nodes and its status say."""

    def __init__(self, session: Session, nodes: Child) -> None:
        self.session, self.nodes = session, nodes

    def trainfabric(self, *arguments: str) -> Any:
        environment = ("--environment", str(self.session.environment_file))
        return self.session.commands.trainfabric(arguments[1], *arguments, *environment)

    def workers(self) -> list[str]:
        groups = [group.name for group in self.session.deployed.groups if group.role is Role.WORKER]
        found = self.session.aws.client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=groups)
        return sorted(one["InstanceId"] for group in found["AutoScalingGroups"] for one in group["Instances"])

    def ended(self) -> dict[str, Any] | None:
        status: dict[str, Any] = self.trainfabric("job", "status", "first")
        return status if status["state"] == "done" else None

    def saved(self) -> dict[str, Any]:
        found = [json.loads(file.read_text()) for file in self.session.nodes.glob("lustre/*/own/first/state.json")]
        return found[0] if found else {}

    def wait_for(self, what: str, condition: Callable[[], Any]) -> Any:
        deadline = time.monotonic() + TIMEOUT_S
        while not (found := condition()):
            assert self.nodes.running, self.nodes.last_lines()
            assert time.monotonic() < deadline, f"{what}: {self.trainfabric('job', 'status', 'first')}"
            time.sleep(0.2)
        return found


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    build = tmp_path_factory.mktemp("own")
    file = build / "environment.yaml"
    file.write_text(ENVIRONMENT)
    (build / "code").mkdir()
    shutil.copy(ROOT / "examples/own_command/train.py", build / "code")
    environment = read_environment(file)
    with Children() as children:
        commands = synthesise(ROOT, build, file, children)
        aws = start_services(children, build, environment.region)
        session = deploy(commands, aws, build, environment, file)
        yield Deployed(session, session.start_nodes())


def test_a_command_survives_a_spot_notice_and_loses_no_step(deployed: Deployed) -> None:
    # given a job that has trained some steps on three nodes
    started = deployed.trainfabric("job", "start", "first")
    folder = deployed.session.nodes
    # when EC2 announces that it takes a node, and the job goes on to its end
    deployed.wait_for("ten steps", lambda: deployed.saved().get("step", 0) >= 10)
    taken = deployed.workers()[-1]
    (folder / taken / SPOT_NOTICE).touch()
    units = {path.name for path in folder.glob("*/root/etc/systemd/system/trainfabric-*.service")}
    installed = [json.loads(file.read_text()) for file in folder.glob("*/root/opt/trainfabric/venv/installed.json")]
    ended = deployed.wait_for("the end", deployed.ended)
    # then the nodes were those of a command
    assert units == {COMMAND_UNIT, CONTROLLER_UNIT, SYSTEMD_UNIT}
    assert all(not any("torch" in line for line in one["installed"]) for one in installed)
    # and every epoch went on where the one before had saved, as all had agreed to leave
    events = ended["events"]
    epochs = [event for event in events if event["event"] == "epoch"]
    ends = [event["state"] for event in events if event["event"] == "epoch_ended"]
    assert len(epochs) >= 2
    assert ends == ["resume"] * (len(epochs) - 1) + ["done"]
    assert len(epochs[0]["nodes"]) == 3
    assert epochs[0]["layout"] == "3 × 1 ranks of a command"
    assert taken not in [node for epoch in epochs[1:] for node in epoch["nodes"]]
    assert [line["step"] for line in steps(deployed)] == list(range(1, STEPS + 1))
    # and it has ended where it was to end
    assert deployed.saved()["step"] == STEPS
    assert deployed.saved()["weight"] == pytest.approx(1 - 0.9**STEPS)
    assert (ended["step"], ended["steps"], ended["recipe"]) == (STEPS, None, None)
    assert ended["command"] == started["command"]["command"]
    said = deployed.trainfabric("job", "logs", "first")["log"]
    assert f"node 0 of 3 goes on after step 0 in {started['command']['code']['sha256']}" in said


def steps(deployed: Deployed) -> list[dict[str, Any]]:
    """The lines of all epochs, in order."""
    s3, bucket = deployed.session.aws.client("s3"), deployed.session.deployed.checkpoint_bucket
    listed = s3.list_objects_v2(Bucket=bucket, Prefix="jobs/first/runs/0001/epochs/")["Contents"]
    keys = sorted(entry["Key"] for entry in listed if entry["Key"].endswith("/steps.jsonl"))
    texts = [s3.get_object(Bucket=bucket, Key=key)["Body"].read().decode() for key in keys]
    return [json.loads(line) for text in texts for line in text.splitlines()]
