"""An embedded AWS for tests: moto on a free port of this machine."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import boto3
import pytest
from moto.moto_api._internal.models import moto_api_backend
from moto.server import ThreadedMotoServer

from sandbox.aws import launch_templates

IMAGE = "ami-12c6146b"
"""One of those that moto knows."""

IMAGE_PARAMETER = "/images/node"

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
    with pytest.MonkeyPatch.context() as patch:
        launch_templates.install(lambda owner, name, wrapper: patch.setattr(owner, name, wrapper(getattr(owner, name))))
        server.start()
        host, port = server.get_host_and_port()
        try:
            yield {"AWS_ENDPOINT_URL": f"http://{host}:{port}", **CREDENTIALS}
        finally:
            moto_api_backend.reset()  # its services live in this process, longer than the server
            server.stop()


def deploy_groups(*names: str) -> dict[str, str]:
    """Auto Scaling groups of up to eight nodes, none of which is wanted yet; the id of the launch template of each."""
    return {name: _deploy_group(name) for name in names}


def _deploy_group(name: str) -> str:
    template = boto3.client("ec2").create_launch_template(
        LaunchTemplateName=name,
        LaunchTemplateData={"ImageId": f"resolve:ssm:{IMAGE_PARAMETER}", "InstanceType": "t3.micro"},
    )["LaunchTemplate"]["LaunchTemplateId"]
    boto3.client("autoscaling").create_auto_scaling_group(
        AutoScalingGroupName=name,
        LaunchTemplate={"LaunchTemplateId": template, "Version": "1"},
        MinSize=0,
        MaxSize=8,
        AvailabilityZones=["us-east-1a"],
    )
    return str(template)


def deploy_image(image_id: str = IMAGE) -> None:
    """Lets the parameter that the launch templates name its image by name this one."""
    boto3.client("ssm").put_parameter(Name=IMAGE_PARAMETER, Value=image_id, Type="String", Overwrite=True)
