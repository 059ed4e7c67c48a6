"""Runs in the virtual environment of ParallelCluster: what its semantic validators say of configurations.

Reads a list of configurations and prints for each the failures of its validators, asked of the EC2 behind
`AWS_ENDPOINT_URL`. The package caches what EC2 describes; nothing there changes while it runs.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")

import parallelcluster  # type: ignore[import-not-found] # noqa: F401  # puts the absent CDK in place

# isort: split
from marshmallow import ValidationError  # type: ignore[import-not-found]
from pcluster.aws.aws_resources import CapacityReservationInfo, FsxStorageInfo  # type: ignore[import-not-found]
from pcluster.aws.ec2 import Ec2Client  # type: ignore[import-not-found]
from pcluster.aws.fsx import FSxClient  # type: ignore[import-not-found]
from pcluster.config.common import TypeMatchValidatorsSuppressor  # type: ignore[import-not-found]
from pcluster.schemas.cluster_schema import ClusterSchema  # type: ignore[import-not-found]
from pcluster.validators.common import ValidatorContext  # type: ignore[import-not-found]

SUPPRESSED = {
    "ComputeResourceLaunchTemplateValidator": "moto's RunInstances does not know a dry run of these templates",
    "HeadNodeLaunchTemplateValidator": "the same",
    "KeyPairValidator": "moto's key pairs have no type",
    "ExistingFsxNetworkingValidator": "moto's ids of file systems are not FSx's, so that it knows none of ours",
}
"""Validators that moto's answers fail, and why."""


def lustre(self: Any, ids: list[str]) -> list[Any]:
    """Existing file systems as FSx describes them."""
    return [
        FsxStorageInfo(
            {
                "FileSystemId": id,
                "FileSystemType": "LUSTRE",
                "DNSName": f"{id}.fsx.us-east-1.amazonaws.com",
                "LustreConfiguration": {"MountName": "abcdefgh"},
                "SubnetIds": [],
                "NetworkInterfaceIds": [],
                "VpcId": "vpc-12345678",
            }
        )
        for id in ids
    ]


def image(self: Any, *arguments: Any, **options: Any) -> str:
    """An image of moto in place of ParallelCluster's own, which moto does not have."""
    architecture = [{"Name": "architecture", "Values": [arguments[1]]}]
    found = self._describe_images_with_pagination(Filters=architecture)
    return str(next(one["ImageId"] for one in found if one.get("Platform") != "windows"))


def blocks(self: Any, ids: list[str]) -> list[Any]:
    """Capacity Blocks of four p5.48xlarge, which moto cannot describe."""
    return [
        CapacityReservationInfo(
            {
                "CapacityReservationId": id,
                "InstanceType": "p5.48xlarge",
                "InstancePlatform": "Linux/UNIX",
                "AvailabilityZone": "us-east-1a",
                "ReservationType": "capacity-block",
                "TotalInstanceCount": 4,
            }
        )
        for id in ids
    ]


STAND_INS = (
    (FSxClient, "get_file_systems_info", lustre),
    (Ec2Client, "get_official_image_id", image),
    (Ec2Client, "describe_capacity_reservations", blocks),
)


def failures(configuration: dict[str, Any]) -> list[list[str]]:
    """Level, validator and message of each failure."""
    with ExitStack() as stack:
        for of, name, function in STAND_INS:
            stack.enter_context(patch.object(of, name, function))
        try:
            cluster = ClusterSchema(cluster_name="it").load(configuration)
        except ValidationError as error:
            return [["ERROR", "Schema", json.dumps(error.messages, sort_keys=True)]]
        found = cluster.validate({TypeMatchValidatorsSuppressor(set(SUPPRESSED))}, ValidatorContext())
    return [[one.level.name, one.validator_type, one.message] for one in found]


if __name__ == "__main__":
    json.dump([failures(one) for one in json.load(sys.stdin)], sys.stdout)
