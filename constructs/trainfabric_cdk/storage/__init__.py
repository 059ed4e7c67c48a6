"""Buckets and the Lustre file system."""

from trainfabric_cdk.storage.buckets import CheckpointBucket, DataBucket
from trainfabric_cdk.storage.checkpoints import checkpoint_bucket_mistakes, is_imported
from trainfabric_cdk.storage.key import TrainingKey, grant_service_roles
from trainfabric_cdk.storage.lustre import ExistingLustre, LustreLinkedToS3, LustreMount
from trainfabric_cdk.storage.lustre_alarms import LustreAlarms
from trainfabric_cdk.storage.lustre_links import LustreLink
from trainfabric_cdk.storage.lustre_storage import LustreStorage
from trainfabric_cdk.storage.shared_home import SharedHome, SharedHomeMount

__all__ = [
    "CheckpointBucket",
    "DataBucket",
    "ExistingLustre",
    "LustreAlarms",
    "LustreLink",
    "LustreLinkedToS3",
    "LustreMount",
    "LustreStorage",
    "SharedHome",
    "SharedHomeMount",
    "TrainingKey",
    "checkpoint_bucket_mistakes",
    "grant_service_roles",
    "is_imported",
]
