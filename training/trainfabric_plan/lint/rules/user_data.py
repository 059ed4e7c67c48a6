"""User data: its size, its form, and settings of NCCL that it should not make."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from typing import Any

from trainfabric_plan.lint.assembly import Assembly
from trainfabric_plan.lint.intrinsics import text_parts
from trainfabric_plan.lint.launches import COMPUTE_ENVIRONMENT, INSTANCE, LAUNCH_TEMPLATE, launches
from trainfabric_plan.lint.model import Broken, Rule, Severity
from trainfabric_plan.lint.values import Template, Value

LIMIT_BYTES = 16_384
"""Most bytes of user data, decoded (EC2 API, RequestLaunchTemplateData.UserData: 16 KB)."""

_PSEUDO_BYTES = {
    "AWS::AccountId": 12,
    "AWS::Partition": 10,
    "AWS::Region": 15,
    "AWS::StackName": 128,
    "AWS::URLSuffix": 30,
}
"""What a pseudo parameter may grow to; a stack's name has at most 128 letters (CloudFormation API, CreateStack)."""

_NCCL = re.compile(r"^[^#\n]*?(?<![\w-])(?P<name>NCCL_(?:ALGO|PROTO))\s*[=:]\s*(?!\s|$)", re.MULTILINE)
_SETTINGS = ("NCCL_ALGO", "NCCL_PROTO")


def _scripts(assembly: Assembly) -> Iterator[tuple[Value, list[Any]]]:
    """User data with its parts: known texts, and raw values that only a deployment knows."""
    for resource in assembly.of_type(LAUNCH_TEMPLATE, INSTANCE):
        data = resource.properties(*(("LaunchTemplateData",) if resource.type == LAUNCH_TEMPLATE else ()))
        script = data.at("UserData")
        if not script.is_missing:
            yield script, _decoded(text_parts(assembly, script.raw, resource.template))


def _decoded(parts: list[Any]) -> list[Any]:
    """The same, with user data that stands in the template in base64 decoded."""
    if len(parts) == 1 and isinstance(parts[0], str):
        try:
            return [base64.b64decode(parts[0], validate=True).decode()]
        except ValueError:
            return parts
    return parts


def _least(parts: list[Any]) -> int:
    return sum(len(part.encode()) for part in parts if isinstance(part, str))


def _most(parts: list[Any], template: Template) -> int:
    return _least(parts) + sum(_longest(part, template) for part in parts if not isinstance(part, str))


def _longest(raw: Any, template: Template) -> int:
    """Most bytes of a value that a template limits; 0 where nothing limits it."""
    name = raw.get("Ref") if isinstance(raw, Mapping) else None
    if name in _PSEUDO_BYTES:
        return _PSEUDO_BYTES[name]
    parameter = template.section("Parameters").get(name, {}) if isinstance(name, str) else {}
    allowed = parameter.get("AllowedValues")
    if isinstance(allowed, list):
        return max((len(str(value).encode()) for value in allowed), default=0)
    return int(parameter["MaxLength"]) if str(parameter.get("MaxLength", "")).isdigit() else 0


def _too_large(assembly: Assembly) -> Iterator[Broken]:
    for place, parts in _scripts(assembly):
        if _least(parts) > LIMIT_BYTES:
            yield Broken(
                at=place,
                must=f"at most {LIMIT_BYTES} bytes before base64",
                got=f"at least {_least(parts)}",
                remedy="put the script into a bucket or the image, and fetch it from a short one",
            )


def _may_be_too_large(assembly: Assembly) -> Iterator[Broken]:
    for place, parts in _scripts(assembly):
        most = _most(parts, place.place.template)
        if _least(parts) <= LIMIT_BYTES < most:
            yield Broken(
                at=place,
                must=f"at most {LIMIT_BYTES} bytes before base64, with every parameter at its longest",
                got=most,
                remedy="put the script into a bucket or the image, and fetch it from a short one",
            )


def _not_mime(assembly: Assembly) -> Iterator[Broken]:
    for launch in launches(assembly):
        of_batch = any(user.type == COMPUTE_ENVIRONMENT for user in launch.users)
        for place, parts in _scripts(assembly) if of_batch else ():
            start = str(parts[0]).lstrip() if parts and isinstance(parts[0], str) else ""
            if place.place.logical_id == launch.resource.id and start.startswith(("#!", "#cloud-config")):
                yield Broken(
                    at=place,
                    must="a MIME multi-part archive for AWS Batch, which adds its own part",
                    got=start.splitlines()[0],
                    remedy="wrap it: Content-Type multipart/mixed, with the script as one part",
                )


def _forced_nccl(assembly: Assembly) -> Iterator[Broken]:
    for place, parts in _scripts(assembly):
        text = "".join(part if isinstance(part, str) else "VALUE" for part in parts)
        for name in dict.fromkeys(match["name"] for match in _NCCL.finditer(text)):
            yield _forced(place, name)
    for resource in assembly.of_type("AWS::Batch::JobDefinition", "AWS::ECS::TaskDefinition"):
        for value in resource.properties().walk():
            if value.place.steps[-1] == "Environment":
                for entry in value.items:
                    if entry.at("Name").text in _SETTINGS:
                        yield _forced(entry.at("Name"), str(entry.at("Name").text))


def _forced(place: Value, name: str) -> Broken:
    return Broken(
        at=place,
        must=f"free of {name}",
        got=name,
        remedy="remove it: the tuner of aws-ofi-nccl chooses better, and any value of it turns the tuner off",
    )


RULES = (
    Rule(
        id="user-data-too-large",
        severity=Severity.ERROR,
        title="User data fits",
        why="EC2 refuses user data over 16 KB when nodes launch, long after a deploy that looked well.",
        source="EC2 API model of botocore 1.44.8, RequestLaunchTemplateData.UserData",
        check=_too_large,
    ),
    Rule(
        id="user-data-may-be-too-large",
        severity=Severity.WARNING,
        title="User data fits with every parameter at its longest",
        why="The limit counts after Fn::Sub: the template fits, and the stack with the long parameter does not.",
        source="https://github.com/kirodotdev/KiroCrew/issues/2647, read 2026-11",
        check=_may_be_too_large,
    ),
    Rule(
        id="batch-user-data-form",
        severity=Severity.ERROR,
        title="User data of AWS Batch is MIME multi-part",
        why="Batch merges its own part into it; anything else leaves the compute environment invalid.",
        source="EC2 API model of botocore 1.44.8, RequestLaunchTemplateData.UserData",
        check=_not_mime,
    ),
    Rule(
        id="nccl-forced",
        severity=Severity.WARNING,
        title="NCCL_ALGO and NCCL_PROTO are left alone",
        why="Any value turns the tuner of aws-ofi-nccl off; with version 1.16.2 NCCL did not start at all.",
        source="https://github.com/aws/aws-ofi-nccl/issues/982, read 2026-11",
        check=_forced_nccl,
    ),
)
