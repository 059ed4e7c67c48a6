"""Running the commands a user would run, with their output in log files."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sandbox.processes import Child, Children


class DemoFailed(Exception):
    """A part of the demo did not do what it must; the text shows the end of its log."""


@dataclass(frozen=True, kw_only=True)
class Commands:
    """Starts commands in the checkout with the sandbox's environment variables.

    Attributes:
        root: The checkout.
        logs: Directory of the log files.
        children: Stops what is running when the demo ends.
        environment: Environment variables of every command.
    """

    root: Path
    logs: Path
    children: Children
    environment: dict[str, str] = field(default_factory=dict)

    def run(self, name: str, command: Sequence[str], more: Mapping[str, str] | None = None) -> str:
        """Run to the end and return the output.

        Raises:
            DemoFailed: If it leaves with another status than 0.
        """
        log = self.logs / f"{name}.log"
        log.unlink(missing_ok=True)
        child = self.start(name, command, more)
        child.process.wait()
        status = child.exit_status
        self.children.stop(child)
        if status:
            raise DemoFailed(f"{name} ended with exit status {status}; {log} ends with:\n{child.last_lines()}")
        return log.read_text(errors="replace")

    def start(self, name: str, command: Sequence[str], more: Mapping[str, str] | None = None) -> Child:
        """Start and go on."""
        variables = {**self.environment, **(more or {})}
        return self.children.start(
            name, command, log=self.logs / f"{name}.log", environment=variables, directory=self.root, grace_s=20
        )

    def cdk(self, name: str, *arguments: str) -> str:
        """Run the pinned CDK command line."""
        return self.run(name, [str(self.root / "node_modules/.bin/cdk"), *arguments])

    def trainfabric(self, name: str, *arguments: str) -> Any:
        """Run `trainfabric … --json` and return what it printed."""
        text = self.run(name, [str(Path(sys.executable).with_name("trainfabric")), *arguments, "--json"])
        return json.loads(text)

    def python(self, name: str, *arguments: str) -> str:
        """Run a module with this Python."""
        return self.run(name, [sys.executable, *arguments])
