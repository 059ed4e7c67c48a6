"""A Lustre file system for the nodes: one that caches buckets, or one that exists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

import jsii
from aws_cdk import Annotations, CfnResource, RemovalPolicy, Stack, Tags
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_fsx as fsx
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from constructs import Construct

from trainfabric_cdk.errors import is_known, refuse
from trainfabric_cdk.forms import existing_lustre_mistakes, key_mistakes
from trainfabric_cdk.network import vpc_mistakes, warn_of_foreign_clients, zone_of
from trainfabric_cdk.properties import checked_types
from trainfabric_cdk.storage.lustre_alarms import LustreAlarms
from trainfabric_cdk.storage.lustre_links import DATA_LINK, LustreLink, links_mistakes, make_links
from trainfabric_cdk.storage.lustre_rules import efa_security_rules, lustre_security_rules
from trainfabric_cdk.storage.lustre_storage import LustreStorage, asked, judged, wish_mistakes
from trainfabric_plan.errors import Mistake
from trainfabric_plan.lustre import LustreSize, LustreWish, lustre_size
from trainfabric_plan.lustre.facts import VERSION

_Lustre = fsx.CfnFileSystem.LustreConfigurationProperty


@dataclass(frozen=True, kw_only=True)
class LustreMount:
    """What a node needs to mount a file system: `<dns_name>@tcp:/<mount_name>`.

    Attributes:
        dns_name: DNS name.
        mount_name: Mount name.
        availability_zone: Zone of its servers, if it is known: a fleet in another one is warned about.
        vpc_id: VPC of its servers, likewise.
        clients: Id of the security group that it lets in, likewise.
    """

    dns_name: str
    mount_name: str
    availability_zone: str | None = None
    vpc_id: str | None = None
    clients: str | None = None


class ExistingLustre(Construct):
    """A Lustre file system that exists: nothing of it is made or changed here.

    Args:
        scope: Parent construct.
        id: Construct id.
        file_system_id: FSx's id, `fs-…`.
        mount_name: Its mount name (`aws fsx describe-file-systems` shows it).
        security_group: Its group, which gets the rules that let the nodes in; its owner has opened it if not given.
        client_security_group: Group of the nodes, which gets the other ends of these rules.
        efa: Whether it is EFA-enabled, which needs all traffic between both groups.
        availability_zone: Its zone; nothing is said of a fleet in another zone if it is not given.

    Attributes:
        file_system_id: As given.
        mount: DNS name and mount name.

    Raises:
        PropertyError: If an id or name is none of FSx's, or only one of the two groups is given.
    """

    @checked_types()
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        file_system_id: str,
        mount_name: str,
        security_group: ec2.ISecurityGroup | None = None,
        client_security_group: ec2.ISecurityGroup | None = None,
        efa: bool = False,
        availability_zone: str | None = None,
    ) -> None:
        super().__init__(scope, id)
        refuse(existing_lustre_mistakes(self, file_system_id, mount_name))
        if (security_group is None) != (client_security_group is None):
            missing = "security_group" if security_group is None else "client_security_group"
            rule = "given together with the other group: a rule has two ends"
            refuse([Mistake(where=self.node.path, name=missing, rule=rule, got="nothing")])
        if security_group and client_security_group:
            rules = efa_security_rules if efa else lustre_security_rules
            rules(self, security_group, client_security_group, among_servers=False)
        self.file_system_id = file_system_id
        stack = Stack.of(self)
        dns_name = f"{file_system_id}.fsx.{stack.region}.{stack.url_suffix}"
        self.mount = LustreMount(
            dns_name=dns_name,
            mount_name=mount_name,
            availability_zone=availability_zone,
            clients=client_security_group.security_group_id if client_security_group else None,
        )


@jsii.implements(ec2.IConnectable)
class LustreLinkedToS3(Construct):
    """FSx for Lustre whose directories are prefixes of buckets, in both directions.

    If nothing else is said it is PERSISTENT_2 on SSD, and its directory `/data` is the prefix `data/` of the bucket.

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
        bucket: The bucket that is cached, in the same region. Not needed if every link names its own, nor for
            `LustreStorage.intelligent_tiering`, which FSx links to none.
        storage: A `LustreStorage`; PERSISTENT_2 if not given.
        capacity_gib: Of PERSISTENT_2 without `storage`: 1200 (if not given), or a multiple of 2400.
        throughput_mbps_per_tib: Of the same: 125 (if not given), 250, 500 or 1000.
        compression: `lz4` or `none`.
        links: 1 to 8 `LustreLink`; `/data` to `data/` of the bucket if not given.
        encryption_key: KMS key of the file system; FSx's own if not given. Not for SCRATCH_2.
        maintenance_window: `d:HH:MM`, weekly, UTC; FSx chooses if not given.
        alarms: Alarms of free space and of exports that lag behind.
        alarm_topic: Where they are told.
        retain: Keep the file system when the stack is destroyed.
        delete_contents: The second key: only with `retain=False` and this does the stack delete the file system,
            because FSx deletes the data with it.

    Attributes:
        file_system_id: FSx's id. `node.default_child` is its `CfnFileSystem`.
        mount: DNS name and mount name.
        security_group: Group of the file system.
        linked_buckets: The bucket of each link; none of them is a checkpoint bucket.
        size: What FSx makes, and why of this size. Values that are tokens have stand-ins here.
        alarms: The alarms, or `None`.

    Raises:
        PropertyError: With everything that FSx would refuse.
    """

    @checked_types()
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        vpc: ec2.IVpc,
        subnet: ec2.ISubnet,
        client_security_group: ec2.ISecurityGroup,
        bucket: s3.IBucket | None = None,
        storage: LustreStorage | None = None,
        capacity_gib: int | None = None,
        throughput_mbps_per_tib: int | None = None,
        compression: Literal["lz4", "none"] = "lz4",
        links: Sequence[LustreLink] | None = None,
        encryption_key: kms.IKey | None = None,
        maintenance_window: str | None = None,
        alarms: bool = True,
        alarm_topic: sns.ITopic | None = None,
        retain: bool = True,
        delete_contents: bool = False,
    ) -> None:
        super().__init__(scope, id)
        wish = asked(
            storage,
            capacity_gib=capacity_gib,
            throughput_mbps_per_tib=throughput_mbps_per_tib,
            compression=compression,
            maintenance_window=maintenance_window,
        )
        links = _default_links(wish) if links is None else tuple(links)
        refuse(
            [
                *_flat_sizes(self, storage, capacity_gib, throughput_mbps_per_tib),
                *wish_mistakes(self, wish),
                *_link_mistakes(self, wish, links, bucket),
                *_key_mistakes(self, wish, encryption_key),
                *key_mistakes(self, "encryption_key", encryption_key),
                *vpc_mistakes(self, vpc, subnet),
            ]
        )
        warn_of_foreign_clients(self, vpc, client_security_group)
        self.size = lustre_size(judged(wish))
        if self.size.beyond_the_quota:
            Annotations.of(self).add_warning_v2("trainfabric:lustreBeyondQuota", self.size.beyond_the_quota)
        self.security_group = ec2.SecurityGroup(
            self, "SecurityGroup", vpc=vpc, description="File servers of Lustre", allow_all_outbound=False
        )
        self._file_system = self._make(wish, subnet, encryption_key)
        self.node.default_child = self._file_system
        Tags.of(self._file_system).add("Name", self.node.path)
        rules_of = efa_security_rules if wish.efa else lustre_security_rules
        rules = rules_of(self, self.security_group, client_security_group)
        self._file_system.node.add_dependency(*rules)
        self.file_system_id = self._file_system.ref
        made = make_links(self, self.file_system_id, links, bucket)
        self.linked_buckets = tuple(one for one in (link.bucket or bucket for link in links) if one is not None)
        group = cast(CfnResource, self.security_group.node.default_child)
        self._keep_unless_both_keys(retain, delete_contents, group, *rules, self._file_system, *made)
        self.mount = LustreMount(
            dns_name=self._file_system.attr_dns_name,
            mount_name=self._file_system.attr_lustre_mount_name,
            availability_zone=zone_of(subnet),
            vpc_id=vpc.vpc_id,
            clients=client_security_group.security_group_id,
        )
        self.alarms = self._alarms(wish, links, alarm_topic) if alarms else None

    @property
    def connections(self) -> ec2.Connections:
        """Of the file system's group, without a default port: a client needs those of `lustre_security_rules`.

        Rules that are made with it go with the stack, whether or not the file system is kept.
        """
        return ec2.Connections(security_groups=[self.security_group])

    def _make(self, wish: LustreWish, subnet: ec2.ISubnet, key: kms.IKey | None) -> fsx.CfnFileSystem:
        return fsx.CfnFileSystem(
            self,
            "FileSystem",
            file_system_type="LUSTRE",
            file_system_type_version=VERSION,
            storage_type=self.size.storage_type,
            storage_capacity=_token_or(wish.capacity_gib, self.size.capacity_gib),
            subnet_ids=[subnet.subnet_id],
            security_group_ids=[self.security_group.security_group_id],
            kms_key_id=key.key_arn if key else None,
            lustre_configuration=_configuration(wish, self.size),
        )

    def _alarms(self, wish: LustreWish, links: Sequence[LustreLink], topic: sns.ITopic | None) -> LustreAlarms:
        return LustreAlarms(
            self,
            "Alarms",
            file_system_id=self.file_system_id,
            capacity_gib=_token_or(wish.capacity_gib, self.size.capacity_gib),
            exports=any(link.exports for link in links),
            topic=topic,
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


def _default_links(wish: LustreWish) -> tuple[LustreLink, ...]:
    return () if wish.deployment == "intelligent_tiering" else (DATA_LINK,)


def _configuration(wish: LustreWish, size: LustreSize) -> fsx.CfnFileSystem.LustreConfigurationProperty:
    metadata = _token_or(wish.metadata_iops, size.metadata_iops)
    return _Lustre(
        deployment_type=size.deployment_type,
        per_unit_storage_throughput=_token_or(wish.throughput_mbps_per_tib, size.throughput_mbps_per_tib),
        throughput_capacity=_token_or(wish.throughput_mbps, size.throughput_capacity_mbps),
        data_read_cache_configuration=_read_cache(wish, size),
        metadata_configuration=_metadata(metadata) if size.metadata_configured or metadata is not None else None,
        efa_enabled=True if size.efa else None,
        data_compression_type=wish.compression.upper() if is_known(wish.compression) else wish.compression,
        weekly_maintenance_start_time=wish.maintenance_window,
    )


def _metadata(iops: int | None) -> fsx.CfnFileSystem.MetadataConfigurationProperty:
    mode = "AUTOMATIC" if iops is None else "USER_PROVISIONED"
    return fsx.CfnFileSystem.MetadataConfigurationProperty(mode=mode, iops=iops)


def _read_cache(wish: LustreWish, size: LustreSize) -> fsx.CfnFileSystem.DataReadCacheConfigurationProperty | None:
    if size.storage_type != "INTELLIGENT_TIERING":
        return None
    cache = _token_or(wish.read_cache_gib, size.read_cache_gib)
    mode = "PROPORTIONAL_TO_THROUGHPUT_CAPACITY" if cache is None else "USER_PROVISIONED"
    return fsx.CfnFileSystem.DataReadCacheConfigurationProperty(sizing_mode=mode, size_gib=cache)


def _token_or(given: int | None, worked_out: int | None) -> int | None:
    """A value that is settled at deploy time as it is; else what follows from the wish."""
    return given if given is not None and not is_known(given) else worked_out


def _flat_sizes(
    scope: Construct, storage: LustreStorage | None, capacity_gib: int | None, throughput_mbps_per_tib: int | None
) -> list[Mistake]:
    flat = {"capacity_gib": capacity_gib, "throughput_mbps_per_tib": throughput_mbps_per_tib}
    if storage is None:
        return []
    rule, remedy = "left out when storage is given", "give it to the LustreStorage"
    return [
        Mistake(where=scope.node.path, name=name, rule=rule, got=str(value), remedy=remedy)
        for name, value in flat.items()
        if value is not None
    ]


def _link_mistakes(
    scope: Construct, wish: LustreWish, links: Sequence[LustreLink], bucket: s3.IBucket | None
) -> list[Mistake]:
    if wish.deployment != "intelligent_tiering":
        none = Mistake(
            where=scope.node.path, name="links", rule="at least one, or left out for the default", got="none"
        )
        return links_mistakes(scope, links, bucket) if links else [none]
    rule = "left out with intelligent_tiering, which FSx links to no bucket"
    given = {"bucket": bucket, "links": links or None}
    return [
        Mistake(where=scope.node.path, name=name, rule=rule, remedy="use LustreStorage.persistent_2()")
        for name, value in given.items()
        if value is not None
    ]


def _key_mistakes(scope: Construct, wish: LustreWish, key: kms.IKey | None) -> list[Mistake]:
    if key is None or wish.deployment != "scratch_2":
        return []
    rule = "left out with scratch_2, which FSx encrypts with a key of its own"
    return [Mistake(where=scope.node.path, name="encryption_key", rule=rule, remedy="use LustreStorage.persistent_2()")]
