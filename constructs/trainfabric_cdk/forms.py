"""Ids, names and ARNs that AWS would not take, told by their form; tokens are never judged."""

from __future__ import annotations

import re
from collections.abc import Iterator

from aws_cdk import Stack
from aws_cdk import aws_kms as kms
from constructs import IConstruct

from trainfabric_cdk.capacity import Capacity
from trainfabric_cdk.errors import is_known
from trainfabric_plan.addresses import SOURCE_RULE, is_source
from trainfabric_plan.errors import Mistake
from trainfabric_plan.partitions import GROUP_OF_REGION, KEY_OF_REGION, is_of_region, region_rule

_IMAGE = re.compile(
    r"ami-([0-9a-f]{8}|[0-9a-f]{17})"
    r"|resolve:ssm:(arn:aws[a-z-]*:ssm:[a-z0-9-]+:\d{12}:parameter/)?[A-Za-z0-9_./-]+(:[A-Za-z0-9_.-]+)?"
)
_ZONE = re.compile(r"(?P<region>[a-z]{2,4}(-[a-z]+)+-\d)(-[a-z0-9]+)*[a-z]")
_ZONE_ID = re.compile(r"[a-z]+\d-([a-z]+\d-)?az\d+")
_FILE_SYSTEM, _MOUNT_NAME = re.compile(r"fs-[0-9a-f]{17}"), re.compile(r"[A-Za-z0-9_-]{1,8}")


def image_mistakes(where: str, image_id: str | None) -> Iterator[Mistake]:
    """An AMI, or a parameter that names one, of this account or shared from another, which is read at every launch (EC2
    Auto Scaling User Guide, "Use AWS Systems Manager parameters instead of AMI IDs", read 2026-12-01)."""
    if image_id is not None and is_known(image_id) and not _IMAGE.fullmatch(image_id):
        rule = "ami- and 8 or 17 hexadecimal digits, or resolve:ssm: and the name of a parameter"
        yield Mistake(where=where, name="image_id", rule=rule, got=repr(image_id))


def zone_mistakes(where: str, zone: str, region: str) -> Iterator[Mistake]:
    """A zone's name in the stack's region, as far as that is known; ids of zones name them in no template."""
    if not is_known(zone):
        return
    name, found = "availability_zone", _ZONE.fullmatch(zone)
    if _ZONE_ID.fullmatch(zone):
        remedy = "aws ec2 describe-availability-zones shows the name that your account has for this id"
        yield Mistake(where=where, name=name, rule="the name of a zone, not its id", got=repr(zone), remedy=remedy)
    elif not found:
        yield Mistake(where=where, name=name, rule="the name of a zone, such as us-east-1a", got=repr(zone))
    elif is_known(region) and found["region"] != region:
        yield Mistake(where=where, name=name, rule=f"a zone of the stack's region, {region}", got=repr(zone))


def source_mistakes(where: str, name: str, source: str | None) -> Iterator[Mistake]:
    """What is wrong with where traffic may come from."""
    if source is not None and is_known(source) and not is_source(source):
        yield Mistake(where=where, name=name, rule=SOURCE_RULE, got=repr(source))


def key_mistakes(scope: IConstruct, name: str, key: kms.IKey | None) -> Iterator[Mistake]:
    """A key of another region than the stack's, as far as both are known; a key's account may be another."""
    if key is not None:
        yield from _region_mistakes(scope, name, key.key_arn, KEY_OF_REGION)


def capacity_region_mistakes(scope: IConstruct, capacity: Capacity) -> Iterator[Mistake]:
    """A resource group of reservations of another region than the stack's, as far as both are known."""
    if capacity.resource_group is not None:
        yield from _region_mistakes(scope, "workers", capacity.resource_group, GROUP_OF_REGION)


def _region_mistakes(scope: IConstruct, name: str, arn: str, what: str) -> Iterator[Mistake]:
    region = Stack.of(scope).region
    if is_known(arn, region) and not is_of_region(arn, region):
        yield Mistake(where=scope.node.path, name=name, rule=region_rule(what, region), got=arn)


def existing_lustre_mistakes(scope: IConstruct, file_system_id: str, mount_name: str) -> Iterator[Mistake]:
    """FSx's id and mount name of a file system (FSx API reference, FileSystem, read 2026-12-01)."""
    where = scope.node.path
    if is_known(file_system_id) and not _FILE_SYSTEM.fullmatch(file_system_id):
        rule = "fs- and 17 hexadecimal digits"
        yield Mistake(where=where, name="file_system_id", rule=rule, got=repr(file_system_id))
    if is_known(mount_name) and not _MOUNT_NAME.fullmatch(mount_name):
        remedy = "aws fsx describe-file-systems shows it as MountName"
        rule = "1 to 8 letters, digits, _ and -"
        yield Mistake(where=where, name="mount_name", rule=rule, got=repr(mount_name), remedy=remedy)
