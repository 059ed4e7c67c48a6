"""Buckets and the file system of an environment."""

from __future__ import annotations

from typing import Any, Literal

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from trainfabric_cdk.storage import (
    CheckpointBucket,
    DataBucket,
    ExistingLustre,
    LustreLink,
    LustreLinkedToS3,
    LustreStorage,
    SharedHome,
)
from trainfabric_plan.environment import Bucket, Environment
from trainfabric_stacks.network_stack import NetworkStack

DELETE_CONTENTS = "trainfabric:deleteContents"
"""Context key, the second key to deleting the file system: the name of the environment whose data may go."""


class StorageStack(Stack):
    """Data bucket, checkpoint bucket, and Lustre linked to the data bucket.

    Attributes:
        key: The customer key of what is made here, or `None`.
        data_bucket: Training data.
        checkpoint_bucket: Checkpoints and job records.
        lustre: The file system.
        home: The shared home, or `None`.
    """

    def __init__(
        self, scope: Construct, id: str, *, environment: Environment, network: NetworkStack, **stack: Any
    ) -> None:
        super().__init__(scope, id, **stack)
        storage = environment.storage
        self.key = kms.Key.from_key_arn(self, "Key", storage.kms_key_arn) if storage.kms_key_arn else None
        self.data_bucket = self._existing("DataBucket", storage.data_bucket) or DataBucket(
            self, "DataBucket", retain=storage.retain, encryption_key=self.key
        )
        self.checkpoint_bucket = self._existing("CheckpointBucket", storage.checkpoint_bucket) or CheckpointBucket(
            self, "CheckpointBucket", retain=storage.retain, encryption_key=self.key
        )
        made = storage.lustre.is_made
        self.lustre = self._lustre(environment, network) if made else self._existing_lustre(environment, network)
        self.home = self._home(storage.shared_home, environment, network) if storage.shared_home else None
        CfnOutput(self, "DataBucketName", value=self.data_bucket.bucket_name)
        CfnOutput(self, "CheckpointBucketName", value=self.checkpoint_bucket.bucket_name)
        CfnOutput(self, "FileSystemId", value=self.lustre.file_system_id)

    def _lustre(self, environment: Environment, network: NetworkStack) -> LustreLinkedToS3:
        storage = environment.storage
        linked = storage.links
        return LustreLinkedToS3(
            self,
            "Lustre",
            vpc=network.vpc,
            subnet=network.node_subnet,
            client_security_group=network.node_security_group,
            bucket=self.data_bucket if linked else None,
            storage=LustreStorage(storage.lustre.wish),
            compression=storage.lustre.compression,
            maintenance_window=storage.lustre.maintenance_window,
            links=[
                LustreLink(
                    path=link.path,
                    prefix=link.prefix,
                    bucket=self._existing(f"LinkedBucket{number}", link.bucket),
                    imports=link.imports,
                    exports=link.exports,
                )
                for number, link in enumerate(linked, start=1)
            ],
            encryption_key=self.key,
            retain=storage.retain,
            delete_contents=self.node.try_get_context(DELETE_CONTENTS) == environment.name,
        )

    def _home(self, kind: Literal["efs", "openzfs"], environment: Environment, network: NetworkStack) -> SharedHome:
        return SharedHome(
            self,
            "SharedHome",
            kind=kind,
            vpc=network.vpc,
            subnet=network.node_subnet,
            client_security_group=network.node_security_group,
            encryption_key=self.key,
            retain=environment.storage.retain,
            delete_contents=self.node.try_get_context(DELETE_CONTENTS) == environment.name,
        )

    def _existing_lustre(self, environment: Environment, network: NetworkStack) -> ExistingLustre:
        lustre = environment.storage.lustre
        group = lustre.security_group_id
        return ExistingLustre(
            self,
            "Lustre",
            file_system_id=lustre.file_system_id or "",
            mount_name=lustre.mount_name or "",
            security_group=ec2.SecurityGroup.from_security_group_id(self, "LustreGroup", group) if group else None,
            client_security_group=network.node_security_group if group else None,
            efa=lustre.efa,
        )

    def _existing(self, id: str, bucket: Bucket | None) -> s3.IBucket | None:
        if bucket is None:
            return None
        arn = bucket.kms_key_arn
        key = kms.Key.from_key_arn(self, f"{id}Key", arn) if arn else None
        return s3.Bucket.from_bucket_attributes(self, id, bucket_name=bucket.name, encryption_key=key)
