"""Buckets and the Lustre file system."""

from trainfabric_cdk.storage.buckets import CheckpointBucket, DataBucket
from trainfabric_cdk.storage.lustre import LustreLinkedToS3, LustreMount

__all__ = ["CheckpointBucket", "DataBucket", "LustreLinkedToS3", "LustreMount"]
