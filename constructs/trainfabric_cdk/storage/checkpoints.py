"""What a bucket is to the fleets and file systems of an app: checkpoints are in one that is nobody else's."""

from __future__ import annotations

from collections.abc import Iterator

from aws_cdk import aws_s3 as s3
from constructs import IConstruct

from trainfabric_plan.errors import Mistake

_REMEDY = "use two buckets: what Lustre exports late, or deletes, would be lost checkpoints"


def checkpoint_bucket_mistakes(scope: IConstruct, data: s3.IBucket, checkpoints: s3.IBucket) -> Iterator[Mistake]:
    """Checkpoints in the bucket of the data, or in one that a file system of this app links.

    Buckets are the same if they are one construct, or have one name, as far as names are known.
    """
    got = checkpoints.node.path
    if _are_one(data, checkpoints):
        rule = "another bucket than data_bucket, which Lustre links"
        yield Mistake(where=scope.node.path, name="checkpoint_bucket", rule=rule, got=got, remedy=_REMEDY)
        return
    for one in _ours(scope):
        if any(_are_one(linked, checkpoints) for linked in getattr(one, "linked_buckets", ())):
            rule = f"a bucket that no Lustre file system links, as {one.node.path} does"
            yield Mistake(where=scope.node.path, name="checkpoint_bucket", rule=rule, got=got, remedy=_REMEDY)


def holder_of_checkpoints(scope: IConstruct, bucket: s3.IBucket) -> str | None:
    """Path of a construct of this app whose checkpoint bucket this is, or `None`."""
    held = ((one, getattr(one, "checkpoint_bucket", None)) for one in _ours(scope))
    return next((one.node.path for one, other in held if other is not None and _are_one(other, bucket)), None)


def _ours(scope: IConstruct) -> Iterator[IConstruct]:
    """The constructs of trainfabric in the app: what an attribute of somebody else's is, nobody knows."""
    for one in scope.node.root.node.find_all():
        if any(kind.__module__.startswith("trainfabric_cdk.") for kind in type(one).__mro__):
            yield one


def is_imported(bucket: s3.IBucket) -> bool:
    """Whether a bucket exists already, as far as this app knows."""
    return bucket.node.default_child is None


def _are_one(one: s3.IBucket, other: s3.IBucket) -> bool:
    return one.bucket_name == other.bucket_name or one.node.path == other.node.path
