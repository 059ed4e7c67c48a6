"""Rules about buckets and the file system that look at several values of an environment."""

from __future__ import annotations

from collections.abc import Iterator

from trainfabric_plan.environment.rules.sections import Broken, Rule, Sections
from trainfabric_plan.environment.types import LustreLink, Storage
from trainfabric_plan.errors import Mistake
from trainfabric_plan.lustre import LinkWish, link_mistakes, lustre_mistakes
from trainfabric_plan.lustre.facts import NO_EFA_CLIENTS
from trainfabric_plan.mount_points import beside_home_problem, mount_point_problem
from trainfabric_plan.partitions import KEY_OF_REGION, is_of_region, region_rule

_OF_AN_EXISTING = frozenset({"file_system_id", "mount_name", "security_group_id", "mount_point", "efa"})


def _bucket_keys(given: Sections) -> Iterator[Broken]:
    if not given.storage or given.orchestrator != "parallelcluster":
        return
    if given.storage.kms_key_arn:
        yield {
            "name": "storage.kms_key_arn",
            "rule": "left out with parallelcluster: its nodes' role gets buckets, no keys",
            "got": given.storage.kms_key_arn,
            "remedy": "remove storage.kms_key_arn, or use orchestrator: fleet",
        }
    for name in ("data_bucket", "checkpoint_bucket"):
        bucket = getattr(given.storage, name)
        if bucket and bucket.kms_key_arn:
            yield {
                "name": f"storage.{name}.kms_key_arn",
                "rule": "left out with parallelcluster: its nodes' role gets buckets, no keys",
                "got": bucket.kms_key_arn,
                "remedy": "use a bucket that S3's own keys encrypt, or orchestrator: fleet",
            }


def _key_region(given: Sections) -> Iterator[Broken]:
    for name, arn in _keys(given.storage) if given.storage and given.region else ():
        if not is_of_region(arn, given.region or ""):
            rule = region_rule(KEY_OF_REGION, given.region or "")
            yield {"name": name, "rule": rule, "got": arn, "remedy": "use a key of that region"}


def _keys(storage: Storage) -> Iterator[tuple[str, str]]:
    """Every key of the section, with its name."""
    if storage.kms_key_arn:
        yield "storage.kms_key_arn", storage.kms_key_arn
    buckets = {"data_bucket": storage.data_bucket, "checkpoint_bucket": storage.checkpoint_bucket}
    buckets |= {f"lustre.links.{index}.bucket": link.bucket for index, link in enumerate(storage.lustre.links or ())}
    for name, bucket in buckets.items():
        if bucket and bucket.kms_key_arn:
            yield f"storage.{name}.kms_key_arn", bucket.kms_key_arn


def _existing_file_system(given: Sections) -> Iterator[Broken]:
    if not given.storage:
        return
    lustre = given.storage.lustre
    if bool(lustre.file_system_id) != bool(lustre.mount_name):
        missing = "mount_name" if lustre.file_system_id else "file_system_id"
        yield {
            "name": f"storage.lustre.{missing}",
            "rule": "given together with its counterpart",
            "got": "nothing",
            "remedy": f"add storage.lustre.{missing}, or leave both out and trainfabric makes the file system",
        }
    if lustre.is_made:
        if lustre.security_group_id:
            yield {
                "name": "storage.lustre.security_group_id",
                "rule": "given only with an existing file system",
                "got": lustre.security_group_id,
                "remedy": "remove it, or add storage.lustre.file_system_id and mount_name",
            }
        return
    for key in sorted(lustre.model_fields_set - _OF_AN_EXISTING):
        yield {
            "name": f"storage.lustre.{key}",
            "rule": "left out for a file system that exists already",
            "got": str(getattr(lustre, key)),
            "remedy": f"remove storage.lustre.{key}; the file system stays as it is",
        }


def _lustre(given: Sections) -> Iterator[Broken]:
    if given.storage and given.storage.lustre.is_made:
        yield from _as_broken(lustre_mistakes("", given.storage.lustre.wish, prefix="storage.lustre."))


def _lustre_key(given: Sections) -> Iterator[Broken]:
    storage = given.storage
    if storage and storage.kms_key_arn and storage.lustre.is_made and storage.lustre.deployment == "scratch_2":
        yield {
            "name": "storage.kms_key_arn",
            "rule": "left out with scratch_2, which FSx encrypts with a key of its own",
            "got": storage.kms_key_arn,
            "remedy": "use deployment: persistent_2",
        }


def _lustre_over_efa(given: Sections) -> Iterator[Broken]:
    """Nodes without EFA reach an EFA-enabled file system over TCP, at the price of its larger steps."""
    if not (given.storage and given.storage.lustre.efa and given.fleet and given.instance):
        return
    family = given.instance.name.partition(".")[0]
    if not given.fleet.efa:
        rule = "false while fleet.efa is off: the nodes would reach the file system over TCP"
    elif family in NO_EFA_CLIENTS:
        rule = f"false for {given.instance.name}: FSx serves {family} over TCP only"
    else:
        return
    yield {"name": "storage.lustre.efa", "rule": rule, "got": "true", "remedy": "remove storage.lustre.efa"}


def _links(given: Sections) -> Iterator[Broken]:
    storage = given.storage
    if not storage or not storage.lustre.is_made:
        return
    if storage.lustre.deployment == "intelligent_tiering":
        if storage.lustre.links:
            yield {
                "name": "storage.lustre.links",
                "rule": "left out with intelligent_tiering, which FSx links to no bucket",
                "got": str(len(storage.lustre.links)),
                "remedy": "use deployment: persistent_2, or copy the data to the file system",
            }
        return
    checkpoints = storage.checkpoint_bucket.name if storage.checkpoint_bucket else None
    wishes = [_link(link, storage) for link in storage.links]
    yield from _as_broken(link_mistakes("", wishes, name=_LinkName(storage), checkpoint_bucket=checkpoints))


def _one_bucket(given: Sections) -> Iterator[Broken]:
    """Where nothing is linked here: a link of the checkpoint bucket is a mistake of its own."""
    storage = given.storage
    if not storage or storage.links or not (storage.data_bucket and storage.checkpoint_bucket):
        return
    if storage.data_bucket.name == storage.checkpoint_bucket.name:
        rule = "another bucket than storage.data_bucket, which Lustre caches"
        got, remedy = storage.checkpoint_bucket.name, "use two buckets"
        yield {"name": "storage.checkpoint_bucket.name", "rule": rule, "got": got, "remedy": remedy}


def _link(link: LustreLink, storage: Storage) -> LinkWish:
    bucket = link.bucket or storage.data_bucket
    return LinkWish(
        path=link.path,
        bucket=bucket.name if bucket else "the data bucket",
        prefix=link.prefix,
        imports=link.imports,
        exports=link.exports,
    )


class _LinkName:
    """Names a value of a link as the file does; the link that is made by default is the data bucket's."""

    def __init__(self, storage: Storage) -> None:
        self._given = bool(storage.lustre.links)

    def __call__(self, index: int, key: str) -> str:
        if not self._given:
            return "storage.data_bucket"
        return f"storage.lustre.links.{index}.{key}" if key else "storage.lustre.links"


def _mount_point(given: Sections) -> Iterator[Broken]:
    if not given.storage:
        return
    problem = mount_point_problem(given.storage.lustre.mount_point)
    if given.storage.shared_home and not problem:
        problem = beside_home_problem(given.storage.lustre.mount_point)
    if problem:
        yield {
            "name": "storage.lustre.mount_point",
            "rule": problem.rule,
            "got": given.storage.lustre.mount_point,
            "remedy": problem.remedy,
        }


def _as_broken(mistakes: list[Mistake]) -> Iterator[Broken]:
    for found in mistakes:
        yield {"name": found.name, "rule": found.rule, "got": found.got, "remedy": found.remedy}


def _shared_home(given: Sections) -> Iterator[Broken]:
    if given.storage and given.storage.shared_home == "openzfs" and given.orchestrator == "parallelcluster":
        yield {
            "name": "storage.shared_home",
            "rule": "efs with parallelcluster, which mounts OpenZFS only where the ports of NFS 3 are open as well",
            "got": given.storage.shared_home,
            "remedy": "use efs",
        }


RULES: tuple[Rule, ...] = (
    _bucket_keys,
    _key_region,
    _existing_file_system,
    _lustre,
    _lustre_key,
    _lustre_over_efa,
    _links,
    _one_bucket,
    _mount_point,
    _shared_home,
)
