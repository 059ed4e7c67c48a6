"""The command in this process, as a user would call it, and an AWS that lives in memory."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from trainfabric_cli.main import app

ENVIRONMENT = """\
name: demo
region: us-east-1
availability_zone: us-east-1a
fleet:
  instance_type: p5.48xlarge
  nodes: 4
training:
  recipe: tiny_cpu
  ranks_per_node: 2
  layout: {data: 2, pipeline: 2, tensor: 2}
"""


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as the one JSON document that it must be."""
        return json.loads(self.out)


Trainfabric = Callable[..., Ended]


@pytest.fixture
def trainfabric(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Trainfabric:
    """Runs `trainfabric …` in an empty working directory; an exception that is no exit is a failure."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "132")
    runner = CliRunner()

    def run(*arguments: str) -> Ended:
        result = runner.invoke(app, list(arguments), catch_exceptions=False)
        return Ended(result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture
def environment_file(tmp_path: Path) -> Callable[..., str]:
    """Writes `demo.yaml` into the working directory: a valid environment with texts replaced."""

    def write(replace: dict[str, str] | None = None) -> str:
        text = ENVIRONMENT
        for old, new in (replace or {}).items():
            assert old in text
            text = text.replace(old, new)
        (tmp_path / "demo.yaml").write_text(text)
        return "demo.yaml"

    return write


@pytest.fixture
def no_aws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither credentials nor an endpoint: variables, files and instance metadata are all absent."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "no-config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "no-credentials"))


@pytest.fixture
def aws(no_aws: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty AWS in memory."""
    from moto import mock_aws

    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        yield
