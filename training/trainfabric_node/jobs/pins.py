"""What a run's nodes are launched with, held fast while it runs: launch template versions, images, the training asset.

A deploy makes new versions of the launch templates and leaves their default alone, and the groups launch the default.
A run makes a version of its own of each, whose image is an id, and makes it the default: nodes that come later are
those the run was started with, and the next run takes up what was deployed meanwhile.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from botocore.exceptions import ClientError

from trainfabric_node.jobs.aws import aws_client, aws_errors, error_code
from trainfabric_node.jobs.records import GroupPins, JobPins
from trainfabric_node.store import ObjectMissing, Store, open_store
from trainfabric_plan.contract import code_key
from trainfabric_plan.deployed import DeployedEnvironment
from trainfabric_plan.errors import NotFound, TrainfabricError, mistake

_MADE_BY_A_JOB = "trainfabric job"
_FROM_PARAMETER = "resolve:ssm:"
_MOST_DELETED = 200
"""Versions in one request (Amazon EC2 API reference, DeleteLaunchTemplateVersions)."""

_Version = dict[str, Any]
Read = TypeVar("Read")


class Pinning:
    """Makes the launch template versions of a run, takes them into use, and removes them again.

    All methods raise `Unreachable` if AWS does not answer or refuses, unless they say otherwise.
    """

    def __init__(self, deployed: DeployedEnvironment) -> None:
        self._deployed = deployed
        self._where = f"environment {deployed.name}"

    def make(self, job: str, run: int) -> JobPins | None:
        """Versions for a run from the newest deployed ones; nothing uses them yet. All are made, or none.

        Returns:
            What the run is held to; `None` if the environment names no launch templates.

        Raises:
            NotFound: If a launch template or the parameter that names its image does not exist.
            InvalidInput: If a launch template names no image.
        """
        templates = {group.name: group.launch_template for group in self._deployed.groups if group.launch_template}
        if not templates:
            return None
        sources = {group: self._newest_deployed(template) for group, template in templates.items()}
        images = {group: self._image(source) for group, source in sources.items()}
        made: dict[str, GroupPins] = {}
        try:
            for group, source in sources.items():
                made[group] = self._make(source, images[group], f"{_MADE_BY_A_JOB} {job} run {run}")
        except TrainfabricError:
            self._delete(made)
            raise
        return JobPins(groups=made, asset_key=self._deployed.asset_key)

    def use(self, pins: JobPins) -> None:
        """Lets all groups launch a run's versions, and removes those of earlier runs."""
        for group, pinned in pins.groups.items():
            self._launch(group, pinned.launch_template_id, pinned.launch_template_version)
        for pinned in pins.groups.values():
            self._forget_earlier(pinned)

    def discard(self, pins: JobPins) -> None:
        """Undoes `make`, as far as AWS lets it: versions that are left over do no harm."""
        self._delete(pins.groups)

    def restore(self, pins: JobPins) -> None:
        """Undoes `make` and `use`, as far as AWS lets it: the groups launch what is deployed."""
        for group, pinned in pins.groups.items():
            with contextlib.suppress(TrainfabricError):
                deployed = self._newest_deployed(pinned.launch_template_id)
                self._launch(group, pinned.launch_template_id, _number(deployed))
        self.discard(pins)

    def _newest_deployed(self, template_id: str) -> _Version:
        deployed = [version for version in self._versions(template_id) if not _by_a_job(version)]
        if not deployed:
            remedy = "deploy the environment again"
            raise NotFound(
                f"{self._where}: launch template {template_id} must have a deployed version, got none; {remedy}"
            )
        return max(deployed, key=lambda version: int(version["VersionNumber"]))

    def _versions(self, template_id: str) -> list[_Version]:
        pages = self._ec2.get_paginator("describe_launch_template_versions").paginate(
            LaunchTemplateId=template_id, PaginationConfig={"PageSize": 200}
        )
        with self._asking("ec2"):
            try:
                return [version for page in pages for version in page["LaunchTemplateVersions"]]
            except ClientError as error:
                if "NotFound" not in error_code(error):
                    raise
                remedy = "deploy the environment again"
                raise NotFound(
                    f"{self._where}: launch template must be an existing one, got {template_id}; {remedy}"
                ) from None

    def _image(self, version: _Version) -> str:
        """The id of an image, as EC2 would resolve it now."""
        named = version["LaunchTemplateData"].get("ImageId", "")
        if not named.startswith(_FROM_PARAMETER):
            if not named:
                where, remedy = version["LaunchTemplateId"], "deploy the environment again"
                raise mistake(self._where, f"image of launch template {where}", "given", "none", remedy)
            return str(named)
        name = named.removeprefix(_FROM_PARAMETER)
        with self._asking("ssm"):
            try:
                return str(self._ssm.get_parameter(Name=name)["Parameter"]["Value"])
            except ClientError as error:
                if error_code(error) not in ("ParameterNotFound", "ParameterVersionNotFound"):
                    raise
                remedy = "correct the image, and deploy the environment again"
                raise NotFound(
                    f"{self._where}: parameter of the image must be an existing one, got {name}; {remedy}"
                ) from None

    def _make(self, source: _Version, image_id: str, description: str) -> GroupPins:
        with self._asking("ec2"):
            made = self._ec2.create_launch_template_version(
                LaunchTemplateId=source["LaunchTemplateId"],
                SourceVersion=str(source["VersionNumber"]),
                VersionDescription=description,
                LaunchTemplateData={"ImageId": image_id},
            )["LaunchTemplateVersion"]
        return GroupPins(
            launch_template_id=source["LaunchTemplateId"],
            launch_template_version=str(made["VersionNumber"]),
            image_id=image_id,
            capacity_reservation=_reservation(source),
        )

    def _launch(self, group: str, template_id: str, version: str) -> None:
        with self._asking("ec2"):
            self._ec2.modify_launch_template(LaunchTemplateId=template_id, DefaultVersion=version)
        with self._asking("autoscaling"):
            self._autoscaling.update_auto_scaling_group(
                AutoScalingGroupName=group,
                LaunchTemplate={"LaunchTemplateId": template_id, "Version": version},
            )

    def _forget_earlier(self, pinned: GroupPins) -> None:
        """Versions that are left over do no harm, so that a run is not refused because of them."""
        with contextlib.suppress(TrainfabricError):
            made = [version for version in self._versions(pinned.launch_template_id) if _by_a_job(version)]
            earlier = [version for version in map(_number, made) if version != pinned.launch_template_version]
            self._delete_versions(pinned.launch_template_id, earlier)

    def _delete(self, made: dict[str, GroupPins]) -> None:
        for pinned in made.values():
            with contextlib.suppress(TrainfabricError):
                self._delete_versions(pinned.launch_template_id, [pinned.launch_template_version])

    def _delete_versions(self, template_id: str, versions: list[str]) -> None:
        for start in range(0, len(versions), _MOST_DELETED):
            with self._asking("ec2"):
                self._ec2.delete_launch_template_versions(
                    LaunchTemplateId=template_id, Versions=versions[start : start + _MOST_DELETED]
                )

    @functools.cached_property
    def _ec2(self) -> Any:
        return self._client("ec2")

    @functools.cached_property
    def _ssm(self) -> Any:
        return self._client("ssm")

    @functools.cached_property
    def _autoscaling(self) -> Any:
        return self._client("autoscaling")

    def _client(self, service: str) -> Any:
        return aws_client(service, self._deployed.region, self._where)

    @contextlib.contextmanager
    def _asking(self, service: str) -> Iterator[None]:
        with aws_errors(self._where, service):
            yield


class AssetKeeper:
    """Keeps the training asset where a run's nodes find it when a deploy has replaced it."""

    def __init__(self, deployed: DeployedEnvironment, checkpoints: Store) -> None:
        self._deployed = deployed
        self._checkpoints = checkpoints

    def check(self) -> None:
        """Raises `NotFound` if the asset is neither kept already nor where the environment says."""
        if self._deployed.asset_key and not self._kept():
            self._read(self._source().size)

    def keep(self) -> None:
        """Copies the asset below `contract.code_key`, unless it is there; raises as `check` does."""
        if self._deployed.asset_key and not self._kept():
            self._checkpoints.put(code_key(self._deployed.asset_key), self._read(self._source().get))

    def _kept(self) -> bool:
        try:
            return self._checkpoints.size(code_key(self._deployed.asset_key)) > 0
        except ObjectMissing:
            return False

    def _source(self) -> Store:
        return open_store(f"s3://{self._deployed.asset_bucket}/")

    def _read(self, read: Callable[[str], Read]) -> Read:
        key = self._deployed.asset_key
        try:
            return read(key)
        except ObjectMissing:
            where = f"environment {self._deployed.name}"
            got = f"none at s3://{self._deployed.asset_bucket}/{key}"
            raise NotFound(
                f"{where}: training asset must be an existing object, got {got}; deploy the environment again"
            ) from None


def _by_a_job(version: _Version) -> bool:
    return str(version.get("VersionDescription") or "").startswith(_MADE_BY_A_JOB)


def _reservation(version: _Version) -> str | None:
    specification = version["LaunchTemplateData"].get("CapacityReservationSpecification", {})
    named = specification.get("CapacityReservationTarget", {}).get("CapacityReservationId")
    return str(named) if named else None


def _number(version: _Version) -> str:
    return str(version["VersionNumber"])
