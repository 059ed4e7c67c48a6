"""A deployed environment with local nodes and one long job, to break things in.

Everything is what the demo has: templates synthesised and deployed, user data run by every node, a job started with
the command line. Processes of a node are found by the root directory that stands in their environment.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import textwrap
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from sandbox.demo.session import Session, deploy, start_services, synthesise
from sandbox.processes import Child, Children
from trainfabric_plan.contract import (
    CURRENT_JOB_KEY,
    OUTCOME_FILE,
    STEPS_FILE,
    checkpoint_prefix,
    epoch_key,
    job_prefix,
    run_prefix,
)
from trainfabric_plan.environment.file import read_environment

ROOT = Path(__file__).resolve().parents[2]
JOB = "faults"
TIMEOUT_S = 120.0
MANY_STEPS = 1_000_000

AGENT = "trainfabric_node agent"
LAUNCHER = "trainfabric_training.launch launcher"
CONTROLLER = "trainfabric_node controller"
RENDEZVOUS = "trainfabric_training.launch rendezvous"

ENVIRONMENT = """\
name: {name}
region: us-east-1
availability_zone: us-east-1a
account: "123456789012"
fleet:
  instance_type: p5.48xlarge
  nodes: {nodes}
  spares: {spares}
{fleet}training:
  recipe: tiny_cpu
  ranks_per_node: {ranks}
  layout:
    data: {data}
    pipeline: 2
    tensor: 1
fault_tolerance:
  wait_for_replacement_s: {wait_s}
  heartbeats: {heartbeats}
"""


@dataclass(frozen=True, kw_only=True)
class Rank:
    """A rank as its file shows it."""

    rank: int
    pid: int
    step: int


@dataclass(frozen=True)
class LocalNode:
    """A local node by its directory."""

    directory: Path

    @property
    def instance_id(self) -> str:
        """Of the instance that it stands for."""
        return self.directory.name

    def processes(self) -> dict[int, str]:
        """Command lines of all living processes of the node, by process id."""
        return dict(_processes_with(str(self.directory)))

    def service(self, command: str) -> int | None:
        """Process id of a service, such as `AGENT`; of the oldest, since forks carry the same command line."""
        found = sorted(
            (_started(pid), pid) for pid, line in self.processes().items() if command in line and _is_python(line)
        )
        return found[0][1] if found else None

    def elastic_agent(self) -> int | None:
        """Process id of the torch elastic agent of the epoch that runs: the launcher's child."""
        launcher = self.service(LAUNCHER)
        return next((pid for pid in self.processes() if launcher and _parent(pid) == launcher), None)

    def ranks(self, epoch: int) -> list[Rank]:
        """The ranks of an epoch on this node, as far as they have said anything."""
        files = _files_below(self.directory, f"epochs/{epoch:08d}/ranks/[0-9]*.json")
        texts = [_text(file) for file in files if not file.name.endswith(".end.json")]
        found = [json.loads(text) for text in texts if text]
        return [Rank(rank=line["rank"], pid=line["pid"], step=line["step"]) for line in found]

    def ask(self, fault: str) -> None:
        """Put a fault file into the node's directory: `spot-notice`, `power-off`, `freeze`, `thaw`, `rebalance`,
        `link-down`, `link-up`."""
        (self.directory / fault).touch()


class Lab:
    """One job on local nodes."""

    def __init__(self, session: Session, runner: Child) -> None:
        self.session = session
        self._runner = runner
        self._turn = 0
        self._s3, self._bucket = session.aws.client("s3"), session.deployed.checkpoint_bucket

    # --- what there is -------------------------------------------------------------------------------------------

    def nodes(self) -> dict[str, LocalNode]:
        """Local nodes of the instances that EC2 runs now, by instance id."""
        ids = [member["InstanceId"] for group in self._groups() for member in group["Instances"]]
        return {name: LocalNode(self.session.nodes / name) for name in ids}

    def coordinator(self) -> LocalNode:
        """The one on-demand node."""
        (group,) = [g for g in self._groups() if g["AutoScalingGroupName"] == self.session.deployed.coordinator.name]
        return LocalNode(self.session.nodes / group["Instances"][0]["InstanceId"])

    def epoch(self) -> dict[str, Any]:
        """The newest epoch's record; empty before the first."""
        prefix = f"{job_prefix(JOB)}epochs/"
        listed = self._s3.list_objects_v2(Bucket=self._bucket, Prefix=prefix).get("Contents", [])
        numbers = sorted(int(entry["Key"].removeprefix(prefix).removesuffix(".json")) for entry in listed)
        return json.loads(self.object(epoch_key(JOB, numbers[-1])) or "{}") if numbers else {}

    def members(self) -> list[LocalNode]:
        """The nodes of the newest epoch, by node rank."""
        return [LocalNode(self.session.nodes / node["instance_id"]) for node in self.epoch().get("nodes", [])]

    def workers(self) -> list[LocalNode]:
        """The members that are not the coordinator."""
        coordinator = self.coordinator()
        return [node for node in self.members() if node != coordinator]

    def placements(self) -> dict[str, int]:
        """Number of the placement group of every worker that EC2 runs now, by instance id."""
        groups = {group.name: group.placement for group in self.session.deployed.worker_groups}
        return {
            member["InstanceId"]: groups[group["AutoScalingGroupName"]]
            for group in self._groups()
            if group["AutoScalingGroupName"] in groups
            for member in group["Instances"]
        }

    def victim(self) -> LocalNode:
        """Another worker each time: one on which failure after failure begins is replaced."""
        self._turn += 1
        workers = self.workers()
        return workers[self._turn % len(workers)]

    def steps(self) -> list[dict[str, Any]]:
        """All steps of all epochs in the files of the nodes, by time, each with its `epoch`."""
        found = []
        for file in _files_below(self.session.nodes, f"epochs/*/output/{STEPS_FILE}"):
            for line in _whole_lines(file):
                found.append({"epoch": int(file.parents[1].name), **line})
        return sorted(found, key=lambda line: str(line["time"]))

    def highest_step(self) -> int:
        """Of all steps so far."""
        return max((line["step"] for line in self.steps()), default=0)

    def status(self) -> dict[str, Any]:
        """`trainfabric job status`."""
        found: dict[str, Any] = self.session.commands.trainfabric("status", "job", "status", JOB, *self._environment())
        return found

    def events(self, kind: str) -> list[dict[str, Any]]:
        """What `trainfabric job status` knows of one kind of event."""
        return [event for event in self.status()["events"] if event["event"] == kind]

    def object(self, key: str) -> str | None:
        """Text of an object of the checkpoint bucket, if there is one."""
        with contextlib.suppress(self._s3.exceptions.NoSuchKey):
            text: str = self._s3.get_object(Bucket=self._bucket, Key=key)["Body"].read().decode()
            return text
        return None

    def commits_follow_their_claim(self) -> bool:
        """Whether no epoch has committed a checkpoint once another had claimed the job."""
        pages = self._s3.get_paginator("list_objects_v2").paginate(
            Bucket=self._bucket, Prefix=f"{checkpoint_prefix(JOB)}log/"
        )
        keys = sorted(entry["Key"] for page in pages for entry in page.get("Contents", []))
        owner = None
        for entry in (json.loads(self.object(key) or "") for key in keys):
            if entry["event"] == "claim":
                owner = entry["nonce"]
            elif entry["nonce"] != owner:
                return False
        return True

    # --- what can be done ----------------------------------------------------------------------------------------

    def start(self, *more: str) -> None:
        """`trainfabric job start` of a job that never ends by itself."""
        arguments = ("job", "start", JOB, *self._environment(), "--steps", str(MANY_STEPS), *more)
        self.session.commands.trainfabric("start", *arguments)

    def stop(self) -> dict[str, Any]:
        """`trainfabric job stop --wait`."""
        arguments = ("job", "stop", *self._environment(), "--wait")
        found: dict[str, Any] = self.session.commands.trainfabric("stop", *arguments)
        return found

    def wait_for(self, what: str, condition: Callable[[], Any], timeout_s: float = TIMEOUT_S) -> Any:
        """Wait until a condition holds and return what it returned; says what was not met, and what happened."""
        deadline = time.monotonic() + timeout_s
        while True:
            found = condition()
            if found:
                return found
            assert self._runner.running, self._runner.last_lines()
            assert time.monotonic() < deadline, f"{what} must be within {timeout_s:g} s; {self.story()}"
            time.sleep(0.05)

    def wait_for_step_beyond(self, step: int, timeout_s: float = TIMEOUT_S) -> dict[str, Any]:
        """The first step that is higher."""

        def beyond() -> dict[str, Any] | None:
            return next((line for line in self.steps() if line["step"] > step), None)

        found: dict[str, Any] = self.wait_for(f"a step beyond {step}", beyond, timeout_s)
        return found

    def wait_until_whole(self, nodes: int, timeout_s: float = TIMEOUT_S) -> None:
        """Until all nodes of the plan train again, and have trained a step."""

        def whole() -> bool:
            record = self.epoch()
            if len(record.get("nodes", [])) != nodes:
                return False
            return any(line["epoch"] == record["number"] for line in self.steps())

        self.wait_for(f"an epoch of {nodes} nodes", whole, timeout_s)

    def seconds_to_new_step(self, fault: Callable[[], None], timeout_s: float = TIMEOUT_S) -> float:
        """From a fault to the end of the first step, of a later epoch, beyond the highest that earlier epochs came to.

        A step that the old epoch still finished after the fault does not count.
        """
        number, begun = self.epoch()["number"], time.time()
        fault()

        def first() -> dict[str, Any] | None:
            steps = self.steps()
            highest = max(line["step"] for line in steps if line["epoch"] <= number)
            return next((line for line in steps if line["epoch"] > number and line["step"] > highest), None)

        line = self.wait_for(f"a new step of an epoch after {number}", first, timeout_s)
        return datetime.fromisoformat(line["time"]).timestamp() - begun

    def story(self) -> str:
        """What happened, as far as it can be asked."""
        with contextlib.suppress(Exception):
            return "\n".join(self.status()["story"][-40:])
        return "job status does not answer"

    def orphans(self) -> dict[int, str]:
        """Living processes of nodes whose instances EC2 does not run."""
        alive = self.nodes()
        everybody = dict(_processes_with(str(self.session.nodes) + "/"))
        own = {pid for node in alive.values() for pid in node.processes()}
        return {pid: line for pid, line in everybody.items() if pid not in own and "sandbox" not in line}

    def ended(self) -> bool:
        """Whether the run has an outcome and the environment is free."""
        return self.object(f"{run_prefix(JOB, 1)}{OUTCOME_FILE}") is not None and self.object(CURRENT_JOB_KEY) is None

    def _groups(self) -> list[dict[str, Any]]:
        names = [group.name for group in self.session.deployed.groups]
        found: list[dict[str, Any]] = self.session.aws.client("autoscaling").describe_auto_scaling_groups(
            AutoScalingGroupNames=names
        )["AutoScalingGroups"]
        return found

    def _environment(self) -> tuple[str, str]:
        return ("--environment", str(self.session.environment_file))


@contextlib.contextmanager
def lab(
    build: Path,
    *,
    nodes: int = 4,
    ranks_per_node: int = 1,
    spares: int = 0,
    wait_s: int = 0,
    heartbeats: str = "fast",
    name: str = "faults",
    network: str = "loopback",
    fleet: str = "",
    corpus: Path | None = None,
) -> Iterator[Lab]:
    """An environment of `nodes` nodes with so many ranks each, deployed, with local nodes, without a job yet.

    With the network `namespaces` a node's link can be taken away. `fleet` has more lines of that section of the file.
    `corpus` is a directory of Python sources to train on; the standard library if not given.
    """
    build.mkdir(parents=True, exist_ok=True)
    file = build / "environment.yaml"
    file.write_text(
        ENVIRONMENT.format(
            name=name,
            nodes=nodes,
            spares=spares,
            fleet=textwrap.indent(fleet, "  "),
            ranks=ranks_per_node,
            data=nodes * ranks_per_node // 2,
            wait_s=wait_s,
            heartbeats=heartbeats,
        )
    )
    environment = read_environment(file)
    with Children() as children:
        commands = synthesise(ROOT, build, file, children)
        aws = start_services(children, build, environment.region)
        session = deploy(commands, aws, build, environment, file)
        session.prepare_corpus(corpus)
        yield Lab(session, session.start_nodes("--network", network))


@contextlib.contextmanager
def settled(made: Lab, nodes: int) -> Iterator[Lab]:
    """A lab that is whole again before a test, and without processes that outlived their node after it."""
    made.wait_until_whole(nodes)
    made.wait_for_step_beyond(made.highest_step())
    yield made
    made.wait_for("no process of a node that is gone", lambda: not made.orphans())


def kill(pid: int | None) -> None:
    """SIGKILL to a process that must be there."""
    assert pid is not None, "the process to kill must run"
    os.kill(pid, signal.SIGKILL)


def _files_below(directory: Path, pattern: str) -> Iterator[Path]:
    """Files whose path matches a pattern; directories that go away meanwhile (a node's terminate) hold none."""
    for folder, _, names in os.walk(directory):
        yield from (found for name in names if (found := Path(folder, name)).match(pattern))


def _whole_lines(file: Path) -> list[dict[str, Any]]:
    whole, _, _ = _text(file).rpartition("\n")
    return [json.loads(line) for line in whole.splitlines() if line]


def _text(file: Path) -> str:
    with contextlib.suppress(FileNotFoundError):
        return file.read_text()
    return ""


def _processes_with(text: str) -> Iterator[tuple[int, str]]:
    """Process ids and command lines of living processes whose environment contains a text."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal() and int(folder.name) != os.getpid():
            with contextlib.suppress(OSError):
                if text.encode() in (folder / "environ").read_bytes():
                    yield int(folder.name), (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()


def _is_python(line: str) -> bool:
    return "python" in line.split(" ", 1)[0]


def _stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _parent(pid: int) -> int:
    with contextlib.suppress(OSError):
        return int(_stat(pid)[1])
    return 0


def _started(pid: int) -> int:
    with contextlib.suppress(OSError):
        return int(_stat(pid)[19])
    return 0
