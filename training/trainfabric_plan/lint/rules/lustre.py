"""FSx for Lustre: links to S3, ports, the order of creation, and what is left after a delete."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from trainfabric_plan.lint.assembly import Assembly
from trainfabric_plan.lint.model import Broken, Rule, Severity
from trainfabric_plan.lint.traffic import SECURITY_GROUP, Direction, TrafficRule, rules_of
from trainfabric_plan.lint.values import Reference, Resource, Value

FILE_SYSTEM = "AWS::FSx::FileSystem"
ASSOCIATION = "AWS::FSx::DataRepositoryAssociation"
PORTS = ((988, 988), (1018, 1023))
"""TCP ports of Lustre (FSx user guide, limit-access-security-groups)."""

_API = "FSx API model of botocore 1.44.8, CreateFileSystemLustreConfiguration"
_LEGACY = ("ImportPath", "ExportPath", "AutoImportPolicy", "ImportedFileChunkSize")
_KEPT = ("Retain", "Snapshot", "RetainExceptOnCreate")


def file_systems(assembly: Assembly) -> Iterator[Resource]:
    """Lustre file systems."""
    for resource in assembly.of_type(FILE_SYSTEM):
        if resource.properties("FileSystemType").text == "LUSTRE":
            yield resource


def configuration(file_system: Resource, *steps: str) -> Value:
    """A value of its Lustre configuration."""
    return file_system.properties("LustreConfiguration", *steps)


def _import_path(assembly: Assembly) -> Iterator[Broken]:
    for file_system in file_systems(assembly):
        if configuration(file_system, "DeploymentType").text != "PERSISTENT_2":
            continue
        for key in _LEGACY:
            value = configuration(file_system, key)
            if not value.is_missing and not value.is_unknown:
                yield Broken(
                    at=value,
                    must="absent with PERSISTENT_2",
                    got=value.text,
                    remedy="link the bucket with an AWS::FSx::DataRepositoryAssociation",
                )


def associations(assembly: Assembly, file_system: Resource) -> list[Resource]:
    """Its data repository associations, as far as the templates at hand make them."""
    return [
        one
        for one in assembly.of_type(ASSOCIATION)
        if one.properties("FileSystemId").resource(FILE_SYSTEM) == file_system
    ]


def _two_ways(assembly: Assembly) -> Iterator[Broken]:
    for file_system in file_systems(assembly):
        persistent = configuration(file_system, "DeploymentType").text == "PERSISTENT_2"
        for key in () if persistent or not associations(assembly, file_system) else _LEGACY:
            value = configuration(file_system, key)
            if not value.is_missing and not value.is_unknown:
                yield Broken(
                    at=value,
                    must="absent beside a data repository association",
                    got=value.text,
                    remedy="keep the association and remove this",
                )


def _comes_before(first: Resource, second: Resource) -> bool:
    """Whether CloudFormation makes `second` only after `first`."""
    todo, seen = [second.id], set[str]()
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        resource = second.resolver.find(second.template, name)
        todo += _needs(resource) if resource is not None else ()
    return first.id in seen - {second.id}


def _needs(resource: Resource) -> list[str]:
    """Logical ids that a resource waits for: those in `DependsOn`, and those it refers to."""
    named = list(resource.depends_on)
    for value in resource.properties().walk():
        if isinstance(value.known, Reference) and value.known.resource.template is resource.template:
            named.append(value.known.resource.id)
    return named


def _together(assembly: Assembly) -> Iterator[Broken]:
    for file_system in file_systems(assembly):
        links = [one for one in associations(assembly, file_system) if one.template is file_system.template]
        for first, second in combinations(links, 2):
            if not _comes_before(first, second) and not _comes_before(second, first):
                yield Broken(
                    at=second.at("DependsOn"),
                    must=f"set so that {second.id} and {first.id} are not changed at the same time",
                    got="none" if not second.depends_on else ", ".join(second.depends_on),
                    remedy=f"add DependsOn: {first.id}",
                )


def _known_groups(file_system: Resource) -> list[Resource]:
    """Its security groups, if all are known; otherwise none."""
    given = file_system.properties("SecurityGroupIds").items
    groups = [group for value in given if (group := value.resource(SECURITY_GROUP)) is not None]
    return groups if len(groups) == len(given) else []


def _covers(rules: list[TrafficRule], first: int, last: int) -> bool:
    return any(not rule.is_known or rule.covers(first, last) for rule in rules)


def _closed_ports(assembly: Assembly) -> Iterator[Broken]:
    for file_system in file_systems(assembly):
        groups = _known_groups(file_system)
        hidden = any(not assembly.is_complete(one.template) or assembly.is_used_elsewhere(one) for one in groups)
        for direction in Direction if groups and not hidden else ():
            rules = [rule for group in groups for rule in rules_of(assembly, group, direction)]
            if direction is Direction.EGRESS and any(_sends_everything(assembly, group) for group in groups):
                continue
            closed = [_ports(first, last) for first, last in PORTS if not _covers(rules, first, last)]
            if closed:
                yield Broken(
                    at=file_system.properties("SecurityGroupIds"),
                    must=f"groups with {direction} for TCP {' and '.join(closed)}",
                    got=", ".join(group.id for group in groups),
                    remedy=f"add AWS::EC2::SecurityGroup{direction.capitalize()} rules for TCP 988 and 1018-1023",
                )


def _ports(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def _sends_everything(assembly: Assembly, group: Resource) -> bool:
    """EC2 lets a group without egress rules send everything."""
    return not rules_of(assembly, group, Direction.EGRESS)


def _race(assembly: Assembly) -> Iterator[Broken]:
    for file_system in file_systems(assembly):
        for group in _known_groups(file_system):
            for direction in Direction:
                yield from _unawaited(assembly, file_system, group, direction)


def _unawaited(assembly: Assembly, file_system: Resource, group: Resource, direction: Direction) -> Iterator[Broken]:
    rules = rules_of(assembly, group, direction)
    beside = [rule for rule in rules if rule.at.place.logical_id != group.id and rule.covers(988, 988)]
    inside = [rule for rule in rules if rule.at.place.logical_id == group.id]
    first = any(
        _comes_before(resource, file_system) for rule in beside if (resource := _same_template(rule, file_system))
    )
    if first or _covers(inside, 988, 988) or not beside:
        return
    yield Broken(
        at=file_system.at("DependsOn"),
        must=f"set so that the {direction} rules for port 988 exist before the file system",
        got="none" if not file_system.depends_on else ", ".join(file_system.depends_on),
        remedy=f"add DependsOn: {beside[0].at.place.logical_id}",
    )


def _same_template(rule: TrafficRule, file_system: Resource) -> Resource | None:
    place = rule.at.place
    return (
        Resource(place.template, place.logical_id, file_system.resolver)
        if place.template is file_system.template
        else None
    )


def _deleted(assembly: Assembly) -> Iterator[Broken]:
    for file_system in file_systems(assembly):
        kind = configuration(file_system, "DeploymentType")
        policy = file_system.at("DeletionPolicy")
        lasting = kind.text in ("PERSISTENT_1", "PERSISTENT_2")
        if lasting and (policy.is_missing or (policy.text is not None and policy.text not in _KEPT)):
            yield Broken(
                at=policy,
                must="Retain or Snapshot: with the resource its files go",
                got="none, which is Delete" if policy.is_missing else policy.text,
                remedy="set DeletionPolicy and UpdateReplacePolicy to Retain",
            )


def _efa_group(assembly: Assembly) -> Iterator[Broken]:
    for file_system in file_systems(assembly):
        groups = _known_groups(file_system)
        if configuration(file_system, "EfaEnabled").truth is not True or not groups:
            continue
        if any(not assembly.is_complete(one.template) or assembly.is_used_elsewhere(one) for one in groups):
            continue
        for direction in Direction:
            rules = [rule for group in groups for rule in rules_of(assembly, group, direction)]
            if not any(_is_all_with(rule, groups) for rule in rules):
                yield Broken(
                    at=file_system.properties("SecurityGroupIds"),
                    must=f"groups with an {direction} rule for all traffic with themselves, as EfaEnabled needs",
                    got=", ".join(group.id for group in groups),
                    remedy=f"add an {direction.separate} of IpProtocol -1 and the group itself",
                )


def _is_all_with(rule: TrafficRule, groups: list[Resource]) -> bool:
    peer = rule.peer_group
    return rule.protocol in (None, "-1") and (
        peer.is_unknown or (peer.reference is not None and peer.reference.resource in groups)
    )


RULES = (
    Rule(
        id="lustre-import-path",
        severity=Severity.ERROR,
        title="PERSISTENT_2 has no import or export path",
        why="FSx refuses it: PERSISTENT_2 is linked to S3 by data repository associations.",
        source=_API + "; https://github.com/hashicorp/terraform-provider-aws/issues/22656",
        check=_import_path,
    ),
    Rule(
        id="lustre-import-path-and-association",
        severity=Severity.ERROR,
        title="Either a data repository association or an import path",
        why="FSx refuses both together.",
        source=_API + "; https://github.com/aws/aws-cdk/issues/34649",
        check=_two_ways,
    ),
    Rule(
        id="lustre-associations-together",
        severity=Severity.WARNING,
        title="Data repository associations follow one another",
        why="FSx changes one association of a file system at a time; several at once may time out.",
        source="https://github.com/aws/aws-parallelcluster/pull/6649, read 2026-11",
        check=_together,
    ),
    Rule(
        id="lustre-ports",
        severity=Severity.ERROR,
        title="The file system's security groups let Lustre through in both directions",
        why="FSx does not create the file system, or clients cannot mount it.",
        source="FSx for Lustre user guide, cannot-create-fs; "
        "https://github.com/aws-samples/aws-eda-slurm-cluster/issues/252, read 2026-11",
        check=_closed_ports,
    ),
    Rule(
        id="lustre-before-its-rules",
        severity=Severity.ERROR,
        title="The file system waits for the rules of its security group",
        why="Rules that are resources of their own may come after it, and FSx then fails for want of port 988.",
        source="https://github.com/aws/aws-parallelcluster/issues/6181, read 2026-11",
        check=_race,
    ),
    Rule(
        id="lustre-efa-security-group",
        severity=Severity.ERROR,
        title="An EFA-enabled file system's security groups let all traffic through among themselves",
        why="FSx does not create the file system: insufficient security group permissions.",
        source="FSx for Lustre user guide, cannot-create-fs, read 2026-11",
        check=_efa_group,
    ),
    Rule(
        id="lustre-deletion-policy",
        severity=Severity.WARNING,
        title="A persistent file system outlives its stack",
        why="Deleting or replacing it deletes what was not exported to S3 yet.",
        source="https://github.com/aws/aws-parallelcluster/issues/4651, read 2026-11",
        check=_deleted,
    ),
)
