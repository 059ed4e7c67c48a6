"""A small shared file system for people and their code, beside Lustre for data."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, cast

import jsii
from aws_cdk import Annotations, CfnResource, RemovalPolicy, Tags
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_efs as efs
from aws_cdk import aws_fsx as fsx
from aws_cdk import aws_kms as kms
from constructs import Construct

from trainfabric_cdk.acknowledge import NIST, acknowledge
from trainfabric_cdk.errors import is_known, is_whole_number, refuse
from trainfabric_cdk.forms import key_mistakes
from trainfabric_cdk.network import is_of_vpc, vpc_mistakes, warn_of_foreign_clients
from trainfabric_cdk.properties import checked_types
from trainfabric_plan.errors import Mistake

NFS_PORT = 2049
"""The one port that NFS 4.1 needs (RFC 8881, section 2.9.3), which is what nodes mount.

The user guide of OpenZFS lists 111 and 20001-20003, and UDP, as well (limit-access-security-groups, read 2026-11): port
mapper, mount, status and lock daemon of NFS 3. They stay closed.
"""

SMALLEST_GIB, LARGEST_GIB = 64, 524_288
"""What FSx for OpenZFS takes (FSx API reference, CreateFileSystem, StorageCapacity, botocore 1.44.8)."""

_OPENZFS_MBPS = 64
"""The smallest throughput of SINGLE_AZ_1 (FSx API reference, CreateFileSystemOpenZFSConfiguration, botocore 1.44.8)."""

_BACKUP_DAYS = 7
_OWN_BACKUPS = "EFS's own automatic backups are on; a plan of AWS Backup is the account's choice"

_OpenZfs = fsx.CfnFileSystem


@dataclass(frozen=True, kw_only=True)
class SharedHomeMount:
    """What a node needs to mount a shared home over NFS 4.1: `<server>:<path>`.

    `SharedHome` gives one; for a home that exists it is made of what EFS or FSx say, and its owner lets the nodes in.

    Attributes:
        server: DNS name or IP address.
        path: Exported path, `/` of EFS and `/fsx` of OpenZFS's root volume.
        vpc_id: Its VPC, if it is known: a fleet in another one is warned about.
        clients: Id of the security group that it lets in, likewise.
    """

    server: str
    path: str
    vpc_id: str | None = None
    clients: str | None = None


@jsii.implements(ec2.IConnectable)
class SharedHome(Construct):
    """EFS, which grows by itself, or FSx for OpenZFS, which answers faster: a directory that all nodes share.

    Encrypted at rest, reached from the nodes' security group alone and through one port. NFS itself is not encrypted on
    its way: TLS to EFS takes the package amazon-efs-utils, which no image of ours has, and OpenZFS has none; nodes and
    file system stand in one private subnet. OpenZFS exports to the ranges of VPC and subnet where both are known and
    the clients are of this VPC, else to every address that the security group lets in: whom `connections` lets in from
    elsewhere mounts a home on EFS. Both are backed up for a week or longer.

    Args:
        scope: Parent construct.
        id: Construct id.
        kind: `efs` or `openzfs`.
        vpc: The network.
        subnet: The one subnet of nodes and file system.
        client_security_group: Group of the nodes.
        capacity_gib: Of `openzfs`: 64 (if not given) to 524288 GiB. EFS has no size.
        encryption_key: KMS key; the service's own if not given.
        retain: Keep the file system when the stack is destroyed.
        delete_contents: The second key: only with `retain=False` and this does the stack delete the file system.

    Attributes:
        file_system_id: Id of the file system. `node.default_child` is its `CfnFileSystem`, of EFS or FSx.
        mount: What nodes mount.
        security_group: Group of the file system.

    Raises:
        PropertyError: If the kind or the size is none that AWS has, the key is of another region, or subnet or group
            are of another VPC.
    """

    @checked_types()
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        kind: Literal["efs", "openzfs"],
        vpc: ec2.IVpc,
        subnet: ec2.ISubnet,
        client_security_group: ec2.ISecurityGroup,
        capacity_gib: int | None = None,
        encryption_key: kms.IKey | None = None,
        retain: bool = True,
        delete_contents: bool = False,
    ) -> None:
        super().__init__(scope, id)
        sizes = _mistakes(self.node.path, kind, capacity_gib)
        of_the_key = key_mistakes(self, "encryption_key", encryption_key)
        refuse([*sizes, *of_the_key, *vpc_mistakes(self, vpc, subnet)])
        warn_of_foreign_clients(self, vpc, client_security_group)
        self.security_group = ec2.SecurityGroup(
            self, "SecurityGroup", vpc=vpc, description="Shared home of the nodes", allow_all_outbound=False
        )
        rule = self._rule(client_security_group)
        key = encryption_key.key_arn if encryption_key else None
        if kind == "efs":
            made, self.mount = self._efs(subnet, key, rule)
        else:
            size = SMALLEST_GIB if capacity_gib is None else capacity_gib
            ranges = _client_ranges(vpc, subnet, client_security_group)
            made, self.mount = self._openzfs(subnet, key, size, ranges)
            made.node.add_dependency(rule)
        clients = client_security_group.security_group_id
        self.mount = replace(self.mount, vpc_id=vpc.vpc_id, clients=clients)
        self.node.default_child = made
        self.file_system_id = made.ref
        Tags.of(made).add("Name", self.node.path)
        group = cast(CfnResource, self.security_group.node.default_child)
        # A kept EFS has no interface once its target is gone; that of a kept OpenZFS holds its group.
        beside = (group, rule) if kind == "openzfs" else ()
        self._keep_unless_both_keys(retain, delete_contents, made, *beside)

    @property
    def connections(self) -> ec2.Connections:
        """Of the file system's group, by default at the port of NFS."""
        return ec2.Connections(security_groups=[self.security_group], default_port=ec2.Port.tcp(NFS_PORT))

    def _rule(self, clients: ec2.ISecurityGroup) -> ec2.CfnSecurityGroupIngress:
        return ec2.CfnSecurityGroupIngress(
            self,
            "FromNodes",
            group_id=self.security_group.security_group_id,
            source_security_group_id=clients.security_group_id,
            ip_protocol="tcp",
            from_port=NFS_PORT,
            to_port=NFS_PORT,
            description="NFS",
        )

    def _efs(self, subnet: ec2.ISubnet, key: str | None, rule: CfnResource) -> tuple[CfnResource, SharedHomeMount]:
        made = efs.CfnFileSystem(
            self,
            "FileSystem",
            encrypted=True,
            kms_key_id=key,
            performance_mode="generalPurpose",
            throughput_mode="elastic",
            backup_policy=efs.CfnFileSystem.BackupPolicyProperty(status="ENABLED"),
        )
        acknowledge(made, f"{NIST}-EFSInBackupPlan", _OWN_BACKUPS)
        target = efs.CfnMountTarget(
            self,
            "Target",
            file_system_id=made.ref,
            subnet_id=subnet.subnet_id,
            security_groups=[self.security_group.security_group_id],
        )
        target.add_dependency(rule)
        # By address, not by name: nodes then wait for the mount target, and need no DNS host names in the VPC.
        return made, SharedHomeMount(server=target.attr_ip_address, path="/")

    def _openzfs(
        self, subnet: ec2.ISubnet, key: str | None, capacity_gib: int, ranges: list[str]
    ) -> tuple[CfnResource, SharedHomeMount]:
        made = _OpenZfs(
            self,
            "FileSystem",
            file_system_type="OPENZFS",
            storage_type="SSD",
            storage_capacity=capacity_gib,
            subnet_ids=[subnet.subnet_id],
            security_group_ids=[self.security_group.security_group_id],
            kms_key_id=key,
            open_zfs_configuration=_OpenZfs.OpenZFSConfigurationProperty(
                deployment_type="SINGLE_AZ_1",
                throughput_capacity=_OPENZFS_MBPS,
                automatic_backup_retention_days=_BACKUP_DAYS,
                copy_tags_to_backups=True,
                root_volume_configuration=_root_volume(ranges),
            ),
        )
        return made, SharedHomeMount(server=made.attr_dns_name, path="/fsx")

    def _keep_unless_both_keys(self, retain: bool, delete_contents: bool, *resources: CfnResource) -> None:
        delete = not retain and delete_contents
        for resource in resources:
            resource.apply_removal_policy(RemovalPolicy.DESTROY if delete else RemovalPolicy.RETAIN)
        if not retain and not delete_contents:
            Annotations.of(self).add_warning_v2(
                "trainfabric:sharedHomeKept",
                "retain is off, but a file system is deleted with its data: it stays until delete_contents is on, too",
            )


def _root_volume(ranges: list[str]) -> fsx.CfnFileSystem.RootVolumeConfigurationProperty:
    """Compressed; whoever mounts it as root may make people's directories."""
    options = ["rw", "crossmnt", "sync", "no_root_squash"]
    clients = [_OpenZfs.ClientConfigurationsProperty(clients=one, options=options) for one in ranges]
    return _OpenZfs.RootVolumeConfigurationProperty(
        data_compression_type="ZSTD",
        nfs_exports=[_OpenZfs.NfsExportsProperty(client_configurations=clients)],
    )


def _client_ranges(vpc: ec2.IVpc, subnet: ec2.ISubnet, clients: ec2.ISecurityGroup) -> list[str]:
    """Who may mount: the VPC's range, and the nodes' where it is of another block of the VPC.

    An imported VPC or subnet that does not say its range would shut nodes out, and so would any range of clients that
    are not known to be of this VPC; they are let in by group already.
    """
    if not is_of_vpc(clients, vpc):
        return ["*"]
    whole, nodes = _range(lambda: vpc.vpc_cidr_block), _range(lambda: subnet.ipv4_cidr_block)
    if whole is None or nodes is None:
        return ["*"]
    return [whole] if is_known(whole, nodes) and _lies_in(nodes, whole) else [whole, nodes]


def _range(read: Callable[[], str | None]) -> str | None:
    """A range, or `None` where an import left it out, which the CDK answers with an error."""
    try:
        return read() or None
    except RuntimeError:
        return None


def _lies_in(inner: str, outer: str) -> bool:
    """Not strict: until a VPC has been looked up, the CDK says 1.2.3.4/5 of it, which is the range of no network."""
    return _network(inner).subnet_of(_network(outer))


def _network(text: str) -> ipaddress.IPv4Network:
    return ipaddress.IPv4Network(text, strict=False)


def _mistakes(where: str, kind: object, capacity_gib: object) -> list[Mistake]:
    if not is_known(kind):
        remedy = "give it as text: what is made follows from it"
        return [Mistake(where=where, name="kind", rule="efs or openzfs", got="a token", remedy=remedy)]
    if kind not in ("efs", "openzfs"):
        return [Mistake(where=where, name="kind", rule="efs or openzfs", got=repr(kind))]
    if capacity_gib is None or not is_known(capacity_gib):
        return []
    if kind == "efs":
        rule = "left out for efs, which grows by itself"
        return [Mistake(where=where, name="capacity_gib", rule=rule, got=repr(capacity_gib))]
    if not is_whole_number(capacity_gib) or not SMALLEST_GIB <= capacity_gib <= LARGEST_GIB:
        rule = f"a whole number of GiB from {SMALLEST_GIB} to {LARGEST_GIB}"
        return [Mistake(where=where, name="capacity_gib", rule=rule, got=repr(capacity_gib))]
    return []
