from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from tests.cli.job.lab import DEPLOYED
from trainfabric_plan.contract import environment_parameter


def test_a_job_of_a_deployed_environment_reads_the_corpus_of_its_data_bucket(
    trainfabric: Any, environment_file: Any, aws: None
) -> None:
    s3, scaling = (boto3.client(name, region_name="us-east-1") for name in ("s3", "autoscaling"))
    for bucket in (DEPLOYED.data_bucket, DEPLOYED.checkpoint_bucket):
        s3.create_bucket(Bucket=bucket)
    s3.put_object(Bucket=DEPLOYED.data_bucket, Key="data/corpus.json", Body=b"{}")
    boto3.client("ssm", region_name="us-east-1").put_parameter(
        Name=environment_parameter("demo"), Value=DEPLOYED.model_dump_json(), Type="String"
    )
    scaling.create_launch_configuration(LaunchConfigurationName="node", ImageId="ami-1", InstanceType="m7i.large")
    for group, most in (("coordinator", 1), ("workers", 3)):
        scaling.create_auto_scaling_group(
            AutoScalingGroupName=group,
            LaunchConfigurationName="node",
            MinSize=0,
            MaxSize=most,
            DesiredCapacity=0,
            AvailabilityZones=["us-east-1a"],
        )

    started = trainfabric("job", "start", "first", "--environment", environment_file(), "--json")

    assert (started.status, started.json["data"]) == (0, "s3://demo-data/data/corpus")
    groups = scaling.describe_auto_scaling_groups()["AutoScalingGroups"]
    assert {group["AutoScalingGroupName"]: group["DesiredCapacity"] for group in groups} == {
        "coordinator": 1,
        "workers": 3,
    }
    status = trainfabric("job", "status", "--environment", "demo.yaml", "--json").json
    assert (status["state"], status["records_uri"]) == ("starting", "s3://demo-checkpoints/jobs/first/runs/0001/")


def test_an_environment_that_is_not_deployed_is_named(trainfabric: Any, environment_file: Any, aws: None) -> None:
    ended = trainfabric("job", "status", "--environment", environment_file())

    assert (ended.status, ended.out) == (2, "")
    assert ended.err == (
        "environment demo: environment must be a deployed one, got no parameter /trainfabric/demo/environment in "
        "us-east-1; deploy it first, or correct its name or region\n"
    )


@pytest.fixture
def nothing_listens() -> Iterator[str]:
    """An address on which nothing answers: the port is taken, but not listened on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


def test_an_embedded_aws_that_is_not_running_is_named(
    trainfabric: Any, environment_file: Any, no_aws: None, nothing_listens: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_ENDPOINT_URL", nothing_listens)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")

    ended = trainfabric("job", "start", "first", "--environment", environment_file(), "--json")

    assert (ended.status, ended.out) == (2, "")
    assert ended.err == (
        f"environment demo: ssm must answer, got no connection to {nothing_listens}/; the embedded AWS is not running "
        "(make demo starts it), or AWS_ENDPOINT_URL or the network is wrong\n"
    )


def test_a_wrong_environment_file_is_told_before_aws_is_asked(
    trainfabric: Any, environment_file: Any, no_aws: None
) -> None:
    ended = trainfabric("job", "start", "first", "--environment", environment_file({"nodes: 4": "nodes: 0"}))

    assert (ended.status, ended.err) == (2, "demo.yaml:6: fleet.nodes must be at least 1, got 0\n")
