"""Buckets and the file system of an environment."""

from __future__ import annotations

from typing import Any

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from trainfabric_cdk.storage import CheckpointBucket, DataBucket, LustreLinkedToS3
from trainfabric_plan.environment import Bucket, Environment
from trainfabric_stacks.network_stack import NetworkStack

DELETE_CONTENTS = "trainfabric:deleteContents"
"""Context key, the second key to deleting the file system: the name of the environment whose data may go."""


class StorageStack(Stack):
    """Data bucket, checkpoint bucket, and Lustre linked to the data bucket.

    Attributes:
        data_bucket: Training data.
        checkpoint_bucket: Checkpoints and job records.
        lustre: The file system.
    """

    def __init__(
        self, scope: Construct, id: str, *, environment: Environment, network: NetworkStack, **stack: Any
    ) -> None:
        super().__init__(scope, id, **stack)
        storage = environment.storage
        self.data_bucket = self._existing("DataBucket", storage.data_bucket) or DataBucket(
            self, "DataBucket", retain=storage.retain
        )
        self.checkpoint_bucket = self._existing("CheckpointBucket", storage.checkpoint_bucket) or CheckpointBucket(
            self, "CheckpointBucket", retain=storage.retain
        )
        self.lustre = LustreLinkedToS3(
            self,
            "Lustre",
            vpc=network.vpc,
            subnet=network.node_subnet,
            client_security_group=network.node_security_group,
            bucket=self.data_bucket,
            capacity_gib=storage.lustre.capacity_gib,
            throughput_mbps_per_tib=storage.lustre.throughput_mbps_per_tib,
            compression=storage.lustre.compression,
            retain=storage.retain,
            delete_contents=self.node.try_get_context(DELETE_CONTENTS) == environment.name,
        )
        CfnOutput(self, "DataBucketName", value=self.data_bucket.bucket_name)
        CfnOutput(self, "CheckpointBucketName", value=self.checkpoint_bucket.bucket_name)
        CfnOutput(self, "FileSystemId", value=self.lustre.file_system_id)

    def _existing(self, id: str, bucket: Bucket | None) -> s3.IBucket | None:
        if bucket is None:
            return None
        arn = bucket.kms_key_arn
        key = kms.Key.from_key_arn(self, f"{id}Key", arn) if arn else None
        return s3.Bucket.from_bucket_attributes(self, id, bucket_name=bucket.name, encryption_key=key)
