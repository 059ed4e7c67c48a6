from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto.autoscaling.exceptions import ValidationError
from moto.autoscaling.models import AutoScalingBackend

from tests.node.embedded import deploy_groups, deploy_image, running_moto
from tests.node.jobs.lab import ASSET, GROUPS, Embedded, wanted, write_parameter
from trainfabric_node.jobs import Fleet, JobControl, JobLedger, RunRecords, connect
from trainfabric_node.store import open_store
from trainfabric_plan.contract import environment_parameter


@pytest.fixture(scope="module")
def embedded() -> Iterator[Embedded]:
    with running_moto() as variables, pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        patch.setattr(AutoScalingBackend, "set_desired_capacity", _as_in_aws)
        patch.setattr(AutoScalingBackend, "terminate_instance", _with_the_least_size)
        s3 = boto3.client("s3")
        for bucket in ("data", "checkpoints", "assets"):
            s3.create_bucket(Bucket=bucket)
        s3.put_object(Bucket="data", Key="data/corpus.json", Body=b"{}")
        yield Embedded(variables, deploy_groups(*GROUPS))


_set_desired_capacity = AutoScalingBackend.set_desired_capacity


def _as_in_aws(backend: AutoScalingBackend, group_name: str, desired_capacity: int) -> None:
    """What moto's own function does, with the two refusals of AWS that it lacks."""
    group = backend.autoscaling_groups.get(group_name)
    if group is None:
        raise ValidationError("AutoScalingGroup name not found - null")
    if desired_capacity > group.max_size:
        raise ValidationError(f"New SetDesiredCapacity value {desired_capacity} is above max value {group.max_size}")
    _set_desired_capacity(backend, group_name, desired_capacity)


_terminate_instance = AutoScalingBackend.terminate_instance


def _with_the_least_size(backend: AutoScalingBackend, instance_id: str, should_decrement: bool) -> Any:
    """What moto's own function does, with a refusal of AWS that it lacks."""
    for group in backend.autoscaling_groups.values():
        members = [state.instance.id for state in group.instance_states]
        if should_decrement and instance_id in members and group.desired_capacity == group.min_size:
            raise ValidationError(
                f"Currently, desiredSize equals minSize ({group.min_size}). Terminating instance without replacement "
                "will violate group's min size constraint. Either set shouldDecrementDesiredCapacity flag to false or "
                "lower group's min size."
            )
    return _terminate_instance(backend, instance_id, should_decrement)


@pytest.fixture(scope="module")
def ledger(embedded: Embedded) -> JobLedger:
    return JobLedger(open_store("s3://checkpoints/"))


@pytest.fixture(scope="module")
def records(ledger: JobLedger) -> RunRecords:
    """Those of the first run of the job "first"."""
    return ledger.run("first", 1)


@pytest.fixture(scope="module")
def fleet(embedded: Embedded) -> Fleet:
    return Fleet.of(embedded.deployed())


@pytest.fixture(scope="module")
def connected(embedded: Embedded) -> JobControl:
    """Making clients takes longer than anything else here, so they are made once."""
    write_parameter(embedded.deployed().model_dump_json())
    return connect("lab", "us-east-1")


@pytest.fixture
def aws(embedded: Embedded, fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> str:
    """The embedded AWS with all that is deployed but the environment's parameter, and no nodes; its address."""
    for name, value in embedded.variables.items():
        monkeypatch.setenv(name, value)
    s3 = boto3.client("s3")
    for entry in s3.list_objects_v2(Bucket="checkpoints").get("Contents", []):
        s3.delete_object(Bucket="checkpoints", Key=entry["Key"])
    s3.put_object(Bucket="assets", Key=ASSET, Body=b"code")
    boto3.client("ssm").delete_parameters(Names=[environment_parameter("lab")])
    deploy_image()
    if any(wanted().values()):
        fleet.release()
    return embedded.variables["AWS_ENDPOINT_URL"]


@pytest.fixture
def lab(aws: str, connected: JobControl) -> JobControl:
    """The control of a deployed environment of four nodes, in which nothing has happened yet."""
    return connected
