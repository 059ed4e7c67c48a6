"""What the planner's tests start from: a valid environment as plain data, changed by dotted keys."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from trainfabric_plan.environment import validate_environment
from trainfabric_plan.errors import InvalidInput

Data = dict[Any, Any]
ABSENT = object()

_VALID: Data = {
    "name": "demo",
    "region": "us-east-1",
    "availability_zone": "us-east-1a",
    "fleet": {"instance_type": "p5.48xlarge", "nodes": 4},
    "training": {"recipe": "tiny_cpu", "ranks_per_node": 2},
}


@pytest.fixture
def absent() -> object:
    """Given as a value, takes the key away."""
    return ABSENT


@pytest.fixture
def environment_data() -> Callable[..., Data]:
    """The valid environment with some values changed: `environment_data({"fleet.nodes": 0})`."""

    def build(changes: dict[str, Any] | None = None) -> Data:
        data = deepcopy(_VALID)
        for path, value in (changes or {}).items():
            *parents, last = path.split(".")
            inner = data
            for key in parents:
                inner = inner.setdefault(key, {})
            inner.pop(last, None)
            if value is not ABSENT:
                inner[last] = value
        return data

    return build


@pytest.fixture
def mistakes(environment_data: Callable[..., Data]) -> Callable[[dict[str, Any]], list[str]]:
    """The messages about the valid environment with these changes, one a mistake, read from a file `demo.yaml`."""

    def messages(changes: dict[str, Any]) -> list[str]:
        with pytest.raises(InvalidInput) as caught:
            validate_environment(environment_data(changes), "demo.yaml")
        return str(caught.value).splitlines()

    return messages
