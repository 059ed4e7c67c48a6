"""Resources whose data goes when they are replaced or dropped, and what of them a change would replace.

A template is plain data here, as CloudFormation reads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

CREATE_ONLY: Mapping[str, frozenset[str]] = {
    "AWS::DynamoDB::Table": frozenset({"ImportSourceSpecification", "TableName"}),
    "AWS::EC2::Volume": frozenset(),
    "AWS::EFS::FileSystem": frozenset({"AvailabilityZoneName", "Encrypted", "KmsKeyId", "PerformanceMode"}),
    "AWS::FSx::FileSystem": frozenset({"BackupId", "FileSystemType", "KmsKeyId", "SecurityGroupIds", "SubnetIds"}),
    "AWS::KMS::Key": frozenset(),
    "AWS::S3::Bucket": frozenset({"BucketName", "BucketNamePrefix", "BucketNamespace"}),
}
"""Stateful types, and the properties of which CloudFormation makes a new resource.

Source: createOnlyProperties of the CloudFormation registry's schemas, as in cfn-lint 1.58.0; a test holds this to them.
"""

NOT_UPDATABLE: Mapping[str, frozenset[str]] = {
    "AWS::FSx::FileSystem": frozenset({"LustreConfiguration.DeploymentType", "LustreConfiguration.EfaEnabled"}),
}
"""What the schema does not call create-only, but the service cannot change: no parameter of UpdateFileSystem (botocore
1.44.8). CloudFormation replaces the resource or fails."""


@dataclass(frozen=True, kw_only=True)
class Loss:
    """A stateful resource that a change would replace or drop.

    Attributes:
        logical_id: Its name in the template.
        kind: Its CloudFormation type.
        changed: The properties that make CloudFormation replace it; none if it is dropped.
        kept: Whether the old resource stays in the account (DeletionPolicy or UpdateReplacePolicy Retain).
    """

    logical_id: str
    kind: str
    changed: tuple[str, ...]
    kept: bool

    @property
    def message(self) -> str:
        """What would happen, and what happens to the data."""
        old = "the old one stays in the account, billed and unused" if self.kept else "its data is deleted"
        if not self.changed:
            return f"{self.kind} {self.logical_id} was deployed and is no longer in the stack: {old}"
        why = ", ".join(self.changed)
        return f"{self.kind} {self.logical_id} would be replaced by an empty one ({why} changed): {old}"


def stateful_resources(template: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The stateful resources of a template, by logical id."""
    resources = template.get("Resources", {})
    return {name: resource for name, resource in resources.items() if resource.get("Type") in CREATE_ONLY}


def losses(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Loss]:
    """Every stateful resource of the template `before` that a deploy of `after` would replace or drop."""
    new = stateful_resources(after)
    for logical_id, old in stateful_resources(before).items():
        kind = str(old["Type"])
        if logical_id not in new:
            yield Loss(logical_id=logical_id, kind=kind, changed=(), kept=_kept(old, "DeletionPolicy"))
            continue
        changed = tuple(_changed(kind, old, new[logical_id]))
        if changed:
            yield Loss(logical_id=logical_id, kind=kind, changed=changed, kept=_kept(old, "UpdateReplacePolicy"))


def create_only(kind: str) -> list[str]:
    """The properties of a stateful type that cannot change, nested ones with dots."""
    return sorted(CREATE_ONLY[kind] | NOT_UPDATABLE.get(kind, frozenset()))


def _changed(kind: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    if new.get("Type") != kind:
        yield "Type"
        return
    before, after = old.get("Properties", {}), new.get("Properties", {})
    for path in create_only(kind):
        if _value(before, path) != _value(after, path):
            yield path


def _value(properties: Any, path: str) -> Any:
    for part in path.split("."):
        properties = properties.get(part) if isinstance(properties, Mapping) else None
    return str(properties).lower() if isinstance(properties, bool) else properties


def _kept(resource: Mapping[str, Any], policy: str) -> bool:
    return str(resource.get(policy, "Delete")).startswith("Retain")
