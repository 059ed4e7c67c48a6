"""A Lustre file system that caches a bucket for the nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

from aws_cdk import Annotations, CfnResource, RemovalPolicy, Tags
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_fsx as fsx
from aws_cdk import aws_s3 as s3
from constructs import Construct

from trainfabric_cdk.errors import is_known, is_whole_number, refuse
from trainfabric_cdk.storage.lustre_rules import lustre_security_rules
from trainfabric_plan import contract
from trainfabric_plan.catalog.lustre import lustre_mistakes
from trainfabric_plan.errors import Mistake

VERSION = "2.15"
"""Lustre version of the file system; 2.15 is what current clients want (FSx user guide, 2026)."""

_EVENTS = ["NEW", "CHANGED", "DELETED"]


@dataclass(frozen=True, kw_only=True)
class LustreMount:
    """What a node needs to mount a file system: `<dns_name>@tcp:/<mount_name>`."""

    dns_name: str
    mount_name: str


class LustreLinkedToS3(Construct):
    """FSx for Lustre (PERSISTENT_2, SSD) whose directory `/data` is the prefix `data/` of a bucket, in both directions.

    Its security rules exist before it does: FSx refuses to create a file system whose group does not yet let Lustre
    through (aws-parallelcluster issue 6181). They are kept as long as it is, with the security group: without them a
    kept file system would be cut off, and its network interface would keep the group from being deleted anyway. For the
    same reason the network that it stands in cannot be deleted before it.

    Args:
        scope: Parent construct.
        id: Construct id.
        vpc: The network.
        subnet: The one subnet of nodes and file system: Lustre does not cross zones for free.
        client_security_group: Group of the nodes; gets the rules for Lustre, too.
        bucket: The bucket that is cached, in the same region.
        capacity_gib: 1200, or a multiple of 2400.
        throughput_mbps_per_tib: 125, 250, 500 or 1000.
        compression: `lz4` or `none`.
        retain: Keep the file system when the stack is destroyed.
        delete_contents: The second key: only with `retain=False` and this does the stack delete the file system,
            because FSx deletes the data with it.

    Attributes:
        file_system_id: FSx's id.
        mount: DNS name and mount name.
        security_group: Group of the file system.

    Raises:
        PropertyError: With every size that FSx refuses.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        vpc: ec2.IVpc,
        subnet: ec2.ISubnet,
        client_security_group: ec2.ISecurityGroup,
        bucket: s3.IBucket,
        capacity_gib: int = 1200,
        throughput_mbps_per_tib: int = 125,
        compression: Literal["lz4", "none"] = "lz4",
        retain: bool = True,
        delete_contents: bool = False,
    ) -> None:
        super().__init__(scope, id)
        refuse(self._mistakes(capacity_gib, throughput_mbps_per_tib, compression))
        self.security_group = ec2.SecurityGroup(
            self, "SecurityGroup", vpc=vpc, description="File servers of Lustre", allow_all_outbound=False
        )
        self._file_system = fsx.CfnFileSystem(
            self,
            "FileSystem",
            file_system_type="LUSTRE",
            file_system_type_version=VERSION,
            storage_type="SSD",
            storage_capacity=capacity_gib,
            subnet_ids=[subnet.subnet_id],
            security_group_ids=[self.security_group.security_group_id],
            lustre_configuration=fsx.CfnFileSystem.LustreConfigurationProperty(
                deployment_type="PERSISTENT_2",
                per_unit_storage_throughput=throughput_mbps_per_tib,
                data_compression_type=compression.upper(),
            ),
        )
        Tags.of(self._file_system).add("Name", self.node.path)
        rules = lustre_security_rules(self, self.security_group, client_security_group)
        self._file_system.node.add_dependency(*rules)
        group = cast(CfnResource, self.security_group.node.default_child)
        self._keep_unless_both_keys(retain, delete_contents, group, *rules, self._file_system, self._link(bucket))
        self.file_system_id = self._file_system.ref
        self.mount = LustreMount(
            dns_name=self._file_system.attr_dns_name, mount_name=self._file_system.attr_lustre_mount_name
        )

    def _mistakes(self, capacity_gib: int, throughput_mbps_per_tib: int, compression: str) -> list[Mistake]:
        where = self.node.path
        mistakes = []
        sizes = {"capacity_gib": capacity_gib, "throughput_mbps_per_tib": throughput_mbps_per_tib}
        wrong = {name: size for name, size in sizes.items() if is_known(size) and not is_whole_number(size)}
        for name, size in wrong.items():
            mistakes.append(Mistake(where=where, name=name, rule="a whole number", got=repr(size)))
        if not wrong and is_known(capacity_gib, throughput_mbps_per_tib):
            mistakes += lustre_mistakes(where, capacity_gib, throughput_mbps_per_tib)
        if is_known(compression) and compression not in ("lz4", "none"):
            mistakes.append(Mistake(where=where, name="compression", rule="lz4 or none", got=compression))
        return mistakes

    def _link(self, bucket: s3.IBucket) -> fsx.CfnDataRepositoryAssociation:
        return fsx.CfnDataRepositoryAssociation(
            self,
            "Data",
            file_system_id=self._file_system.ref,
            file_system_path=f"/{contract.DATA_PREFIX.rstrip('/')}",
            data_repository_path=bucket.s3_url_for_object(contract.DATA_PREFIX),
            batch_import_meta_data_on_create=True,
            s3=fsx.CfnDataRepositoryAssociation.S3Property(
                auto_import_policy=fsx.CfnDataRepositoryAssociation.AutoImportPolicyProperty(events=_EVENTS),
                auto_export_policy=fsx.CfnDataRepositoryAssociation.AutoExportPolicyProperty(events=_EVENTS),
            ),
        )

    def _keep_unless_both_keys(self, retain: bool, delete_contents: bool, *resources: CfnResource) -> None:
        delete = not retain and delete_contents
        for resource in resources:
            resource.apply_removal_policy(RemovalPolicy.DESTROY if delete else RemovalPolicy.RETAIN)
        if not retain and not delete_contents:
            Annotations.of(self).add_warning_v2(
                "trainfabric:fileSystemKept",
                "retain is off, but FSx deletes a file system with its data: it stays until delete_contents is on, too",
            )
