"""The demo's job: start, take a spot node away in the middle, and watch it go on to its end."""

from __future__ import annotations

import json
import time
from typing import Any

from botocore.exceptions import ClientError

from sandbox.demo.commands import DemoFailed
from sandbox.demo.narrator import StepBar
from sandbox.demo.session import Session
from sandbox.processes import Child
from trainfabric_plan.contract import OUTCOME_FILE, STEPS_FILE, run_prefix

POLL_S = 0.5
TIMEOUT_S = 240.0
NOTICE_FILE = "spot-notice"
RUN = 1


class DemoJob:
    """One job of a deployed environment, driven with the command line as a user would.

    Args:
        name: Of the job.
        session: The environment.
        nodes: The process that runs the local nodes.
    """

    def __init__(self, name: str, session: Session, nodes: Child) -> None:
        self.name = name
        self._session, self._nodes = session, nodes
        self._arguments = ["--environment", str(session.environment_file)]
        self._s3, self._bucket = session.aws.client("s3"), session.deployed.checkpoint_bucket
        self._prefix = run_prefix(name, RUN)

    def start(self, *more: str) -> None:
        """`trainfabric job start`."""
        self._session.commands.trainfabric("job-start", "job", "start", self.name, *self._arguments, *more)

    def status(self) -> dict[str, Any]:
        """`trainfabric job status`."""
        arguments = ("job", "status", self.name, *self._arguments)
        found: dict[str, Any] = self._session.commands.trainfabric("job-status", *arguments)
        return found

    def story(self) -> list[str]:
        """What happened, in words, as `trainfabric job status` tells it."""
        return [str(line) for line in self.status()["story"]]

    def interrupt_a_worker(self) -> str:
        """Give one spot node the interruption notice, as EC2 does: in its own instance metadata; returns its id."""
        group = self._session.deployed.worker_groups[-1].name
        autoscaling = self._session.aws.client("autoscaling")
        found = autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[group])["AutoScalingGroups"][0]
        node = sorted(str(instance["InstanceId"]) for instance in found["Instances"])[-1]
        (self._session.nodes / node / NOTICE_FILE).touch()
        return node

    def wait_for_step(self, step: int, bar: StepBar) -> None:
        """Follow the uploaded steps until they reach `step`."""
        deadline = time.monotonic() + TIMEOUT_S
        while not self._has_come_to(step, bar):
            self._fail_if_over()
            if time.monotonic() > deadline:
                raise DemoFailed(f"step {step} must come within {TIMEOUT_S:g} s, got {self.steps()[-1:] or 'none'}")
            time.sleep(POLL_S)

    def wait_until_finished(self, steps: int, bar: StepBar) -> None:
        """Wait until the controller has concluded the run and the fleet is at zero."""
        deadline = time.monotonic() + TIMEOUT_S
        while self._text(OUTCOME_FILE) is None:
            self._has_come_to(steps, bar)
            self._fail_if_nodes_ended()
            if time.monotonic() > deadline:
                raise DemoFailed(f"the end must come within {TIMEOUT_S:g} s, got {self.steps()[-1:] or 'no step'}")
            time.sleep(POLL_S)
        self._has_come_to(steps, bar)
        status = self.status()
        if status["state"] != "done":
            raise DemoFailed(f"the job must be done, got: {json.dumps(status, indent=2)}")

    def steps_of_all_epochs(self) -> list[dict[str, Any]]:
        """Every step that any epoch has trained, with its `epoch`."""
        return [{"epoch": epoch, **line} for epoch, key in self._step_files() for line in _lines(self._body(key) or "")]

    def steps(self) -> list[dict[str, Any]]:
        """The steps that the training consists of: an epoch replaces what earlier ones did from its first step on."""
        merged: list[dict[str, Any]] = []
        for _, key in self._step_files():
            lines = _lines(self._body(key) or "")
            if lines:
                merged = [line for line in merged if line["step"] < lines[0]["step"]] + lines
        return merged

    def events(self) -> list[dict[str, Any]]:
        """Everything that happened, in order."""
        return list(self.status()["events"])

    def _step_files(self) -> list[tuple[int, str]]:
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=f"{self._prefix}epochs/")
        keys = [str(entry["Key"]) for page in pages for entry in page.get("Contents", [])]
        return sorted((int(key.split("/")[-2]), key) for key in keys if key.endswith(f"/{STEPS_FILE}"))

    def _has_come_to(self, step: int, bar: StepBar) -> bool:
        lines = self.steps()
        if lines:
            bar.show(lines[-1]["step"], lines[-1]["loss"])
        return bool(lines) and lines[-1]["step"] >= step

    def _text(self, name: str) -> str | None:
        return self._body(f"{self._prefix}{name}")

    def _body(self, key: str) -> str | None:
        try:
            found = self._s3.get_object(Bucket=self._bucket, Key=key)
        except ClientError as error:
            if error.response["Error"]["Code"] == "NoSuchKey":
                return None
            raise
        text: str = found["Body"].read().decode()
        return text

    def _fail_if_over(self) -> None:
        self._fail_if_nodes_ended()
        outcome = self._text(OUTCOME_FILE)
        if outcome is not None:
            raise DemoFailed(f"the job must go on, got its end: {outcome}")

    def _fail_if_nodes_ended(self) -> None:
        if not self._nodes.running:
            raise DemoFailed(f"the local nodes ended; {self._nodes.log} ends with:\n{self._nodes.last_lines()}")


def _lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines() if line.strip()]
