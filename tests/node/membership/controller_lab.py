"""A controller as its unit runs it, among instances of an embedded AWS whose supervisors are played by the test."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import pytest

from tests.node.embedded import deploy_groups, running_moto
from tests.node.imds import running_imds
from tests.node.membership.field import small_plan
from tests.node.membership.supervisors import Supervisor, until
from tests.node.samples import RECIPE, spec
from tests.node.seaweed import Seaweed, free_ports
from trainfabric_node.jobs import JobLedger, JobSpec
from trainfabric_node.jobs.fleet import Fleet, Member
from trainfabric_node.membership.protocol import EpochRecord
from trainfabric_node.store import open_store
from trainfabric_plan.contract import Role, environment_parameter
from trainfabric_plan.deployed import DeployedEnvironment
from trainfabric_plan.policy import FaultTolerance

BUCKET = "tests"
POLICY = FaultTolerance(heartbeats="fast", wait_for_replacement_s=0)


@dataclass
class Lab:
    """A deployed environment with a job, whose nodes are instances of the embedded AWS with supervisors of the test."""

    stack: ExitStack
    variables: dict[str, str]
    directory: Path
    environment: DeployedEnvironment
    job: JobSpec
    ledger: JobLedger
    fleet: Fleet
    supervisors: dict[str, Supervisor] = field(default_factory=dict)
    more: dict[str, str] = field(default_factory=dict)
    """Variables of the controller's node beside those of every coordinator."""
    port: int = field(default_factory=lambda: free_ports(1)[0])

    def start_controller(self, instance_id: str, address: str = "127.0.0.1") -> subprocess.Popen[bytes]:
        imds = self.stack.enter_context(running_imds())
        imds.values.update({"instance-id": instance_id, "local-ipv4": address})
        variables = {
            **os.environ,
            **self.variables,
            "AWS_EC2_METADATA_SERVICE_ENDPOINT": imds.endpoint,
            "TRAINFABRIC_ENVIRONMENT": "lab",
            "TRAINFABRIC_ROLE": "coordinator",
            "TRAINFABRIC_REGION": "us-east-1",
            "TRAINFABRIC_CHECKPOINT_BUCKET": BUCKET,
            "TRAINFABRIC_CONTROL_PORT": str(self.port),
            **self.more,
        }
        with (self.directory / "controller.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "trainfabric_node", "controller"], env=variables, stdout=log, stderr=log
            )
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)
        return process

    def join(self) -> list[Supervisor]:
        """Supervisors on the nodes that the fleet has and that have none yet; coordinator first."""
        placements = {group.name: group.placement for group in self.job.groups}
        members = [one for one in self.fleet.members() if not one.leaving and self._trains(one)]
        fresh = [member for member in members if member.instance_id not in self.supervisors]
        for number, member in enumerate(fresh, len(self.supervisors) + 1):
            address, placement = f"10.0.0.{number}", placements[member.group]
            made = Supervisor(self.ledger, self.job, member.instance_id, member.role, address, placement=placement)
            self.supervisors[member.instance_id] = made
            self.stack.callback(made.kill)
        return [self.supervisors[member.instance_id] for member in fresh]

    def _trains(self, member: Member) -> bool:
        return member.role is Role.WORKER or self.job.coordinator_trains

    def records(self) -> list[EpochRecord]:
        store, prefix = self.ledger.store, f"jobs/{self.job.job}/epochs/"
        return [EpochRecord.model_validate_json(store.get(key)) for key in store.list(prefix)]

    def epochs(self) -> list[list[str]]:
        return [[node.instance_id for node in record.nodes] for record in self.records()]

    def events(self) -> list[dict[str, Any]]:
        return self.ledger.run(self.job.job, self.job.run).events()

    def told(self, *kinds: str) -> list[dict[str, Any]]:
        return [{**event, "time": ""} for event in self.events() if event["event"] in kinds]

    def log(self) -> str:
        return (self.directory / "controller.log").read_text()

    def reach(self, step: int) -> None:
        """Until all members of the current epoch are there."""

        def there() -> bool:
            newest = self.records()[-1:]
            return bool(newest) and all(
                (one := self.supervisors[name].epoch) is not None
                and (one.number, one.state) == (newest[0].number, "running")
                and one.step >= step
                for name in (node.instance_id for node in newest[0].nodes)
            )

        until(there, what=self.log)

    def outcome(self) -> tuple[str, int | None, str]:
        records = self.ledger.run(self.job.job, self.job.run)
        until(lambda: self.ledger.current() is None, within_s=40, what=self.log)
        outcome = records.outcome()
        assert outcome is not None
        return outcome.state, outcome.step, outcome.detail

    def wanted(self) -> list[int]:
        groups = boto3.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]
        return [group["DesiredCapacity"] for group in groups]


@contextmanager
def running_lab(
    directory: Path, seaweed: Seaweed, patch: pytest.MonkeyPatch, environment: DeployedEnvironment
) -> Iterator[Lab]:
    """An environment of four nodes that is deployed in an embedded AWS, and a job for it."""
    with ExitStack() as stack:
        # the embedded AWS believes any key; SeaweedFS does not
        variables = {**stack.enter_context(running_moto()), **seaweed.environment}
        for name, value in variables.items():
            patch.setenv(name, value)
        deploy_groups(*(group.name for group in environment.groups))
        boto3.client("ssm").put_parameter(
            Name=environment_parameter("lab"), Value=environment.model_dump_json(), Type="String"
        )
        recipe = RECIPE.model_copy(update={"steps": 1_000_000})
        values = {"groups": environment.groups, "policy": POLICY, "nonce": directory.name, "recipe": recipe}
        job = spec(4, plan=small_plan(4), **values)
        ledger = JobLedger(open_store(f"s3://{BUCKET}/"))
        stack.callback(clean, ledger)
        yield Lab(stack, variables, directory, environment, job, ledger, Fleet.of(environment))


def clean(ledger: JobLedger) -> None:
    for key in ledger.store.list("jobs/"):
        ledger.store.delete(key)


def begin(lab: Lab, **changes: Any) -> subprocess.Popen[bytes]:
    """A job whose nodes train."""
    lab.job = lab.job.model_copy(update=changes)
    lab.ledger.claim(lab.job)
    lab.fleet.scale_up(lab.job.plan.nodes, lab.job.spares)
    coordinator = next(member for member in lab.fleet.members() if member.role is Role.COORDINATOR)
    process = lab.start_controller(coordinator.instance_id)
    lab.join()
    lab.reach(3)
    return process
