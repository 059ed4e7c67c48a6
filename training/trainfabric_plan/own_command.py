"""Somebody else's training code: a command that every node runs once per epoch, in place of a recipe of ours."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field

from trainfabric_plan.model import Strict

IMAGE_RULE = "the name of a container image with its tag or digest, so that nodes that come later get the same"
"""What `is_pinned_image` asks."""

_COMPONENT = r"[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*"
_HOST = r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::\d+)?"
_IMAGE = re.compile(
    rf"(?:{_HOST}/)?{_COMPONENT}(?:/{_COMPONENT})*"
    r"(?::\w[\w.-]{0,127}(?:@sha256:[0-9a-f]{64})?|@sha256:[0-9a-f]{64})",
    re.ASCII,
)
"""The reference grammar of container images, sha256 digests only (github.com/distribution/reference, reference.go)."""

_ECR = re.compile(
    r"(?P<registry>\d{12}\.dkr\.ecr(?:-fips)?\.(?P<region>[a-z0-9-]+)\.amazonaws\.com(?:\.cn)?)/(?P<name>.+)"
)


class OwnCommand(Strict):
    """A command of somebody else, as it runs on every node of an epoch.

    Attributes:
        command: For a shell.
        image: Container image that it runs in; directly on the node if `None`.
        leave_by: How it is asked to save and to leave, see `environment.types.Training`.
    """

    command: str
    image: str | None = None
    leave_by: Literal["signal", "file"] = "signal"


class CodePin(Strict):
    """A code folder as it was uploaded: a run keeps it, whatever becomes of the folder.

    Attributes:
        key: In the checkpoint bucket.
        sha256: Of the archive.
    """

    key: str
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class EcrRepository(Strict):
    """The private repository of Amazon ECR that an image lies in."""

    registry: str
    """Host of the registry: account and region are in it."""
    account: str
    region: str
    name: str


def is_pinned_image(image: str) -> bool:
    """Whether this names a container image with a tag or digest."""
    return _IMAGE.fullmatch(image) is not None


def ecr_repository(image: str) -> EcrRepository | None:
    """The ECR repository of an image; `None` if it lies elsewhere.

    Registries are named ACCOUNT.dkr.ecr.REGION.amazonaws.com, in China with .cn (ECR user guide, "Private registry").
    """
    found = _ECR.fullmatch(image)
    if found is None:
        return None
    name = re.split(r"[:@]", found["name"])[0]
    return EcrRepository(registry=found["registry"], account=image[:12], region=found["region"], name=name)


IMAGE_OF_ENDPOINTS = "one in Amazon ECR of the network's own region with endpoints alone: nodes reach no other registry"
"""What `is_reached_by_endpoints` asks of an image."""


def is_reached_by_endpoints(image: str, region: str) -> bool:
    """Whether nodes without a way to the internet can pull an image: the endpoints of ECR serve their own region."""
    repository = ecr_repository(image)
    return repository is not None and repository.region == region
