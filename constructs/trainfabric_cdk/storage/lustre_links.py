"""Links of a Lustre file system to S3: FSx's data repository associations, made one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aws_cdk import Stack
from aws_cdk import aws_fsx as fsx
from aws_cdk import aws_s3 as s3
from constructs import Construct, IConstruct

from trainfabric_cdk.errors import is_known
from trainfabric_cdk.storage.buckets import CheckpointBucket
from trainfabric_cdk.storage.checkpoints import holder_of_checkpoints
from trainfabric_plan.contract import DATA_PREFIX
from trainfabric_plan.errors import Mistake
from trainfabric_plan.lustre import LinkWish, link_mistakes
from trainfabric_plan.lustre.facts import EVENTS
from trainfabric_plan.lustre.links import NOT_THE_CHECKPOINTS

_Link = fsx.CfnDataRepositoryAssociation


@dataclass(frozen=True, kw_only=True)
class LustreLink:
    """A directory of the file system that is a prefix of a bucket.

    Attributes:
        path: Directory below the mount point, such as `/data`.
        prefix: Key prefix, such as `data/`; empty for the whole bucket.
        bucket: The bucket, in the file system's region; that of the file system if not given. FSx exports to one of
            another region, but imports nothing from there.
        imports: Of `new`, `changed`, `deleted`: what happens in the bucket and shows in the directory.
        exports: Of the same: what happens in the directory and is written to the bucket.
    """

    path: str
    prefix: str
    bucket: s3.IBucket | None = None
    imports: Sequence[str] = EVENTS
    exports: Sequence[str] = EVENTS


DATA_LINK = LustreLink(path=f"/{DATA_PREFIX.rstrip('/')}", prefix=DATA_PREFIX)
"""What is linked if nothing else is said: where `data prepare` writes."""


def links_mistakes(scope: IConstruct, links: Sequence[LustreLink], bucket: s3.IBucket | None) -> list[Mistake]:
    """Every rule that these links break; a link whose path or prefix is a token is not judged."""
    where = scope.node.path
    found = []
    for index, link in enumerate(links):
        linked = link.bucket or bucket
        if linked is None:
            rule = "given, here or for the file system: there is nothing to link to"
            found.append(Mistake(where=where, name=f"links[{index}].bucket", rule=rule, got="nothing"))
        elif isinstance(linked, CheckpointBucket):
            name, got = f"links[{index}].bucket", linked.node.path
            found.append(Mistake(where=where, name=name, rule=NOT_THE_CHECKPOINTS, got=got))
        elif holder := holder_of_checkpoints(scope, linked):
            name, got = f"links[{index}].bucket", f"{linked.node.path}, where the checkpoints of {holder} are"
            found.append(Mistake(where=where, name=name, rule=NOT_THE_CHECKPOINTS, got=got))
        elif link.imports and (region := _other_region(scope, linked)):
            found.append(_cross_region(where, f"links[{index}]", linked, region))
    known = [(index, link) for index, link in enumerate(links) if is_known(link.path, link.prefix)]
    wishes = [_wish(link, bucket) for _, link in known]
    return found + link_mistakes(where, wishes, name=_Names([index for index, _ in known]))


def make_links(
    scope: Construct, file_system_id: str, links: Sequence[LustreLink], bucket: s3.IBucket | None
) -> list[fsx.CfnDataRepositoryAssociation]:
    """The associations, each waiting for the one before it.

    FSx works on one association of a file system at a time, and several at once have timed out (aws-parallelcluster
    pull request 6649).
    """
    made: list[fsx.CfnDataRepositoryAssociation] = []
    for number, link in enumerate(links, start=1):
        linked = link.bucket or bucket
        assert linked is not None, "links_mistakes has refused it"
        association = _Link(
            scope,
            "Data" if number == 1 else f"Link{number}",
            file_system_id=file_system_id,
            file_system_path=link.path,
            data_repository_path=linked.s3_url_for_object(link.prefix) if link.prefix else f"s3://{linked.bucket_name}",
            batch_import_meta_data_on_create=True,
            s3=_policies(link),
        )
        if made:
            association.add_dependency(made[-1])
        made.append(association)
    return made


def _policies(link: LustreLink) -> fsx.CfnDataRepositoryAssociation.S3Property:
    imports, exports = _as_fsx_says(link.imports), _as_fsx_says(link.exports)
    return _Link.S3Property(
        auto_import_policy=_Link.AutoImportPolicyProperty(events=imports) if imports else None,
        auto_export_policy=_Link.AutoExportPolicyProperty(events=exports) if exports else None,
    )


def _as_fsx_says(events: Sequence[str]) -> list[str]:
    """A token stays one: in capitals its placeholder would be a text of its own."""
    return [event.upper() if is_known(event) else event for event in events]


def _wish(link: LustreLink, bucket: s3.IBucket | None) -> LinkWish:
    linked = link.bucket or bucket
    imports, exports = ([event for event in events if is_known(event)] for events in (link.imports, link.exports))
    return LinkWish(path=link.path, bucket=_identity(linked), prefix=link.prefix, imports=imports, exports=exports)


def _identity(bucket: s3.IBucket | None) -> str:
    """What tells buckets apart: the name, or the construct's path where CloudFormation makes the name."""
    if bucket is None:
        return ""
    return bucket.bucket_name if is_known(bucket.bucket_name) else bucket.node.path


def _other_region(scope: IConstruct, bucket: s3.IBucket) -> str | None:
    """The region of a bucket that is known to be another than the file system's."""
    here, there = Stack.of(scope).region, bucket.env.region
    return there if here != there and is_known(here) and is_known(there) else None


def _cross_region(where: str, name: str, bucket: s3.IBucket, region: str) -> Mistake:
    """FSx for Lustre Guide, "Region and account support for linked S3 buckets", read 2026-12-01."""
    rule = "in the file system's region to be imported from: FSx imports nothing across regions"
    remedy = "copy the data, or give imports=[] to export alone"
    return Mistake(where=where, name=f"{name}.bucket", rule=rule, got=f"{bucket.node.path} in {region}", remedy=remedy)


class _Names:
    def __init__(self, indices: Sequence[int]) -> None:
        self._indices = indices

    def __call__(self, position: int, key: str) -> str:
        return f"links[{self._indices[position]}].{key}" if key else "links"
