from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Before aws_cdk is imported. The validator costs tens of seconds a stack, cfn-lint checks the same in tests/nag.
os.environ["CDK_VALIDATION"] = "false"
os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "20")

import pytest

from tests.bug_reports.page import EVIDENCE_DIRECTORY


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "reported(*links, met=…, does=…): a public bug report")


@pytest.fixture
def evidence(request: pytest.FixtureRequest) -> Any:
    """Takes what has happened, for the page; a report without any would be a claim."""
    left: list[str] = []

    def leave(what: object) -> None:
        left.append(what if isinstance(what, str) else json.dumps(what))

    yield leave
    marker = request.node.get_closest_marker("reported")
    assert marker is not None
    assert left
    directory = os.environ.get(EVIDENCE_DIRECTORY)
    if directory:
        name = request.node.name
        order = [item.name for item in request.session.items].index(name)
        document = {"place": order, "links": marker.args, **marker.kwargs, "evidence": left, "test": name}
        Path(directory, f"{order:03d}.json").write_text(json.dumps(document))


Leave = Callable[[object], None]
