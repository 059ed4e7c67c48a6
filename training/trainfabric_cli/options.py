"""Options and arguments that several commands share."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from trainfabric_plan.errors import Mistake

EnvironmentArgument = Annotated[Path, typer.Argument(metavar="ENVIRONMENT_FILE", help="Environment file (YAML).")]
EnvironmentOption = Annotated[
    Path, typer.Option("--environment", "-e", metavar="FILE", help="Environment file (YAML) of what is deployed.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on standard output.")]
Profile = Annotated[
    str | None, typer.Option("--profile", help="Profile of the AWS configuration; what AWS_PROFILE says if not given.")
]

_REGION = re.compile(r"[a-z]{2,4}(-[a-z]+)+-\d+")
"""Source: `regionRegex` of the partitions in botocore 1.44.8, endpoints.json."""
_TYPE = re.compile(r"[a-z][a-z0-9-]*\.[a-z0-9-]+")
"""A family and a size: every value of InstanceType in botocore 1.44.8's model of EC2."""


def region_mistakes(where: str, name: str, region: str) -> Iterator[Mistake]:
    """What keeps a text from being the name of a region, whichever regions there are."""
    if not _REGION.fullmatch(region):
        yield Mistake(where=where, name=name, rule="the name of an AWS region such as us-east-1", got=region)


def type_mistakes(where: str, name: str, instance_type: str) -> Iterator[Mistake]:
    """What keeps a text from being the name of an instance type, whichever types there are."""
    from trainfabric_plan.catalog.instances import nearest_instance_types

    if not _TYPE.fullmatch(instance_type):
        near = nearest_instance_types(instance_type)
        remedy = f"did you mean {' or '.join(near)}?" if near else "trainfabric catalog lists types"
        rule = "the name of an instance type such as p5.48xlarge"
        yield Mistake(where=where, name=name, rule=rule, got=instance_type, remedy=remedy)
