"""The deployed environment that a command works with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from trainfabric_plan.environment.file import read_environment

if TYPE_CHECKING:
    from trainfabric_node.jobs import JobControl
    from trainfabric_plan.environment import Environment


def read_and_connect(file: Path) -> tuple[Environment, JobControl]:
    """The environment in a file and control of its jobs, at the endpoint and with the credentials that boto3 finds.

    Raises:
        TrainfabricError: If the file is wrong, nothing is deployed under its name, or AWS does not answer.
    """
    from trainfabric_node.jobs import connect  # boto3 takes a while to import

    environment = read_environment(file)
    return environment, connect(environment.name, environment.region)
