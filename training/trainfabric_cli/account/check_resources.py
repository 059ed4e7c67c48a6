"""Whether what an environment file names exists and is where it must be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainfabric_cli.account.answers import Unknown, ask
from trainfabric_cli.account.checks import Check, judged
from trainfabric_cli.account.needs import nodes_of
from trainfabric_cli.account.session import Account
from trainfabric_plan.environment import Bucket, Environment

_ABSENT = ("404", "NoSuchBucket", "NotFound", "NotFoundException")


def resource_checks(account: Account, environment: Environment) -> list[Check]:
    """Checks of everything that exists already and is given by its id."""
    return [
        *_network(account, environment),
        *_buckets(account, environment),
        *_keys(account, environment),
        *_image(account, environment),
        *_file_system(account, environment),
    ]


def _one(answer: list[Mapping[str, Any]] | Unknown) -> Mapping[str, Any] | Unknown:
    """The one thing of a list; what AWS says is not there is nothing, not unknown."""
    if isinstance(answer, Unknown):
        return {} if answer.why.endswith(_ABSENT) else answer
    return answer[0] if answer else {}


def _network(account: Account, environment: Environment) -> list[Check]:
    given = environment.network
    if given.vpc_id is None:
        return []
    ec2 = account.client("ec2", environment.region)
    vpc = ask("ec2:DescribeVpcs", lambda: ec2.describe_vpcs(VpcIds=[given.vpc_id])["Vpcs"])
    subnet = ask("ec2:DescribeSubnets", lambda: ec2.describe_subnets(SubnetIds=[given.subnet_id])["Subnets"])
    checks = [
        judged("VPC", _one(vpc), given.vpc_id, fits=bool, shown=_shown("VpcId"), remedy="correct network.vpc_id"),
        _subnet(_one(subnet), environment),
    ]
    if given.route_table_id is None:
        return checks
    tables = ask(
        "ec2:DescribeRouteTables",
        lambda: ec2.describe_route_tables(RouteTableIds=[given.route_table_id])["RouteTables"],
    )
    return [*checks, _in_vpc("route table", _one(tables), str(given.route_table_id), given.vpc_id)]


def _in_vpc(name: str, answer: Mapping[str, Any] | Unknown, identifier: str, vpc_id: str) -> Check:
    return judged(
        name,
        answer,
        f"{identifier} in {vpc_id}",
        fits=lambda found: found.get("VpcId") == vpc_id,
        shown=lambda found: f"in {found['VpcId']}" if found else "none",
        remedy="correct network.route_table_id",
    )


def _subnet(answer: Mapping[str, Any] | Unknown, environment: Environment) -> Check:
    given, zone = environment.network, environment.availability_zone
    addresses = sum(nodes.count for nodes in nodes_of(environment))

    def fits(found: Mapping[str, Any]) -> bool:
        right = found.get("VpcId") == given.vpc_id and found.get("AvailabilityZone") == zone
        return right and found["AvailableIpAddressCount"] >= addresses

    def shown(found: Mapping[str, Any]) -> str:
        if not found:
            return "none"
        return f"{found['VpcId']}, {found['AvailabilityZone']}, {found['AvailableIpAddressCount']} addresses free"

    needed = f"{given.subnet_id} in {given.vpc_id} and {zone}, {addresses} addresses or more"
    return judged(
        "subnet", answer, needed, fits=fits, shown=shown, remedy="correct network.subnet_id, or make room in it"
    )


def _buckets(account: Account, environment: Environment) -> list[Check]:
    storage = environment.storage
    given = [storage.data_bucket, storage.checkpoint_bucket, *(link.bucket for link in storage.lustre.links or ())]
    named = {bucket.name: bucket for bucket in given if bucket}
    return [_bucket(account, bucket, environment.region) for bucket in named.values()]


def _bucket(account: Account, bucket: Bucket, region: str) -> Check:
    s3 = account.client("s3", region)
    answer = ask("s3:ListBucket", lambda: str(s3.head_bucket(Bucket=bucket.name).get("BucketRegion", region)))
    if isinstance(answer, Unknown) and answer.why.endswith(_ABSENT):
        answer = "no such bucket"
    return judged(
        f"bucket {bucket.name}",
        answer,
        f"in {region}",
        fits=lambda found: found == region,
        remedy="correct its name, or leave it out and one is made",
    )


def _keys(account: Account, environment: Environment) -> list[Check]:
    storage = environment.storage
    buckets = (storage.data_bucket, storage.checkpoint_bucket)
    arns = [storage.kms_key_arn, *(bucket.kms_key_arn for bucket in buckets if bucket)]
    kms = account.client("kms", environment.region)
    checks = []
    for arn in dict.fromkeys(one for one in arns if one):
        answer = ask("kms:DescribeKey", lambda arn=arn: str(kms.describe_key(KeyId=arn)["KeyMetadata"]["KeyState"]))  # type: ignore[misc]
        if isinstance(answer, Unknown) and answer.why.endswith(_ABSENT):
            answer = "no such key"
        remedy = "correct its ARN, or enable it"
        checks.append(
            judged(f"key {arn.rsplit('/', 1)[1]}", answer, "Enabled", fits=lambda one: one == "Enabled", remedy=remedy)
        )
    return checks


def _image(account: Account, environment: Environment) -> list[Check]:
    image = environment.fleet.ami_id
    if image is None:
        return []
    ec2 = account.client("ec2", environment.region)
    answer = ask("ec2:DescribeImages", lambda: ec2.describe_images(ImageIds=[image])["Images"])
    root = environment.fleet.root_device

    def shown(found: Mapping[str, Any]) -> str:
        return f"{found['State']}, root device {found.get('RootDeviceName')}" if found else "none"

    def fits(found: Mapping[str, Any]) -> bool:
        return found.get("State") == "available" and found.get("RootDeviceName") == root

    remedy = "correct fleet.ami_id or fleet.root_device"
    return [
        judged(f"image {image}", _one(answer), f"available, root device {root}", fits=fits, shown=shown, remedy=remedy)
    ]


def _file_system(account: Account, environment: Environment) -> list[Check]:
    lustre = environment.storage.lustre
    if lustre.file_system_id is None:
        return []
    fsx = account.client("fsx", environment.region)
    answer = ask(
        "fsx:DescribeFileSystems",
        lambda: fsx.describe_file_systems(FileSystemIds=[lustre.file_system_id])["FileSystems"],
    )

    def mount_name(found: Mapping[str, Any]) -> str:
        return str(found.get("LustreConfiguration", {}).get("MountName", "")) if found else ""

    return [
        judged(
            f"file system {lustre.file_system_id}",
            _one(answer),
            f"AVAILABLE, mount name {lustre.mount_name}",
            fits=lambda found: found.get("Lifecycle") == "AVAILABLE" and mount_name(found) == lustre.mount_name,
            shown=lambda found: f"{found['Lifecycle']}, mount name {mount_name(found)}" if found else "none",
            remedy="correct storage.lustre.file_system_id or mount_name",
        )
    ]


def _shown(key: str) -> Any:
    return lambda found: str(found[key]) if found else "none"
