"""The demo's job: start, stop in the middle, start again from the newest committed checkpoint, finish."""

from __future__ import annotations

import json
import time
from typing import Any

from botocore.exceptions import ClientError

from sandbox.demo.commands import Commands, DemoFailed
from sandbox.demo.deployment import EmbeddedAws
from sandbox.demo.narrator import StepBar
from sandbox.processes import Child
from trainfabric_plan.contract import EVENTS_FILE, OUTCOME_FILE, STEPS_FILE, run_prefix
from trainfabric_plan.deployed import DeployedEnvironment

POLL_S = 1.0
TIMEOUT_S = 240.0


class DemoJob:
    """One job of the deployed environment, driven with the command line as a user would."""

    def __init__(
        self, commands: Commands, aws: EmbeddedAws, deployed: DeployedEnvironment, nodes: Child, arguments: list[str]
    ) -> None:
        self.name = "demo"
        self._commands, self._nodes, self._arguments = commands, nodes, arguments
        self._s3, self._bucket = aws.client("s3"), deployed.checkpoint_bucket

    def start(self, *, resume: bool) -> None:
        """`trainfabric job start`, with `--resume` the second time."""
        more = ["--resume"] if resume else []
        self._commands.trainfabric(
            "job-resume" if resume else "job-start", "job", "start", self.name, *self._arguments, *more
        )

    def stop(self) -> None:
        """`trainfabric job stop --wait`: all ranks save at the same step, the checkpoint is committed, nodes leave."""
        self._commands.trainfabric("job-stop", "job", "stop", *self._arguments, "--wait")

    def status(self) -> dict[str, Any]:
        """`trainfabric job status`."""
        found: dict[str, Any] = self._commands.trainfabric("job-status", "job", "status", self.name, *self._arguments)
        return found

    def wait_for_step(self, run: int, step: int, bar: StepBar) -> None:
        """Follow the uploaded `steps.jsonl` of a run until it reaches `step`."""
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            lines = self.lines(run, STEPS_FILE)
            if lines:
                bar.show(lines[-1]["step"], lines[-1]["loss"])
                if lines[-1]["step"] >= step:
                    return
            self._fail_if_node_failed(run)
            if time.monotonic() > deadline:
                raise DemoFailed(f"run {run}: step {step} must come within {TIMEOUT_S:g} s, got {lines[-1:] or 'none'}")
            time.sleep(POLL_S)

    def wait_until_finished(self, run: int) -> dict[str, Any]:
        """Wait until the coordinator has concluded the run and scaled the fleet to zero; returns the job's status."""
        deadline = time.monotonic() + TIMEOUT_S
        while self._text(run, OUTCOME_FILE) is None:
            self._fail_if_node_failed(run)
            if time.monotonic() > deadline:
                raise DemoFailed(f"run {run}: its end must come within {TIMEOUT_S:g} s, got none")
            time.sleep(POLL_S)
        status = self.status()
        if status["state"] != "done":
            raise DemoFailed(f"run {run} must be done, got: {json.dumps(status, indent=2)}")
        return status

    def lines(self, run: int, file: str) -> list[dict[str, Any]]:
        """Lines of a JSONL file that the coordinator has uploaded, none if it has not yet."""
        return [json.loads(line) for line in (self._text(run, file) or "").splitlines() if line.strip()]

    def _text(self, run: int, file: str) -> str | None:
        try:
            found = self._s3.get_object(Bucket=self._bucket, Key=f"{run_prefix(self.name, run)}{file}")
        except ClientError as error:
            if error.response["Error"]["Code"] == "NoSuchKey":
                return None
            raise
        text: str = found["Body"].read().decode()
        return text

    def telemetry(self, runs: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Steps and events of all runs, in order."""
        steps = [line for run in range(1, runs + 1) for line in self.lines(run, STEPS_FILE)]
        events = [line for run in range(1, runs + 1) for line in self.lines(run, EVENTS_FILE)]
        return steps, events

    def _fail_if_node_failed(self, run: int) -> None:
        if not self._nodes.running:
            raise DemoFailed(f"the local nodes ended; {self._nodes.log} ends with:\n{self._nodes.last_lines()}")
        prefix = f"{run_prefix(self.name, run)}nodes/"
        for entry in self._s3.list_objects_v2(Bucket=self._bucket, Prefix=prefix).get("Contents", []):
            node = json.loads(self._s3.get_object(Bucket=self._bucket, Key=entry["Key"])["Body"].read())
            if node["state"] == "failed":
                raise DemoFailed(f"run {run}: a node failed: {json.dumps(node, indent=2)}")
