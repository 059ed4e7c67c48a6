"""An embedded AWS for tests: moto on a free port of this machine."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import boto3
from moto.server import ThreadedMotoServer

IMAGE = "ami-12c6146b"
"""One of those that moto knows."""

CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


@contextlib.contextmanager
def running_moto() -> Iterator[dict[str, str]]:
    """Environment variables that lead boto3 to it."""
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        yield {"AWS_ENDPOINT_URL": f"http://{host}:{port}", **CREDENTIALS}
    finally:
        server.stop()


def deploy_groups(*names: str) -> None:
    """Auto Scaling groups of up to eight nodes, none of which is wanted yet."""
    scaling = boto3.client("autoscaling")
    scaling.create_launch_configuration(LaunchConfigurationName="node", ImageId=IMAGE, InstanceType="t3.micro")
    for name in names:
        scaling.create_auto_scaling_group(
            AutoScalingGroupName=name,
            LaunchConfigurationName="node",
            MinSize=0,
            MaxSize=8,
            AvailabilityZones=["us-east-1a"],
        )
