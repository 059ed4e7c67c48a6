"""A network in moto's EC2, served over HTTP to ParallelCluster's own process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import boto3
import pytest
from moto.server import ThreadedMotoServer


@contextmanager
def moto_network() -> Iterator[dict[str, str]]:
    """What the words of the configurations stand for; meanwhile the environment leads boto3 there."""
    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        with pytest.MonkeyPatch.context() as patch:
            for name, value in _variables(f"http://{host}:{port}").items():
                patch.setenv(name, value)
            yield _made()
    finally:
        server.stop()


def _variables(address: str) -> dict[str, str]:
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
    return {"AWS_ENDPOINT_URL": address, "AWS_DEFAULT_REGION": "us-east-1", **dict.fromkeys(names, "none")}


def _made() -> dict[str, str]:
    ec2 = boto3.client("ec2", region_name="us-east-1")
    vpc = ec2.create_vpc(CidrBlock="10.7.0.0/16")["Vpc"]["VpcId"]
    made = {
        name: ec2.create_subnet(VpcId=vpc, CidrBlock=cidr, AvailabilityZone=f"us-east-1{zone}")["Subnet"]["SubnetId"]
        for name, cidr, zone in (("OTHER_SUBNET", "10.7.2.0/24", "b"), ("SUBNET", "10.7.1.0/24", "a"))
    }
    return {**made, "GROUP": ec2.describe_security_groups()["SecurityGroups"][0]["GroupId"]}
