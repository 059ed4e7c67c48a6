"""The nodes of a deployed environment: none unless a job runs."""

from __future__ import annotations

import contextlib
from typing import Any

from botocore.exceptions import ClientError
from pydantic import ValidationError

from trainfabric_node.jobs.aws import aws_client, aws_errors, error_code
from trainfabric_plan.contract import environment_parameter
from trainfabric_plan.deployed import DeployedEnvironment
from trainfabric_plan.errors import NotFound, TrainfabricError, mistake


def read_deployed(environment: str, region: str | None) -> DeployedEnvironment:
    """What the stacks wrote about an environment.

    Raises:
        NotFound: If no environment of that name is deployed in the region.
        InvalidInput: If another version of trainfabric deployed it.
        Unreachable: If AWS does not answer, or not to these credentials.
    """
    where, name = f"environment {environment}", environment_parameter(environment)
    client = aws_client("ssm", region, where)
    with aws_errors(where, "ssm"):
        try:
            value = client.get_parameter(Name=name)["Parameter"]["Value"]
        except ClientError as error:
            if error_code(error) != "ParameterNotFound":
                raise
            remedy = "deploy it first, or correct its name or region"
            got = f"no parameter {name} in {client.meta.region_name}"
            raise NotFound(f"{where}: environment must be a deployed one, got {got}; {remedy}") from None
    try:
        return DeployedEnvironment.model_validate_json(value)
    except ValidationError as error:
        problem = error.errors()[0]
        got = f"{'.'.join(map(str, problem['loc']))}: {problem['msg'].lower()}"
        raise mistake(where, name, "as this version writes it", got, "deploy the environment again") from None


class Fleet:
    """The two Auto Scaling groups of an environment."""

    def __init__(self, deployed: DeployedEnvironment) -> None:
        self._deployed = deployed
        self._where = f"environment {deployed.name}"
        self._client: Any = aws_client("autoscaling", deployed.region, self._where)

    def scale_up(self, nodes: int) -> None:
        """Asks for one coordinator and the workers beside it; after an error, no node is asked for any more.

        Raises:
            InvalidInput: If the fleet has no workers and more than one node is asked for.
            NotFound: If a group does not exist.
            Unreachable: If AWS does not answer or refuses.
        """
        workers = self._deployed.worker_group
        if nodes > 1 and workers is None:
            rule = "1 for a fleet without workers"
            raise mistake(self._where, "nodes", rule, nodes, "deploy the environment with more nodes")
        try:
            self._resize(self._deployed.coordinator_group, 1)
            if workers is not None:
                self._resize(workers, nodes - 1)
        except TrainfabricError:
            with contextlib.suppress(TrainfabricError):
                self.scale_down()
            raise

    def scale_down(self) -> None:
        """Asks for no node any more in either group, workers first; raises as `scale_up` does, when both are tried."""
        groups = [self._deployed.worker_group, self._deployed.coordinator_group]
        errors = [error for group in groups if group and (error := self._empty(group))]
        if errors:
            raise errors[0]

    def _empty(self, group: str) -> TrainfabricError | None:
        try:
            self._resize(group, 0)
        except TrainfabricError as error:
            return error
        return None

    def _resize(self, group: str, nodes: int) -> None:
        with aws_errors(self._where, "autoscaling"):
            try:
                # a cooldown would refuse a stop that follows a start; nodes may only set this, so MaxSize bounds it
                self._client.set_desired_capacity(
                    AutoScalingGroupName=group, DesiredCapacity=nodes, HonorCooldown=False
                )
            except ClientError as error:
                if error_code(error) != "ValidationError" or "not found" not in str(error):
                    raise
                remedy = "deploy the environment again"
                raise NotFound(
                    f"{self._where}: Auto Scaling group must be an existing one, got {group}; {remedy}"
                ) from None
