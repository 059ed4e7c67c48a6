"""The nodes of a deployed environment: none unless a job runs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from trainfabric_node.jobs.aws import aws_client, aws_errors, error_code
from trainfabric_node.jobs.records import JobSpec
from trainfabric_plan.contract import Role, environment_parameter
from trainfabric_plan.deployed import DeployedEnvironment, NodeGroup, group_sizes, parse_deployed
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
    return parse_deployed(value, environment)


@dataclass(frozen=True, kw_only=True)
class Member:
    """A node as its Auto Scaling group has it."""

    instance_id: str
    group: str
    """Name of it."""
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
    """The Auto Scaling groups of an environment: the coordinator's, and any number of workers'.

    All methods raise `NotFound` if a group does not exist, and `Unreachable` if AWS does not answer or refuses.

    Args:
        environment: Its name.
        region: Where its groups are.
        groups: The coordinator's first; a fleet of one node has no other.
    """

    def __init__(self, environment: str, region: str, groups: Sequence[NodeGroup]) -> None:
        self._groups = tuple(groups)
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
        if nodes + spares > 1 and not self._groups[1:]:
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
        for name, size in group_sizes(self._groups, nodes, spares).items():
            self._resize(name, size)

    def members(self) -> list[Member]:
        """The nodes that the groups have now, coordinator first; those on their way in and out as well."""
        return [member for group in self._groups for member in self._of(group)]

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
        """Asks for no node any more in any group, workers first; raises what it met first when all are tried.

        Args:
            but: A member that stays, until it gives itself back: who releases the others may have more to do.
        """
        errors = [error for group in reversed(self._groups) if (error := self._released(group, but))]
        if errors:
            raise errors[0]

    def is_empty(self) -> bool:
        """Whether there is no node, none is going, and none is asked for; also where the groups are gone."""
        found = [self._group(group.name) for group in self._groups]
        return not any(group["Instances"] or group["DesiredCapacity"] for group in found if group)

    def _released(self, group: NodeGroup, but: str | None) -> TrainfabricError | None:
        try:
            stays = [one for one in self._of(group) if one.instance_id == but and not one.leaving]
            self._set_protection(stays, True)
            self._unprotect(group, but)
            self._resize(group.name, len(stays))
            for kept in self._of(group):
                if kept.protected and kept.instance_id != but:  # by somebody between the requests
                    self._terminate(kept.instance_id, decrement=False)
        except TrainfabricError as error:
            return error
        return None

    def _unprotect(self, group: NodeGroup, but: str | None) -> None:
        """As far as possible: a node that cannot be unprotected is terminated by its id."""
        with contextlib.suppress(Unreachable):
            self._set_protection([one for one in self._of(group) if one.protected and one.instance_id != but], False)

    def _of(self, group: NodeGroup) -> list[Member]:
        found = self._group(group.name)
        if found is None:
            raise self._missing(group.name)
        return [_member(instance, group) for instance in found["Instances"]]

    def _group(self, group: str) -> dict[str, Any] | None:
        with self._asking():
            found = self._client.describe_auto_scaling_groups(AutoScalingGroupNames=[group])["AutoScalingGroups"]
        return found[0] if found else None

    def _set_protection(self, members: Iterable[Member], protected: bool) -> None:
        by_group: dict[str, list[str]] = {}
        for member in members:
            if member.life_cycle_state == IN_SERVICE:  # AWS refuses the whole request for any other
                by_group.setdefault(member.group, []).append(member.instance_id)
        for group, ids in by_group.items():
            for start in range(0, len(ids), _MOST_PROTECTED):
                with self._asking():
                    self._client.set_instance_protection(
                        AutoScalingGroupName=group,
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


def _member(instance: dict[str, Any], group: NodeGroup) -> Member:
    template = instance.get("LaunchTemplate") or {}
    return Member(
        instance_id=instance["InstanceId"],
        group=group.name,
        role=group.role,
        life_cycle_state=instance["LifecycleState"],
        launch_template_version=str(template["Version"]) if template.get("Version") else None,
        protected=instance["ProtectedFromScaleIn"],
    )
