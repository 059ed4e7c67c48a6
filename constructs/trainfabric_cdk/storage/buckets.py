"""Buckets of a training environment: encrypted, closed to the public, reached over TLS only, kept by default."""

from __future__ import annotations

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from trainfabric_cdk.acknowledge import NIST, acknowledge_all
from trainfabric_cdk.errors import refuse
from trainfabric_cdk.forms import key_mistakes
from trainfabric_cdk.properties import checked_types

_NO_ACCESS_LOGS = (
    "Server access logs of sharded training data and checkpoints are bulk without an auditor; "
    "CloudTrail data events tell who read what where that is asked"
)

_NO_REPLICA = (
    "S3 keeps every object in at least three zones; a replica elsewhere doubles terabytes and is its owner's choice"
)
_KEYS_OF_S3 = "Encrypted with S3's own keys; give encryption_key for a key of your own"
_ONE_VERSION = (
    "Every checkpoint has keys of its own and is never written over; old versions would be terabytes nobody reads"
)


class _TrainingBucket(s3.Bucket):
    """What both buckets have in common. Its contents are never deleted with the stack, whatever `retain` says."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        retain: bool,
        versioned: bool,
        lifecycle_rules: list[s3.LifecycleRule],
        encryption_key: kms.IKey | None,
    ) -> None:
        super().__init__(
            scope,
            id,
            encryption=s3.BucketEncryption.KMS if encryption_key else s3.BucketEncryption.S3_MANAGED,
            encryption_key=encryption_key,
            bucket_key_enabled=True if encryption_key else None,
            enforce_ssl=True,
            minimum_tls_version=1.2,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            versioned=versioned,
            lifecycle_rules=lifecycle_rules,
            removal_policy=RemovalPolicy.RETAIN if retain else RemovalPolicy.DESTROY,
        )
        refuse(key_mistakes(self, "encryption_key", encryption_key))
        if self.policy and retain:
            # Without it a kept bucket could be read without TLS.
            self.policy.apply_removal_policy(RemovalPolicy.RETAIN)
        reasons = {
            "AwsSolutions-S1": _NO_ACCESS_LOGS,
            f"{NIST}-S3BucketLoggingEnabled": _NO_ACCESS_LOGS,
            f"{NIST}-S3BucketReplicationEnabled": _NO_REPLICA,
        }
        if not encryption_key:
            reasons[f"{NIST}-S3DefaultEncryptionKMS"] = _KEYS_OF_S3
        if not versioned:
            reasons[f"{NIST}-S3BucketVersioningEnabled"] = _ONE_VERSION
        acknowledge_all(self, reasons)


class DataBucket(_TrainingBucket):
    """The bucket of the training data, which Lustre caches.

    It keeps what was overwritten or deleted for 30 days: Lustre exports deletions too, so `rm -r` on a node reaches it.

    Args:
        scope: Parent construct.
        id: Construct id.
        retain: Keep the bucket when the stack is destroyed. `False` deletes it only if it is empty.
        encryption_key: KMS key of the bucket; S3's own if not given.

    Raises:
        PropertyError: If the key is known to be of another region.
    """

    @checked_types()
    def __init__(
        self, scope: Construct, id: str, *, retain: bool = True, encryption_key: kms.IKey | None = None
    ) -> None:
        rules = [
            _abort_uploads(),
            s3.LifecycleRule(id="ExpireOldVersions", noncurrent_version_expiration=Duration.days(30)),
        ]
        super().__init__(scope, id, retain=retain, versioned=True, lifecycle_rules=rules, encryption_key=encryption_key)


class CheckpointBucket(_TrainingBucket):
    """The bucket of checkpoints and job records.

    Not versioned: every checkpoint has keys of its own, and those that retention removes are terabytes that nobody
    wants to pay for another month.

    Args:
        scope: Parent construct.
        id: Construct id.
        retain: Keep the bucket when the stack is destroyed. `False` deletes it only if it is empty.
        encryption_key: KMS key of the bucket; S3's own if not given.

    Raises:
        PropertyError: If the key is known to be of another region.
    """

    @checked_types()
    def __init__(
        self, scope: Construct, id: str, *, retain: bool = True, encryption_key: kms.IKey | None = None
    ) -> None:
        super().__init__(
            scope,
            id,
            retain=retain,
            versioned=False,
            lifecycle_rules=[_abort_uploads()],
            encryption_key=encryption_key,
        )


def _abort_uploads() -> s3.LifecycleRule:
    """Parts of an upload that a lost node never finished are billed until someone aborts it."""
    return s3.LifecycleRule(id="AbortUnfinishedUploads", abort_incomplete_multipart_upload_after=Duration.days(2))
