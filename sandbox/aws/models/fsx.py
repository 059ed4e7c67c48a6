"""FSx for Lustre: the file system is moto's own object, the data repository association a record."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from moto.ec2.models import ec2_backends
from moto.fsx.models import fsx_backends
from moto.s3.models import s3_backends

from sandbox.aws.models.base import Kind, Resource, existing, random_hex, refuse
from trainfabric_plan.lustre import Deployment, LustreWish, lustre_mistakes


class FileSystem(Resource):
    """A file system in moto's FSx, with the life cycle and the mount name that moto does not give it."""

    TYPE = "AWS::FSx::FileSystem"
    KIND = Kind.REAL
    ATTRIBUTES = ("DNSName", "LustreMountName", "ResourceARN")
    API = ("fsx", "CreateFileSystem")

    @classmethod
    def checked(cls, properties: dict[str, Any]) -> dict[str, Any]:
        """Besides the API's model, the sizes that FSx for Lustre has."""
        typed = super().checked(properties)
        refuse(_size_problems(typed))
        return typed

    def create(self) -> str:
        """Create the file system in subnets and security groups that exist."""
        properties = self.properties
        ec2 = ec2_backends[self.account][self.region]
        for subnet in properties["SubnetIds"]:
            existing("subnet", subnet, ec2.get_subnet)
        for group in properties.get("SecurityGroupIds", []):
            existing("security group", group, ec2.get_security_group_from_id)
        self.mount_name = random_hex(8)
        self.file_system = self._create()
        self.file_system.to_dict = partial(
            _described, type(self.file_system).to_dict, self.file_system, self.mount_name
        )
        return str(self.file_system.file_system_id)

    def update(self, properties: dict[str, Any]) -> None:
        """Change capacity and configuration in place: the id and the data stay."""
        self.properties = properties
        self.file_system.storage_capacity = properties.get("StorageCapacity")
        self.file_system.lustre_configuration = dict(properties.get("LustreConfiguration", {}))

    def remove(self) -> None:
        """Delete it from moto."""
        fsx_backends[self.account][self.region].file_systems.pop(self.physical_resource_id, None)

    def attribute(self, name: str) -> str:
        """DNS name, mount name or ARN."""
        found = {
            "DNSName": self.file_system.dns_name,
            "LustreMountName": self.mount_name,
            "ResourceARN": self.file_system.resource_arn,
        }
        return str(found[name])

    def _create(self) -> Any:
        properties = self.properties
        return fsx_backends[self.account][self.region].create_file_system(
            client_request_token=self.name,
            file_system_type=properties["FileSystemType"],
            file_system_type_version=properties.get("FileSystemTypeVersion"),
            storage_capacity=properties.get("StorageCapacity"),
            storage_type=properties.get("StorageType", "SSD"),
            subnet_ids=properties["SubnetIds"],
            security_group_ids=properties.get("SecurityGroupIds", []),
            tags=properties.get("Tags"),
            kms_key_id=properties.get("KmsKeyId"),
            windows_configuration=properties.get("WindowsConfiguration"),
            lustre_configuration=dict(properties.get("LustreConfiguration", {})),
            ontap_configuration=properties.get("OntapConfiguration"),
            open_zfs_configuration=properties.get("OpenZFSConfiguration"),
        )


def _size_problems(properties: dict[str, Any]) -> Iterator[str]:
    deployment = _deployment(properties)
    if deployment is None:
        return
    for broken in lustre_mistakes("FSx for Lustre", _wish(properties, deployment)):
        remedy = f"; {broken.remedy}" if broken.remedy else ""
        yield f"property {_NAMES.get(broken.name, broken.name)} must be {broken.rule}, got {broken.got}{remedy}"
    if deployment == "persistent_2" and "PerUnitStorageThroughput" not in properties.get("LustreConfiguration", {}):
        yield "property LustreConfiguration.PerUnitStorageThroughput must be given with PERSISTENT_2, got nothing"


def _deployment(properties: dict[str, Any]) -> Deployment | None:
    """The kind of file system that this is; `None` for those that trainfabric knows no rules of."""
    kind = properties.get("LustreConfiguration", {}).get("DeploymentType")
    return _DEPLOYMENTS.get((kind, properties.get("StorageType", "SSD")))


def _wish(properties: dict[str, Any], deployment: Deployment) -> LustreWish:
    lustre = properties.get("LustreConfiguration", {})
    return LustreWish(
        deployment=deployment,
        capacity_gib=properties.get("StorageCapacity"),
        throughput_mbps_per_tib=lustre.get("PerUnitStorageThroughput"),
        throughput_mbps=lustre.get("ThroughputCapacity"),
        read_cache_gib=lustre.get("DataReadCacheConfiguration", {}).get("SizeGiB"),
        metadata_iops=lustre.get("MetadataConfiguration", {}).get("Iops"),
        efa=lustre.get("EfaEnabled", False),
        maintenance_window=lustre.get("WeeklyMaintenanceStartTime"),
        compression=lustre.get("DataCompressionType", "NONE").lower(),
    )


_DEPLOYMENTS: dict[tuple[str | None, str], Deployment] = {
    ("PERSISTENT_2", "SSD"): "persistent_2",
    ("PERSISTENT_2", "INTELLIGENT_TIERING"): "intelligent_tiering",
    ("SCRATCH_2", "SSD"): "scratch_2",
}
_NAMES = {
    "capacity_gib": "StorageCapacity",
    "throughput_mbps_per_tib": "LustreConfiguration.PerUnitStorageThroughput",
    "throughput_mbps": "LustreConfiguration.ThroughputCapacity",
    "read_cache_gib": "LustreConfiguration.DataReadCacheConfiguration.SizeGiB",
    "metadata_iops": "LustreConfiguration.MetadataConfiguration.Iops",
    "efa": "LustreConfiguration.EfaEnabled",
    "maintenance_window": "LustreConfiguration.WeeklyMaintenanceStartTime",
    "compression": "LustreConfiguration.DataCompressionType",
}


def _described(to_dict: Any, file_system: Any, mount_name: str) -> dict[str, Any]:
    described: dict[str, Any] = to_dict(file_system)
    lustre = {**described.get("LustreConfiguration", {}), "MountName": mount_name}
    return {**described, "Lifecycle": "AVAILABLE", "LustreConfiguration": lustre}


class DataRepositoryAssociation(Resource):
    """A link between a path of the file system and a bucket; moto's FSx has none, so it is a record."""

    TYPE = "AWS::FSx::DataRepositoryAssociation"
    ATTRIBUTES = ("AssociationId", "ResourceARN")
    API = ("fsx", "CreateDataRepositoryAssociation")

    def create(self) -> str:
        """Check that both ends exist."""
        file_systems = fsx_backends[self.account][self.region].file_systems
        existing("file system", self.properties["FileSystemId"], file_systems.get)
        path = self.properties["DataRepositoryPath"]
        if not path.startswith("s3://"):
            refuse([f"property DataRepositoryPath must start with s3://, got {path}"])
        bucket = path.removeprefix("s3://").split("/")[0]
        existing("bucket", bucket, s3_backends[self.account]["aws"].get_bucket)
        return f"dra-{random_hex()}"

    def update(self, properties: dict[str, Any]) -> None:
        """Take the new policies; the id stays."""
        self.properties = properties

    def attribute(self, name: str) -> str:
        """Id or ARN."""
        if name == "AssociationId":
            return self.physical_resource_id
        file_system = self.properties["FileSystemId"]
        return f"arn:aws:fsx:{self.region}:{self.account}:association/{file_system}/{self.physical_resource_id}"
