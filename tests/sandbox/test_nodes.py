from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sandbox.fleet import Fleet
from sandbox.network import Addresses
from sandbox.node.local_node import LocalNode
from sandbox.nodes import NodeRunner, notice_time
from sandbox.processes import Children, wait_until
from sandbox.services import aws_variables
from tests.sandbox.conftest import Aws
from tests.sandbox.fleets import IMAGE, SmallFleet
from tests.sandbox.machines import alive
from trainfabric_plan.errors import NotFound, Unreachable

# installs a service that writes what it was given, starts a child in a session of its own, and may be told to leave
USER_DATA = """\
#cloud-config
write_files:
- path: /etc/systemd/system/own.service
  content: |
    [Service]
    Type=exec
    Environment=SAID=ROLE
    ExecStart=/opt/own
    Restart=always
    RestartSec=10ms
- path: /opt/own
  permissions: '0755'
  content: |
    #!/usr/bin/bash
    setsid sleep 600 &
    trap 'echo left >left; exit' TERM
    env >part
    echo "CHILD=$!" >>part
    echo "OWN=$$" >>part
    mv part given
    while :; do sleep 0.05; done
runcmd:
- systemctl daemon-reload
- systemctl start own.service
"""
NODE_S = 30.0


@pytest.fixture
def fleet(aws: Aws, new_name: Callable[[str], str], tmp_path: Path) -> SmallFleet:
    """A deployed environment without instances."""
    made = SmallFleet(aws, new_name("environment"))
    made.deploy(USER_DATA)
    made.describe()
    return made


@pytest.fixture
def runner(
    aws: Aws, s3_endpoint: str, fleet: SmallFleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[NodeRunner]:
    for name, value in aws_variables(aws.endpoint, s3_endpoint).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sandbox.nodes.ASK_S", 0)
    monkeypatch.setattr("sandbox.node.local_node.GRACE_S", 2.0)
    with Children() as children:
        made = NodeRunner(Fleet(fleet.name), tmp_path / "nodes", children)
        yield made
        made.stop()


def given_to(node: LocalNode) -> dict[str, str]:
    """The variables of the node's service, once it runs."""
    file = node.root / "given"
    wait_until(file.exists, timeout_s=NODE_S, what=f"the service of {node.directory}", child=node.child)
    return dict(line.split("=", 1) for line in file.read_text().splitlines() if "=" in line)


def processes(node: LocalNode) -> list[int]:
    given = given_to(node)
    return [int(given["OWN"]), int(given["CHILD"])]


def workers(fleet: SmallFleet, runner: NodeRunner, count: int) -> list[LocalNode]:
    """So many workers that have come up."""
    fleet.scale(worker=count)
    runner.tick()
    nodes = list(runner.nodes.values())
    for node in nodes:
        given_to(node)
    return nodes


def tick_until(runner: NodeRunner, condition: Callable[[], bool], what: str) -> None:
    def met() -> bool:
        runner.tick()
        return condition()

    wait_until(met, timeout_s=NODE_S, what=what)


def metadata(node: LocalNode, path: str) -> Any:
    text = node.metadata.value(path)
    return None if text is None else json.loads(text)


def test_every_running_instance_becomes_a_node_that_runs_its_own_user_data(
    aws: Aws, fleet: SmallFleet, runner: NodeRunner
) -> None:
    # given no capacity, then a coordinator and two workers
    runner.tick()
    assert runner.nodes == {}
    fleet.scale(coordinator=1, worker=2)
    # when
    runner.tick()
    given = {name: given_to(node) for name, node in runner.nodes.items()}
    # then
    assert sorted(one["SAID"] for one in given.values()) == ["coordinator", "worker", "worker"]
    assert {one["TRAINFABRIC_ROOT"] for one in given.values()} == {str(node.root) for node in runner.nodes.values()}
    assert len({one["AWS_EC2_METADATA_SERVICE_ENDPOINT"] for one in given.values()}) == 3
    assert {one["AWS_ENDPOINT_URL"] for one in given.values()} == {aws.endpoint}
    assert not any("AWS_EC2_METADATA_DISABLED" in one for one in given.values())
    assert not any("PYTHONPATH" in one or "VIRTUAL_ENV" in one for one in given.values())
    assert sorted(node.instance.spot for node in runner.nodes.values()) == [False, True, True]


def test_a_node_has_the_hardware_and_the_metadata_of_its_instance(fleet: SmallFleet, runner: NodeRunner) -> None:
    (node,) = workers(fleet, runner, 1)

    assert len(list((node.root / "sys/class/infiniband").iterdir())) == 2
    assert (node.root / "proc/driver/nvidia/gpus").read_text() == "".join(f"{n}, NVIDIA H100\n" for n in range(8))
    values = {
        path: node.metadata.value(path)
        for path in ("ami-id", "instance-id", "instance-type", "instance-life-cycle", "local-ipv4", "placement/region")
    }
    assert values == {
        "ami-id": IMAGE,
        "instance-id": node.instance.instance_id,
        "instance-type": "p5.48xlarge",
        "instance-life-cycle": "spot",
        "local-ipv4": node.metadata.address,
        "placement/region": "us-east-1",
    }
    assert node.metadata.value("tags/instance") is None


def test_a_changed_line_of_the_user_data_changes_the_nodes_that_come_after_it(
    fleet: SmallFleet, runner: NodeRunner
) -> None:
    (first,) = workers(fleet, runner, 1)
    changed = first.instance.user_data.replace("SAID=worker", "SAID=anything")

    fleet.launch_from(UserData=base64.b64encode(changed.encode()).decode())
    fleet.scale(worker=2)
    runner.tick()
    (second,) = (node for node in runner.nodes.values() if node is not first)

    assert given_to(first)["SAID"] == "worker"
    assert given_to(second)["SAID"] == "anything"


def test_the_node_of_an_instance_that_is_gone_shuts_down(fleet: SmallFleet, runner: NodeRunner) -> None:
    nodes = workers(fleet, runner, 2)

    fleet.scale(worker=0)
    runner.tick()
    wait_until(lambda: not any(node.is_on for node in nodes), timeout_s=NODE_S, what="the end")

    assert runner.nodes == {}
    assert [(node.root / "left").read_text() for node in nodes] == ["left\n", "left\n"]
    assert not any(alive(pid) for node in nodes for pid in processes(node))


def test_a_service_that_is_killed_comes_back_on_its_node(fleet: SmallFleet, runner: NodeRunner) -> None:
    (node,) = workers(fleet, runner, 1)
    own, child = processes(node)

    os.kill(own, signal.SIGKILL)
    wait_until(lambda: node.pid("own.service") not in (0, own), timeout_s=NODE_S, what="its return")

    assert not alive(child)
    assert node.systemctl("is-active", "own.service") == (0, "active")


def test_a_notice_reaches_the_node_of_that_instance_alone_and_ec2_takes_it_at_its_time(
    fleet: SmallFleet, runner: NodeRunner
) -> None:
    # given
    first, second = workers(fleet, runner, 2)
    # when
    (first.directory / "spot-notice").write_text("2030-01-01T00:02:00Z")
    runner.tick()
    # then
    assert metadata(first, "spot/instance-action") == {"action": "terminate", "time": "2030-01-01T00:02:00Z"}
    assert metadata(second, "spot/instance-action") is None
    assert first.is_on
    # when its time has come
    (first.directory / "spot-notice").write_text((datetime.now(UTC) + timedelta(seconds=0.3)).isoformat())
    tick_until(runner, lambda: first.instance.instance_id not in runner.nodes, "the end of the first")
    # then another takes its place
    tick_until(runner, lambda: len(runner.nodes) == 2, "a replacement")
    assert second.instance.instance_id in runner.nodes


def test_a_notice_without_a_time_gives_two_minutes(fleet: SmallFleet, runner: NodeRunner) -> None:
    (node,) = workers(fleet, runner, 1)

    (node.directory / "spot-notice").touch()
    runner.tick()

    at = datetime.fromisoformat(metadata(node, "spot/instance-action")["time"])
    assert 110 < (at - datetime.now(UTC)).total_seconds() <= 120


def test_a_rebalance_recommendation_is_only_said(fleet: SmallFleet, runner: NodeRunner) -> None:
    (node,) = workers(fleet, runner, 1)
    assert metadata(node, "events/recommendations/rebalance") is None

    (node.directory / "rebalance").touch()
    runner.tick()

    said = metadata(node, "events/recommendations/rebalance")
    assert datetime.now(UTC) - datetime.fromisoformat(said["noticeTime"]) < timedelta(seconds=10)
    assert node.is_on


def test_nothing_is_left_of_a_node_whose_power_is_cut_and_another_takes_its_place(
    fleet: SmallFleet, runner: NodeRunner
) -> None:
    (node,) = workers(fleet, runner, 1)
    pids = processes(node)

    (node.directory / "power-off").touch()
    runner.tick()

    assert not any(map(alive, pids))
    assert not (node.root / "left").exists()
    tick_until(runner, lambda: bool(runner.nodes) and node not in runner.nodes.values(), "a replacement")
    assert given_to(next(iter(runner.nodes.values())))["SAID"] == "worker"


def test_a_frozen_node_stands_still_until_it_is_thawed(fleet: SmallFleet, runner: NodeRunner) -> None:
    (node,) = workers(fleet, runner, 1)

    def states() -> set[str]:
        """Of all processes that have not ended: a frozen parent does not take note of one that has."""
        found = {Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] for pid in node.child.below()}
        return found - {"Z"}

    (node.directory / "freeze").touch()
    runner.tick()
    assert states() == {"T"}

    (node.directory / "thaw").touch()
    runner.tick()
    assert "T" not in states()
    assert node.systemctl("is-active", "own.service") == (0, "active")


def test_a_frozen_node_ends_all_the_same_when_its_instance_is_gone(fleet: SmallFleet, runner: NodeRunner) -> None:
    (node,) = workers(fleet, runner, 1)
    pids = processes(node)
    node.freeze()

    fleet.scale(worker=0)
    tick_until(runner, lambda: not any(map(alive, pids)), "its end")


def test_nothing_is_left_of_nodes_whose_runner_is_killed(
    aws: Aws, fleet: SmallFleet, sandbox_root: Path, tmp_path: Path
) -> None:
    # given
    fleet.scale(worker=2)
    command = [sys.executable, "-m", "sandbox", "nodes", "--environment", fleet.name, "--state", str(tmp_path)]
    runner = subprocess.Popen(command, env={**aws_variables(aws.endpoint), "PATH": os.defpath}, cwd=sandbox_root)
    files = [tmp_path / name / "root/given" for name in fleet.members()]
    wait_until(lambda: all(file.exists() for file in files), timeout_s=NODE_S, what="the nodes")
    given = [dict(line.split("=", 1) for line in file.read_text().splitlines() if "=" in line) for file in files]
    pids = [int(one[name]) for one in given for name in ("OWN", "CHILD")]
    # when
    runner.kill()
    runner.wait()
    # then
    wait_until(lambda: not any(map(alive, pids)), timeout_s=NODE_S, what="the end of everything")


def test_two_runners_never_give_one_address_to_two_nodes() -> None:
    first, second = Addresses(), Addresses()
    try:
        given = [next(addresses) for _ in range(600) for addresses in (first, second)]
    finally:
        first.close()
        second.close()

    assert len(set(given)) == 1200


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
    ("text", "meant"),
    [
        ("2026-11-30T20:58:00Z", datetime(2026, 11, 30, 20, 58, tzinfo=UTC)),
        ("2026-11-30T20:58:00", datetime(2026, 11, 30, 20, 58, tzinfo=UTC)),
        ("in 10 s", None),
        ("10", None),
    ],
)
def test_a_notice_with_a_time_that_is_none_is_said_and_ends_nothing(text: str, meant: datetime | None) -> None:
    assert notice_time(text) == meant
