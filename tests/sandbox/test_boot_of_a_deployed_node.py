"""The nodes of `environments/p5_spot.yaml`, deployed as they are, from power on to services that run."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest

from sandbox.endpoints import ACCOUNT, aws_variables
from sandbox.fleet import Fleet
from sandbox.node.local_node import LocalNode
from sandbox.nodes import NodeRunner
from sandbox.processes import Children, wait_until
from sandbox.s3 import s3_client
from sandbox.services import mirror_buckets
from tests.sandbox.conftest import Aws
from trainfabric_node.jobs import NodeState, NodeStatus
from trainfabric_node.jobs.pins import Pinning
from trainfabric_plan.contract import (
    CONTROLLER_UNIT,
    CURRENT_JOB_KEY,
    LAUNCHER_UNIT,
    OUTCOME_FILE,
    RENDEZVOUS_UNIT,
    SYSTEMD_UNIT,
    Role,
    code_key,
    run_prefix,
)

REGION = "us-east-2"
ASSETS = f"cdk-hnb659fds-assets-{ACCOUNT}-{REGION}"
CONFIGURED = "etc/systemd/system"
BOOT_S = 60.0


@dataclass(frozen=True)
class Environment:
    """The deployed environment p5-spot."""

    s3: Any
    variables: dict[str, str]

    def client(self, service: str) -> Any:
        return boto3.client(service)

    @property
    def fleet(self) -> Fleet:
        return Fleet("p5-spot")

    def scale(self, **capacity: int) -> None:
        for role, desired in capacity.items():
            boto3.client("autoscaling").set_desired_capacity(
                AutoScalingGroupName=f"trainfabric-p5-spot-{role}", DesiredCapacity=desired
            )

    def group(self, role: str) -> dict[str, Any]:
        name = f"trainfabric-p5-spot-{role}"
        found = boto3.client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[name])
        return dict(found["AutoScalingGroups"][0])

    def change_user_data(self, role: str, *changes: tuple[str, str]) -> None:
        """Let nodes of a role that are launched from now on have other lines in their user data."""
        ec2, spec = boto3.client("ec2"), self.group(role)["LaunchTemplate"]
        template = spec["LaunchTemplateId"]
        versions = ec2.describe_launch_template_versions(LaunchTemplateId=template, Versions=["1"])
        text = base64.b64decode(versions["LaunchTemplateVersions"][0]["LaunchTemplateData"]["UserData"]).decode()
        for line, instead in changes:
            assert text.count(line) == 1, line
            text = text.replace(line, instead)
        made = ec2.create_launch_template_version(
            LaunchTemplateId=template,
            SourceVersion="1",
            LaunchTemplateData={"UserData": base64.b64encode(text.encode()).decode()},
        )
        self.launch(role, str(made["LaunchTemplateVersion"]["VersionNumber"]))

    def launch(self, role: str, version: str) -> None:
        group = self.group(role)
        template = {"LaunchTemplateId": group["LaunchTemplate"]["LaunchTemplateId"], "Version": version}
        boto3.client("autoscaling").update_auto_scaling_group(
            AutoScalingGroupName=group["AutoScalingGroupName"], LaunchTemplate=template
        )


@pytest.fixture(scope="module")
def assembly(sandbox_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `cdk synth` makes of the environment file."""
    output = tmp_path_factory.mktemp("assembly")
    context = {
        **json.loads((sandbox_root / "cdk.json").read_text())["context"],
        "environment": "environments/p5_spot.yaml",
    }
    variables = {"CDK_OUTDIR": str(output), "CDK_CONTEXT_JSON": json.dumps(context), "CDK_VALIDATION": "false"}
    command = [sys.executable, "app.py"]
    subprocess.run(command, cwd=sandbox_root, env={**os.environ, **variables}, check=True, capture_output=True)
    return output


@pytest.fixture(scope="module")
def deployed(
    aws: Aws, s3_endpoint: str, assembly: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Environment]:
    """The stacks that nodes need, and the training asset where they fetch it."""
    variables = aws_variables(aws.endpoint, s3_endpoint, REGION)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        boto3.client("ssm").put_parameter(Name="/cdk-bootstrap/hnb659fds/version", Value="30", Type="String")
        for stack in ("p5-spot-Network", "p5-spot-Storage", "p5-spot-Fleet"):
            template = (assembly / f"{stack}.template.json").read_text()
            boto3.client("cloudformation").create_stack(StackName=stack, TemplateBody=template)
        mirror_buckets(aws.endpoint, s3_endpoint)
        s3 = s3_client(s3_endpoint)
        s3.create_bucket(Bucket=ASSETS)
        (asset,) = assembly.glob("asset.*.zip")
        s3.put_object(Bucket=ASSETS, Key=asset.name.removeprefix("asset."), Body=asset.read_bytes())
        yield Environment(s3, variables)


@pytest.fixture
def runner(deployed: Environment, tmp_path: Path) -> Iterator[NodeRunner]:
    with Children() as children:
        made = NodeRunner(deployed.fleet, tmp_path / "nodes", children)
        yield made
        deployed.scale(worker=0, coordinator=0)
        for role in ("worker", "coordinator"):
            deployed.launch(role, "1")
        made.stop()


def booted(node: LocalNode) -> str:
    """What boot has said, once cloud-init is through."""
    wait_until(
        lambda: node.systemctl("is-active", "cloud-init.service")[1] in ("active", "failed"),
        timeout_s=BOOT_S,
        what=f"boot of {node.directory}",
        child=node.child,
    )
    return (node.root / "var/log/cloud-init-output.log").read_text()


def only(runner: NodeRunner) -> LocalNode:
    runner.tick()
    (node,) = runner.nodes.values()
    return node


def calls(node: LocalNode) -> list[str]:
    """Calls of the programs that change a machine, without the root in their paths."""
    text = (node.root / "var/log/programs.log").read_text().replace(str(node.root), "")
    return [line for line in text.splitlines() if not line.startswith(("fuser ", "modinfo ", "apt-cache "))]


def service(node: LocalNode, unit: str) -> dict[str, str]:
    """The variables of a service's process."""
    text = Path(f"/proc/{node.pid(unit)}/environ").read_text()
    return dict(part.split("=", 1) for part in text.split("\0") if "=" in part)


def test_a_coordinator_becomes_a_training_node_as_its_user_data_says(deployed: Environment, runner: NodeRunner) -> None:
    # given
    deployed.scale(coordinator=1)
    # when
    node = only(runner)
    said = booted(node)
    # then it has been made a node in this order
    assert said.splitlines()[-1] == "trainfabric boot: ready", said
    assert said.count("NVIDIA H100") == 8
    kernel = "6.17.0-1019-aws"
    file_system = next(line for line in calls(node) if line.startswith("mount.lustre")).split()[1]
    assert calls(node) == [
        "apt-get update -q",
        "apt-get install -qy python3-venv",
        "python3 -m venv /opt/trainfabric/venv",
        "nvidia-smi --query-gpu=index,name --format=csv,noheader",
        "curl -fsSLo /usr/share/keyrings/fsx-ubuntu-public-key.asc "
        "https://fsx-lustre-client-repo-public-keys.s3.amazonaws.com/fsx-ubuntu-public-key.asc",
        "apt-get update -q",
        "apt-get update -q",
        f"apt-get install -qy lustre-client-modules-{kernel}",
        "modprobe lustre",
        f"mount.lustre {file_system} /fsx -o noatime,flock,lazystatfs,_netdev",
    ]
    deployed_environment = deployed.fleet.deployed
    assert file_system == (f"{deployed_environment.lustre_dns_name}@tcp:/{deployed_environment.lustre_mount_name}")
    # and its environment holds what the lock pins
    lock = node.root / "opt/trainfabric/code/trainfabric_node/boot/requirements.lock"
    pinned = {line for line in lock.read_text().splitlines() if line and not line.startswith("#")}
    found = json.loads((node.root / "opt/trainfabric/venv/installed.json").read_text())
    assert set(found["installed"]) | set(found["left_out"]) == pinned
    assert {"torch", "deepspeed", "boto3", "py-spy"} <= {line.partition("==")[0] for line in found["installed"]}
    assert all(line.startswith(("nvidia-", "cuda-", "triton==")) for line in found["left_out"])
    # and the Lustre mount is where every node sees the same
    (node.root / "fsx/hello").write_text("shared")
    assert (node.directory.parent / "lustre" / deployed_environment.lustre_dns_name / "hello").read_text() == "shared"


@pytest.mark.parametrize(
    ("role", "units"),
    [
        ("coordinator", [LAUNCHER_UNIT, RENDEZVOUS_UNIT, CONTROLLER_UNIT, SYSTEMD_UNIT]),
        ("worker", [LAUNCHER_UNIT, SYSTEMD_UNIT]),
    ],
)
def test_every_service_of_a_node_runs_from_its_unit_file(
    deployed: Environment, runner: NodeRunner, role: str, units: list[str]
) -> None:
    deployed.scale(**{role: 1})
    node = only(runner)
    said = booted(node)

    boot = node.root / "opt/trainfabric/code/trainfabric_node/boot"
    installed = [path.name for path in (node.root / CONFIGURED).glob("trainfabric-*.service")]
    assert sorted(installed) == sorted(units), said
    for unit in units:
        assert (node.root / CONFIGURED / unit).read_text() == (boot / unit).read_text()
        assert (node.root / CONFIGURED / "multi-user.target.wants" / unit).is_symlink()
        variables = service(node, unit)
        assert variables["TRAINFABRIC_ROLE"] == role
        assert variables["PYTHONPATH"] == f"{node.root}/opt/trainfabric/code"
        assert variables["TRAINFABRIC_STATE_DIRECTORY"] == f"{node.root}/var/lib/trainfabric"
        program = Path(f"/proc/{node.pid(unit)}/cmdline").read_bytes().split(b"\0")[0].decode()
        assert program == f"{node.root}/opt/trainfabric/venv/bin/python"


def test_a_coordinator_that_only_controls_runs_nothing_else(deployed: Environment, runner: NodeRunner) -> None:
    deployed.change_user_data("coordinator", ("TRAINFABRIC_EFA_DEVICES=32\n", "TRAINFABRIC_TRAINS=0\n"))
    deployed.scale(coordinator=1)

    node = only(runner)
    said = booted(node)

    assert said.splitlines()[-1] == "trainfabric boot: ready", said
    installed = [path.name for path in (node.root / CONFIGURED).glob("trainfabric-*.service")]
    assert sorted(installed) == sorted([RENDEZVOUS_UNIT, CONTROLLER_UNIT])
    assert [line.split()[0] for line in calls(node)] == ["apt-get", "apt-get", "python3"]
    assert service(node, CONTROLLER_UNIT)["TRAINFABRIC_TRAINS"] == "0"


def test_a_changed_line_changes_what_boot_does(deployed: Environment, runner: NodeRunner) -> None:
    deployed.change_user_data(
        "worker", ("TRAINFABRIC_LUSTRE_MOUNT_POINT=/fsx\n", "TRAINFABRIC_LUSTRE_MOUNT_POINT=/mnt/data\n")
    )
    deployed.scale(worker=1)

    node = only(runner)
    said = booted(node)

    assert said.splitlines()[-1] == "trainfabric boot: ready", said
    assert (node.root / CONFIGURED / "mnt-data.mount").is_file()
    assert (node.root / "mnt/data").is_symlink()
    assert service(node, SYSTEMD_UNIT)["TRAINFABRIC_LUSTRE_MOUNT_POINT"] == f"{node.root}/mnt/data"


def test_a_coordinator_without_its_code_fails_the_job_and_releases_the_fleet(
    deployed: Environment, runner: NodeRunner
) -> None:
    # given a job, a worker that it protects, and code that is nowhere
    environment = deployed.fleet.deployed
    bucket = environment.checkpoint_bucket
    deployed.s3.put_object(Bucket=bucket, Key=CURRENT_JOB_KEY, Body=b'{"job": "first", "run": 1}')
    deployed.scale(worker=1)
    (worker,) = (member["InstanceId"] for member in deployed.group("worker")["Instances"])
    boto3.client("autoscaling").set_instance_protection(
        AutoScalingGroupName=environment.worker_groups[0].name, InstanceIds=[worker], ProtectedFromScaleIn=True
    )
    patience = ("runcmd:\n", """runcmd:\n- printf '#!/bin/sh' >"$TRAINFABRIC_ROOT/usr/bin/sleep"\n""")
    deployed.change_user_data("coordinator", (f"ASSET_KEY={environment.asset_key}", "ASSET_KEY=gone.zip"), patience)
    deployed.scale(coordinator=1)
    # when
    runner.tick()
    coordinator = next(node for node in runner.nodes.values() if not node.instance.spot)
    said = booted(coordinator)
    # then
    places = f"s3://{environment.asset_bucket}/gone.zip s3://{bucket}/{code_key('gone.zip')}"
    assert f"trainfabric boot: failed: 5 attempts failed: fetch {places}" in said
    assert [deployed.group(role)["Instances"] for role in ("worker", "coordinator")] == [[], []]
    outcome = deployed.s3.get_object(Bucket=bucket, Key=f"{run_prefix('first', 1)}{OUTCOME_FILE}")["Body"].read()
    assert json.loads(outcome)["detail"] == (
        f"boot of the coordinator {coordinator.instance.instance_id}.ec2.internal failed: "
        f"5 attempts failed: fetch {places}"
    )


def test_a_worker_that_does_not_boot_tells_the_job_and_leaves_the_fleet(
    deployed: Environment, runner: NodeRunner
) -> None:
    # given a job, and a worker whose code is nowhere
    environment = deployed.fleet.deployed
    bucket = environment.checkpoint_bucket
    deployed.s3.put_object(Bucket=bucket, Key=CURRENT_JOB_KEY, Body=b'{"job": "second", "run": 1}')
    patience = ("runcmd:\n", """runcmd:\n- printf '#!/bin/sh' >"$TRAINFABRIC_ROOT/usr/bin/sleep"\n""")
    deployed.change_user_data("worker", (f"ASSET_KEY={environment.asset_key}", "ASSET_KEY=gone.zip"), patience)
    deployed.scale(worker=1)
    # when
    worker = only(runner)
    said = booted(worker)
    # then
    assert "trainfabric boot: failed: 5 attempts failed: fetch" in said
    key = f"{run_prefix('second', 1)}nodes/{worker.instance.instance_id}.json"
    told = NodeStatus.model_validate_json(deployed.s3.get_object(Bucket=bucket, Key=key)["Body"].read())
    assert (told.role, told.state) == (Role.WORKER, NodeState.FAILED)
    assert told.detail.startswith("boot: 5 attempts failed: fetch")
    assert (deployed.group("worker")["Instances"], deployed.group("worker")["DesiredCapacity"]) == ([], 0)


def test_a_node_without_the_code_in_the_cdks_bucket_boots_from_the_jobs_copy(
    deployed: Environment, runner: NodeRunner
) -> None:
    environment = deployed.fleet.deployed
    body = deployed.s3.get_object(Bucket=ASSETS, Key=environment.asset_key)["Body"].read()
    deployed.s3.put_object(Bucket=environment.checkpoint_bucket, Key=code_key("pinned.zip"), Body=body)
    deployed.change_user_data("worker", (f"ASSET_KEY={environment.asset_key}", "ASSET_KEY=pinned.zip"))
    deployed.scale(worker=1)

    said = booted(only(runner))

    assert f"download: s3://{environment.checkpoint_bucket}/{code_key('pinned.zip')} to" in said
    assert said.splitlines()[-1] == "trainfabric boot: ready", said


def test_nodes_of_a_job_are_those_it_was_started_with_whatever_is_deployed_meanwhile(
    deployed: Environment, assembly: Path
) -> None:
    # given a job that has pinned what its nodes are launched with
    pinning = Pinning(deployed.fleet.deployed)
    pins = pinning.make("first", 1)
    assert pins is not None
    pinning.use(pins)
    deployed.scale(worker=1)
    (first,) = deployed.fleet.running()
    # when another user data is deployed, and the node is lost
    template = (assembly / "p5-spot-Fleet.template.json").read_text()
    assert template.count("STATE_DIRECTORY=/var/lib/trainfabric") == 2
    changed = template.replace("STATE_DIRECTORY=/var/lib/trainfabric", "STATE_DIRECTORY=/srv/later")
    boto3.client("cloudformation").update_stack(StackName="p5-spot-Fleet", TemplateBody=changed)
    deployed.fleet.terminate(first.instance_id)
    # then its replacement is the job's
    (second,) = deployed.fleet.running()
    assert second.instance_id != first.instance_id
    assert (second.user_data, second.image_id) == (first.user_data, pins.groups["trainfabric-p5-spot-worker"].image_id)
    # and the next job's nodes are those that were deployed
    pinning.use(pinning.make("second", 1) or pins)
    deployed.scale(worker=2)
    (third,) = (node for node in deployed.fleet.running() if node.instance_id != second.instance_id)
    assert "STATE_DIRECTORY=/srv/later\n" in third.user_data
    deployed.scale(worker=0)
