"""Versions of launch templates, as EC2 keeps them and moto does not.

1. `LaunchTemplate.create_version`: a new version has a number that none has had (moto counts those that are left).
   `LaunchTemplate.get_version`: a version is found by its number (moto takes it for a place in the list).
2. `EC2Response.create_launch_template_version`: what is given is laid over the source version (moto forgets that one),
   and instances can be launched with its user data (moto fails at it).
3. `EC2Response.delete_launch_template_versions`: there is one (moto has none); the default version stays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.exceptions import InvalidLaunchTemplateVersionNotFound
from moto.ec2.models.launch_templates import LaunchTemplate, LaunchTemplateVersion
from moto.ec2.responses import EC2Response
from moto.ec2.utils import parse_user_data

Method = Callable[..., Any]


def install(wrap: Callable[[Any, str, Callable[[Method], Any]], None]) -> None:
    """Change moto; `wrap` is that of `sandbox.aws.moto_patches`."""
    wrap(LaunchTemplate, "create_version", lambda _: _create_version)
    wrap(LaunchTemplate, "get_version", lambda _: _get_version)
    wrap(LaunchTemplate, "default_version", lambda _: lambda template: template.get_version("$Default"))
    wrap(EC2Response, "create_launch_template_version", _over_its_source)
    EC2Response.delete_launch_template_versions = _delete_versions


def _create_version(template: Any, data: dict[str, Any], description: str) -> LaunchTemplateVersion:
    number = getattr(template, "highest_version", 0) + 1
    template.highest_version = number
    version = LaunchTemplateVersion(template, number, data, description)
    template.versions.append(version)
    return version


def _get_version(template: Any, num: Any) -> LaunchTemplateVersion:
    named = str(num).lower()
    if named == "$latest":
        return template.versions[-1]
    number = str(template.default_version_number) if named == "$default" else named
    for version in template.versions:
        if str(version.number) == number:
            return version
    raise InvalidLaunchTemplateVersionNotFound(template_id=template.id, version=num)


def _over_its_source(create: Method) -> Method:
    def create_launch_template_version(response: Any) -> ActionResult:
        named = response._get_param("SourceVersion")
        source = _template(response).get_version(named).data if named else {}
        result = create(response)
        _lay_over(_template(response), source)
        return result

    return create_launch_template_version


def _lay_over(template: Any, source: dict[str, Any]) -> None:
    made = template.versions[-1]
    if "UserData" in made.data:
        made.data["UserData"] = parse_user_data(made.data["UserData"])
    made.data.update({**source, **made.data})  # the response holds this dictionary
    template.versions[-1] = LaunchTemplateVersion(template, made.number, made.data, made.description)


def _delete_versions(response: Any) -> ActionResult:
    template = _template(response)
    response.error_on_dryrun()
    deleted: list[dict[str, Any]] = []
    kept: list[dict[str, Any]] = []
    for version in [template.get_version(number) for number in response._get_param("Versions", [])]:
        said = {"LaunchTemplateId": template.id, "LaunchTemplateName": template.name, "VersionNumber": version.number}
        if template.is_default(version):
            error = {"code": "launchTemplateVersionCannotBeDeleted", "message": "the default version cannot be deleted"}
            kept.append({**said, "ResponseError": error})
        else:
            template.versions.remove(version)
            deleted.append(said)
    return ActionResult(
        {"SuccessfullyDeletedLaunchTemplateVersions": deleted, "UnsuccessfullyDeletedLaunchTemplateVersions": kept}
    )


def _template(response: Any) -> Any:
    name = response._get_param("LaunchTemplateName")
    if name:
        return response.ec2_backend.get_launch_template_by_name(name)
    return response.ec2_backend.get_launch_template(response._get_param("LaunchTemplateId"))
