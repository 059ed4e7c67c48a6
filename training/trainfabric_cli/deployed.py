"""The deployed environment that a command works with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from trainfabric_plan.environment.file import read_environment
from trainfabric_plan.errors import NotFound

if TYPE_CHECKING:
    from trainfabric_node.jobs import JobControl
    from trainfabric_plan.environment import Environment


def read_and_connect(file: Path) -> tuple[Environment, JobControl]:
    """The environment in a file and control of its jobs, at the endpoint and with the credentials that boto3 finds.

    Raises:
        TrainfabricError: If the file is wrong, nothing is deployed under its name, or AWS does not answer.
    """
    environment = read_environment(file)
    with with_node_package():
        from trainfabric_node.jobs import connect
    return environment, connect(environment.name, environment.region)


@contextmanager
def with_node_package() -> Iterator[None]:
    """Around imports from `trainfabric_node`, which needs packages that the plain installation does not bring."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise NotFound(
            f"trainfabric: package {error.name} must be installed for this command, got none; "
            "pip install 'trainfabric[node]'"
        ) from None
