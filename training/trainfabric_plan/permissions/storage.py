"""What CloudFormation calls for buckets and file systems.

Source: the CloudFormation registry's handler permissions (schemas of 2026-10-20), without what only concerns properties
that trainfabric never sets; `handlers.LEFT_OUT` says which and why, and a test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from trainfabric_plan.permissions.handlers import Handler

STORAGE: Mapping[str, Handler] = MappingProxyType(
    {
        "AWS::FSx::DataRepositoryAssociation": Handler(
            create=(
                "fsx: CreateDataRepositoryAssociation DescribeDataRepositoryAssociations TagResource",
                "s3: GetBucketPolicy ListBucket PutBucketPolicy",
                "iam: AttachRolePolicy CreateServiceLinkedRole PutRolePolicy",
            ),
            update=(
                "fsx: DescribeDataRepositoryAssociations TagResource UntagResource UpdateDataRepositoryAssociation",
                "s3: GetBucketPolicy ListBucket PutBucketPolicy",
                "iam: AttachRolePolicy CreateServiceLinkedRole PutRolePolicy",
            ),
            delete=("fsx: DeleteDataRepositoryAssociation DescribeDataRepositoryAssociations",),
        ),
        "AWS::EFS::FileSystem": Handler(
            create=(
                "elasticfilesystem: CreateFileSystem DescribeBackupPolicy DescribeFileSystemPolicy DescribeFileSystems",
                "elasticfilesystem: DescribeLifecycleConfiguration DescribeReplicationConfigurations PutBackupPolicy",
                "elasticfilesystem: PutFileSystemPolicy PutLifecycleConfiguration TagResource",
                "elasticfilesystem: UpdateFileSystemProtection",
                "kms: CreateGrant DescribeKey GenerateDataKeyWithoutPlaintext",
                "iam: CreateServiceLinkedRole PassRole",
            ),
            update=(
                "elasticfilesystem: DeleteFileSystemPolicy DeleteTags DescribeBackupPolicy DescribeFileSystemPolicy",
                "elasticfilesystem: DescribeFileSystems DescribeLifecycleConfiguration",
                "elasticfilesystem: DescribeReplicationConfigurations ListTagsForResource PutBackupPolicy",
                "elasticfilesystem: PutFileSystemPolicy PutLifecycleConfiguration TagResource UntagResource",
                "elasticfilesystem: UpdateFileSystem UpdateFileSystemProtection",
                "kms: CreateGrant DescribeKey GenerateDataKeyWithoutPlaintext",
                "iam: CreateServiceLinkedRole PassRole",
            ),
            delete=("elasticfilesystem: DeleteFileSystem DescribeFileSystems DescribeReplicationConfigurations",),
        ),
        "AWS::EFS::MountTarget": Handler(
            create=(
                "elasticfilesystem: CreateMountTarget DescribeMountTargetSecurityGroups DescribeMountTargets",
                "ec2: CreateNetworkInterface DescribeNetworkInterfaces DescribeSubnets",
            ),
            update=(
                "elasticfilesystem: DescribeMountTargetSecurityGroups DescribeMountTargets",
                "elasticfilesystem: ModifyMountTargetSecurityGroups",
                "ec2: ModifyNetworkInterfaceAttribute",
            ),
            delete=("elasticfilesystem: DeleteMountTarget DescribeMountTargets", "ec2: DeleteNetworkInterface"),
        ),
        "AWS::S3::Bucket": Handler(
            create=(
                "s3: CreateBucket GetAccelerateConfiguration GetAnalyticsConfiguration GetBucketAbac GetBucketAcl",
                "s3: GetBucketCORS GetBucketLogging GetBucketMetadataTableConfiguration GetBucketNotification",
                "s3: GetBucketObjectLockConfiguration GetBucketOwnershipControls GetBucketPublicAccessBlock",
                "s3: GetBucketTagging GetBucketVersioning GetBucketWebsite GetEncryptionConfiguration",
                "s3: GetIntelligentTieringConfiguration GetInventoryConfiguration GetLifecycleConfiguration",
                "s3: GetMetricsConfiguration GetReplicationConfiguration ListBucket ListTagsForResource",
                "s3: PutBucketLogging PutBucketOwnershipControls PutBucketPublicAccessBlock PutBucketTagging",
                "s3: PutBucketVersioning PutEncryptionConfiguration PutLifecycleConfiguration TagResource",
                "iam: PassRole",
            ),
            update=(
                "s3: GetBucketMetadataTableConfiguration GetBucketTagging ListBucket ListTagsForResource",
                "s3: PutBucketLogging PutBucketOwnershipControls PutBucketPublicAccessBlock PutBucketTagging",
                "s3: PutBucketVersioning PutEncryptionConfiguration PutLifecycleConfiguration TagResource",
                "s3: UntagResource",
                "iam: PassRole",
            ),
            delete=("s3: DeleteBucket ListBucket",),
        ),
        "AWS::S3::BucketPolicy": Handler(
            create=("s3: GetBucketPolicy PutBucketPolicy",),
            update=("s3: GetBucketPolicy PutBucketPolicy",),
            delete=("s3: DeleteBucketPolicy GetBucketPolicy",),
        ),
        "AWS::FSx::Volume": Handler(
            create=("fsx: CreateVolume DescribeVolumes ListTagsForResource TagResource",),
            update=("fsx: DescribeVolumes ListTagsForResource TagResource UntagResource UpdateVolume",),
            delete=("fsx: DeleteVolume DescribeStorageVirtualMachines DescribeVolumes TagResource",),
        ),
        # The registry's schema of this type lists no permissions: FSx API reference and FSx for Lustre user guide
        # (Using service-linked roles; Encrypting data at rest), read 2026-11.
        "AWS::FSx::FileSystem": Handler(
            create=(
                "fsx: CreateFileSystem DescribeFileSystems ListTagsForResource TagResource",
                "iam: CreateServiceLinkedRole",
                "ec2: DescribeNetworkInterfaces DescribeSecurityGroups DescribeSubnets DescribeVpcs",
                "kms: CreateGrant Decrypt DescribeKey GenerateDataKey",
            ),
            update=("fsx: DescribeFileSystems TagResource UntagResource UpdateFileSystem",),
            delete=("fsx: DeleteFileSystem DescribeFileSystems",),
        ),
    }
)
