"""The nodes of a deployed environment: none unless a job runs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError
from pydantic import ValidationError

from trainfabric_node.jobs.aws import aws_client, aws_errors, error_code
from trainfabric_node.jobs.records import JobSpec
from trainfabric_plan.contract import Role, environment_parameter
from trainfabric_plan.deployed import DeployedEnvironment
from trainfabric_plan.errors import NotFound, TrainfabricError, Unreachable, mistake

IN_SERVICE = "InService"
_NOT_FOUND = "not found"
_AT_LEAST = "min size"
"""AWS refuses to ask for fewer nodes than that, as after a release: "Terminating instance without replacement will
violate group's min size constraint"."""

_MOST_PROTECTED = 50
"""Instances in one request (Amazon EC2 Auto Scaling API reference, SetInstanceProtection)."""


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


@dataclass(frozen=True, kw_only=True)
class Member:
    """A node as its Auto Scaling group has it."""

    instance_id: str
    role: Role
    life_cycle_state: str
    """AWS's word: `Pending`, `InService`, `Terminating` and others."""
    launch_template_version: str | None
    """What it was launched with; `None` in a group without a launch template."""
    protected: bool
    """From scale-in."""

    @property
    def leaving(self) -> bool:
        """Whether it is going, or gone."""
        return self.life_cycle_state.startswith(("Terminat", "Detach"))


class Fleet:
    """The two Auto Scaling groups of an environment.

    All methods raise `NotFound` if a group does not exist, and `Unreachable` if AWS does not answer or refuses.

    Args:
        environment: Its name.
        region: Where its groups are.
        groups: Their names; a fleet of one node has no workers.
    """

    def __init__(self, environment: str, region: str, groups: Mapping[Role, str]) -> None:
        self._groups = groups
        self._where = f"environment {environment}"
        self._client: Any = aws_client("autoscaling", region, self._where)

    @classmethod
    def of(cls, deployed: DeployedEnvironment) -> Fleet:
        """The nodes of an environment as it is deployed."""
        return cls(deployed.name, deployed.region, deployed.groups)

    @classmethod
    def of_job(cls, spec: JobSpec, region: str) -> Fleet:
        """The nodes that a run was started on: what other versions deploy meanwhile must not keep it from releasing."""
        return cls(spec.environment, region, spec.groups)

    def scale_up(self, nodes: int, spares: int = 0) -> None:
        """Asks for one coordinator and the workers beside it; after an error, no node is asked for any more.

        Args:
            nodes: How many nodes train.
            spares: Workers beyond them.

        Raises:
            InvalidInput: If the fleet has no workers and any is asked for.
        """
        workers = self._groups.get(Role.WORKER)
        if nodes + spares > 1 and workers is None:
            rule = "1 for a fleet without workers"
            raise mistake(self._where, "nodes", rule, nodes + spares, "deploy the environment with more nodes")
        try:
            self.restore(nodes, spares)
        except TrainfabricError:
            with contextlib.suppress(TrainfabricError):
                self.release()
            raise

    def restore(self, nodes: int, spares: int = 0) -> None:
        """Asks for as many nodes as a running job was started with; after an error, those that are there stay."""
        self._resize(self._groups[Role.COORDINATOR], 1)
        if Role.WORKER in self._groups:
            self._resize(self._groups[Role.WORKER], nodes - 1 + spares)

    def members(self) -> list[Member]:
        """The nodes that the groups have now, coordinator first; those on their way in and out as well."""
        return [member for role in Role for member in self._of(role)]

    def protect(self, instance_ids: Iterable[str]) -> None:
        """Keeps members from being chosen when a group shrinks; those that are not in service are left out."""
        wanted = set(instance_ids)
        self._set_protection([one for one in self.members() if one.instance_id in wanted and not one.protected], True)

    def replace(self, instance_id: str) -> bool:
        """Terminates a member by its id, so that its group launches another; `False` if it is gone already."""
        return self._terminate(instance_id, decrement=False)

    def give_back(self, instance_id: str) -> bool:
        """Terminates a member by its id, and asks for one node less; `False` if it is gone already."""
        return self._terminate(instance_id, decrement=True)

    def release(self, but: str | None = None) -> None:
        """Asks for no node any more in either group, workers first; raises what it met when both are tried.

        Args:
            but: A member that stays, until it gives itself back: who releases the others may have more to do.
        """
        errors = [error for role in (Role.WORKER, Role.COORDINATOR) if (error := self._released(role, but))]
        if errors:
            raise errors[0]

    def is_empty(self) -> bool:
        """Whether there is no node, none is going, and none is asked for; also where the groups are gone."""
        found = [self._group(group) for group in self._groups.values()]
        return not any(group["Instances"] or group["DesiredCapacity"] for group in found if group)

    def _released(self, role: Role, but: str | None) -> TrainfabricError | None:
        group = self._groups.get(role)
        if group is None:
            return None
        try:
            stays = [one for one in self._of(role) if one.instance_id == but and not one.leaving]
            self._set_protection(stays, True)
            self._unprotect(role, but)
            self._resize(group, len(stays))
            for kept in self._of(role):
                if kept.protected and kept.instance_id != but:  # by somebody between the requests
                    self._terminate(kept.instance_id, decrement=False)
        except TrainfabricError as error:
            return error
        return None

    def _unprotect(self, role: Role, but: str | None) -> None:
        """As far as possible: a node that cannot be unprotected is terminated by its id."""
        with contextlib.suppress(Unreachable):
            self._set_protection([one for one in self._of(role) if one.protected and one.instance_id != but], False)

    def _of(self, role: Role) -> list[Member]:
        group = self._groups.get(role)
        if group is None:
            return []
        found = self._group(group)
        if found is None:
            raise self._missing(group)
        return [_member(instance, role) for instance in found["Instances"]]

    def _group(self, group: str) -> dict[str, Any] | None:
        with self._asking():
            found = self._client.describe_auto_scaling_groups(AutoScalingGroupNames=[group])["AutoScalingGroups"]
        return found[0] if found else None

    def _set_protection(self, members: Iterable[Member], protected: bool) -> None:
        by_role: dict[Role, list[str]] = {}
        for member in members:
            if member.life_cycle_state == IN_SERVICE:  # AWS refuses the whole request for any other
                by_role.setdefault(member.role, []).append(member.instance_id)
        for role, ids in by_role.items():
            for start in range(0, len(ids), _MOST_PROTECTED):
                with self._asking():
                    self._client.set_instance_protection(
                        AutoScalingGroupName=self._groups[role],
                        InstanceIds=ids[start : start + _MOST_PROTECTED],
                        ProtectedFromScaleIn=protected,
                    )

    def _terminate(self, instance_id: str, *, decrement: bool) -> bool:
        if all(one.leaving for one in self.members() if one.instance_id == instance_id):
            return False
        with self._asking():
            try:
                self._client.terminate_instance_in_auto_scaling_group(
                    InstanceId=instance_id, ShouldDecrementDesiredCapacity=decrement
                )
            except ClientError as error:
                if error_code(error) == "ValidationError" and _NOT_FOUND in str(error):
                    return False  # it went between the two requests
                if not (decrement and _AT_LEAST in str(error)):
                    raise
                return self._terminate(instance_id, decrement=False)  # no node is asked for already
        return True

    def _resize(self, group: str, nodes: int) -> None:
        with self._asking():
            try:
                # a cooldown would refuse a stop that follows a start; nodes may only set this, so MaxSize bounds it
                self._client.set_desired_capacity(
                    AutoScalingGroupName=group, DesiredCapacity=nodes, HonorCooldown=False
                )
            except ClientError as error:
                if error_code(error) != "ValidationError" or _NOT_FOUND not in str(error):
                    raise
                raise self._missing(group) from None

    def _missing(self, group: str) -> NotFound:
        remedy = "deploy the environment again"
        return NotFound(f"{self._where}: Auto Scaling group must be an existing one, got {group}; {remedy}")

    def _asking(self) -> contextlib.AbstractContextManager[None]:
        return aws_errors(self._where, "autoscaling")


def _member(instance: dict[str, Any], role: Role) -> Member:
    template = instance.get("LaunchTemplate") or {}
    return Member(
        instance_id=instance["InstanceId"],
        role=role,
        life_cycle_state=instance["LifecycleState"],
        launch_template_version=str(template["Version"]) if template.get("Version") else None,
        protected=instance["ProtectedFromScaleIn"],
    )
