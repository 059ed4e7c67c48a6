from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import boto3
import pytest
from moto.autoscaling.exceptions import ValidationError
from moto.autoscaling.models import AutoScalingBackend

from tests.node.commits import commit
from tests.node.embedded import deploy_groups, running_moto
from tests.node.samples import RECIPE, deployed, plan
from trainfabric_node.checkpoint import CheckpointStore
from trainfabric_node.jobs import (
    JobControl,
    JobLedger,
    JobState,
    NodeState,
    NodeStatus,
    Outcome,
    connect,
)
from trainfabric_node.jobs import control as control_module
from trainfabric_node.jobs.records import now
from trainfabric_node.store import Store, open_store
from trainfabric_plan.contract import Role, checkpoint_prefix, environment_parameter
from trainfabric_plan.errors import InvalidInput, NotFound, Refused, Unreachable

DATA = "s3://data/data/corpus"


@pytest.fixture(scope="module")
def moto() -> Iterator[dict[str, str]]:
    with running_moto() as variables, pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        patch.setattr(AutoScalingBackend, "set_desired_capacity", _as_in_aws)
        for bucket in ("data", "checkpoints"):
            boto3.client("s3").create_bucket(Bucket=bucket)
        boto3.client("s3").put_object(Bucket="data", Key="data/corpus.json", Body=b"{}")
        deploy_groups("lab-coordinator", "lab-workers")
        yield variables


_set_desired_capacity = AutoScalingBackend.set_desired_capacity


def _as_in_aws(backend: AutoScalingBackend, group_name: str, desired_capacity: int) -> None:
    """What moto's own function does, with the two refusals of AWS that it lacks."""
    group = backend.autoscaling_groups.get(group_name)
    if group is None:
        raise ValidationError("AutoScalingGroup name not found - null")
    if desired_capacity > group.max_size:
        raise ValidationError(f"New SetDesiredCapacity value {desired_capacity} is above max value {group.max_size}")
    _set_desired_capacity(backend, group_name, desired_capacity)


@pytest.fixture(scope="module")
def ledger(moto: dict[str, str]) -> JobLedger:
    return JobLedger(open_store("s3://checkpoints/"))


@pytest.fixture(scope="module")
def connected(moto: dict[str, str]) -> JobControl:
    """Making clients takes longer than anything else here, so they are made once."""
    _write_parameter(deployed().model_dump_json())
    return connect("lab", "us-east-1")


@pytest.fixture
def aws(moto: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> str:
    """The embedded AWS with buckets and groups, but no environment yet; its address."""
    for name, value in moto.items():
        monkeypatch.setenv(name, value)
    s3, ssm, scaling = boto3.client("s3"), boto3.client("ssm"), boto3.client("autoscaling")
    for entry in s3.list_objects_v2(Bucket="checkpoints").get("Contents", []):
        s3.delete_object(Bucket="checkpoints", Key=entry["Key"])
    ssm.delete_parameters(Names=[environment_parameter("lab")])
    for group, wanted in _wanted().items():
        if wanted:
            scaling.set_desired_capacity(AutoScalingGroupName=group, DesiredCapacity=0)
    return moto["AWS_ENDPOINT_URL"]


@pytest.fixture
def lab(aws: str, connected: JobControl) -> JobControl:
    """The control of a deployed environment of four nodes, in which nothing has happened yet."""
    return connected


def _write_parameter(value: str) -> None:
    boto3.client("ssm").put_parameter(Name=environment_parameter("lab"), Value=value, Type="String", Overwrite=True)


def _wanted() -> dict[str, int]:
    groups = boto3.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]
    return {group["AutoScalingGroupName"]: group["DesiredCapacity"] for group in groups}


def _report(
    ledger: JobLedger, state: NodeState, role: Role = Role.COORDINATOR, updated: datetime | None = None
) -> None:
    status = NodeStatus(instance_id="i-1", role=role, state=state, updated=updated or now())
    ledger.run("first", 1).report(status)


def _claim_checkpoints(job: str) -> None:
    CheckpointStore(_checkpoints(job)).claim("a")


def _checkpoints(job: str) -> Store:
    return open_store(f"s3://checkpoints/{checkpoint_prefix(job)}")


def _start(control: JobControl, job: str = "first", **changes: Any) -> Any:
    return control.start(job, RECIPE, changes.pop("plan", plan(4)), DATA, **changes)


def test_starting_a_job_writes_it_down_and_asks_for_its_nodes(lab: JobControl, ledger: JobLedger) -> None:
    started = _start(lab)

    assert started.run == 1
    assert ledger.current() == started
    assert _wanted() == {"lab-coordinator": 1, "lab-workers": 3}


def test_a_plan_for_fewer_nodes_asks_for_fewer(lab: JobControl) -> None:
    _start(lab, plan=plan(2))

    assert _wanted() == {"lab-coordinator": 1, "lab-workers": 1}


def test_a_second_job_is_refused_and_the_first_goes_on(lab: JobControl, ledger: JobLedger) -> None:
    first = _start(lab)

    with pytest.raises(Refused, match=r"^environment lab: jobs must run one at a time, got second while first \(run 1"):
        _start(lab, "second")

    assert ledger.current() == first
    assert _wanted() == {"lab-coordinator": 1, "lab-workers": 3}


def test_the_environment_is_free_again_when_its_nodes_cannot_be_asked_for(lab: JobControl, ledger: JobLedger) -> None:
    _write_parameter(deployed(worker_group="lab-gone").model_dump_json())
    control = connect("lab", "us-east-1")

    with pytest.raises(NotFound) as caught:
        _start(control)

    assert str(caught.value) == (
        "environment lab: Auto Scaling group must be an existing one, got lab-gone; deploy the environment again"
    )
    assert ledger.current() is None
    assert _wanted() == {"lab-coordinator": 0, "lab-workers": 0}
    assert lab.status().state is JobState.FAILED


def test_a_job_with_checkpoints_is_not_started_anew(lab: JobControl, ledger: JobLedger) -> None:
    _claim_checkpoints("first")

    with pytest.raises(Refused) as caught:
        _start(lab)

    assert str(caught.value) == (
        "environment lab: job must be a new one, got first, which has checkpoints; resume it, or choose another name"
    )
    assert ledger.current() is None


def test_a_job_without_a_commit_is_not_resumed(lab: JobControl) -> None:
    _claim_checkpoints("first")

    with pytest.raises(NotFound) as caught:
        _start(lab, resume=True)

    assert str(caught.value) == (
        "environment lab: job to resume must have a committed checkpoint, got none of first; "
        "start it without resume, or under another name if it failed before its first checkpoint"
    )


def test_a_corpus_that_is_not_there_is_noticed_before_anything_starts(lab: JobControl) -> None:
    with pytest.raises(NotFound) as caught:
        lab.start("first", RECIPE, plan(4), "s3://data/data/none")

    assert str(caught.value) == (
        "environment lab: corpus must be a prepared one, got none at s3://data/data/none; "
        "write it with python -m trainfabric_training.data prepare --output s3://data/data/none"
    )
    assert _wanted() == {"lab-coordinator": 0, "lab-workers": 0}


@pytest.mark.parametrize(
    ("job", "given", "says"),
    [
        (
            "My_Job",
            plan(4),
            "environment lab: job must be 1 to 63 lower-case letters, digits and hyphens, the first no hyphen, "
            "got My_Job",
        ),
        (
            "first",
            plan(4, environment="other"),
            "environment lab: plan must be for environment lab and recipe tiny_cpu, got one for other and tiny_cpu; "
            "plan from the same environment file",
        ),
        (
            "first",
            plan(8),
            "environment lab: nodes of the plan must be at most the 4 that are deployed, got 8; "
            "deploy the environment again",
        ),
    ],
)
def test_what_does_not_fit_the_environment_is_refused(lab: JobControl, job: str, given: Any, says: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        _start(lab, job, plan=given)

    assert str(caught.value) == says


def test_before_the_first_job_there_is_a_status_too(lab: JobControl) -> None:
    status = lab.status()

    assert (status.state, status.summary, status.job) == (JobState.NONE, "no job has been started", None)


def test_the_status_can_be_asked_when_the_job_has_ended(lab: JobControl, ledger: JobLedger) -> None:
    started = _start(lab)
    ledger.run("first", 1).conclude(Outcome(state="done", step=60, ended=now()))
    ledger.release(started)

    assert lab.status().state is lab.status("first").state is JobState.DONE


def test_logs_of_all_nodes_come_under_their_names(lab: JobControl, ledger: JobLedger) -> None:
    _start(lab)
    for name in ("i-1", "i-2"):
        ledger.run("first", 1).publish(f"logs/{name}.log", f"hello from {name}\n".encode())

    assert lab.logs() == "==> i-1 <==\nhello from i-1\n\n==> i-2 <==\nhello from i-2\n"
    assert lab.logs("first", "i-2") == "hello from i-2\n"
    with pytest.raises(NotFound) as caught:
        lab.logs(node="i-3")
    assert str(caught.value) == ("environment lab: node must have published a log, got i-3; those that have: i-1, i-2")


def test_stopping_without_waiting_only_asks(lab: JobControl, ledger: JobLedger) -> None:
    started = _start(lab)
    _report(ledger, NodeState.RUNNING)

    status = lab.stop()

    assert status.state is JobState.STOPPING
    assert ledger.current() == started
    assert _wanted() == {"lab-coordinator": 1, "lab-workers": 3}


def test_stopping_waits_for_the_coordinator_to_conclude(lab: JobControl, ledger: JobLedger) -> None:
    _start(lab)
    _report(ledger, NodeState.RUNNING)

    def coordinator() -> None:
        while not ledger.run("first", 1).stop_request():
            time.sleep(0.02)
        _report(ledger, NodeState.STOPPED)
        ledger.run("first", 1).conclude(Outcome(state="stopped", step=24, ended=now()))

    thread = threading.Thread(target=coordinator)
    thread.start()
    status = lab.stop(wait_s=20)
    thread.join()

    assert status.state is JobState.STOPPED
    assert ledger.current() is None
    assert _wanted() == {"lab-coordinator": 0, "lab-workers": 0}


@pytest.mark.parametrize("wait_s", [0, 20])
def test_stopping_a_job_whose_nodes_have_not_come_up_releases_them_at_once(
    lab: JobControl, ledger: JobLedger, wait_s: float
) -> None:
    _start(lab)

    status = lab.stop(wait_s=wait_s)

    assert (status.state, status.summary) == (
        JobState.STOPPED,
        "stopped: before training began, asked by trainfabric job stop",
    )
    assert _wanted() == {"lab-coordinator": 0, "lab-workers": 0}
    assert ledger.current() is None


@pytest.mark.parametrize("wait_s", [0, 20])
def test_stopping_a_job_whose_coordinator_has_not_come_up_releases_the_workers_at_once(
    lab: JobControl, ledger: JobLedger, wait_s: float
) -> None:
    _start(lab)
    _report(ledger, NodeState.JOINING, Role.WORKER)

    status = lab.stop(wait_s=wait_s)

    assert (status.state, status.summary) == (
        JobState.STOPPED,
        "stopped: before training began, asked by trainfabric job stop",
    )
    assert _wanted() == {"lab-coordinator": 0, "lab-workers": 0}


def test_stopping_a_job_whose_coordinator_is_gone_after_the_end_releases_the_nodes(
    lab: JobControl, ledger: JobLedger
) -> None:
    _start(lab)
    _report(ledger, NodeState.STOPPED, updated=now() - timedelta(minutes=1))

    status = lab.stop()

    assert status.state is JobState.STOPPED
    assert _wanted() == {"lab-coordinator": 0, "lab-workers": 0}


def test_a_coordinator_is_left_the_time_to_conclude(lab: JobControl, ledger: JobLedger) -> None:
    _start(lab)
    _report(ledger, NodeState.STOPPED)

    assert lab.stop().state is JobState.STOPPING
    assert _wanted() == {"lab-coordinator": 1, "lab-workers": 3}


def test_more_nodes_than_the_template_allows_are_refused_by_aws(lab: JobControl) -> None:
    _write_parameter(deployed(nodes=20).model_dump_json())

    with pytest.raises(Unreachable) as caught:
        _start(connect("lab", "us-east-1"), plan=plan(10))

    assert str(caught.value) == (
        "environment lab: autoscaling must accept the request, got An error occurred (ValidationError) when calling "
        "the SetDesiredCapacity operation: New SetDesiredCapacity value 9 is above max value 8; "
        "check the credentials and their permissions"
    )
    assert _wanted() == {"lab-coordinator": 0, "lab-workers": 0}


def test_a_coordinator_that_does_not_conclude_is_not_waited_for_forever(
    lab: JobControl, ledger: JobLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control_module, "_COORDINATOR_S", 0.1)
    _start(lab)
    _report(ledger, NodeState.STOPPED)
    ledger.run("first", 1).publish("result.json", b'{"status": "stopped", "step": 24}')

    status = lab.stop(wait_s=20)

    assert status.state is JobState.STOPPED
    assert ledger.current() is None


def test_nodes_that_do_not_report_keep_the_job_until_it_is_forced(lab: JobControl, ledger: JobLedger) -> None:
    started = _start(lab)
    _report(ledger, NodeState.RUNNING)

    with pytest.raises(Unreachable) as caught:
        lab.stop(wait_s=0.1)
    held = ledger.current()
    status = lab.stop(force=True)

    assert str(caught.value) == (
        "environment lab: nodes must report the end within 0.1 s, got none of i-1 (running); "
        "wait longer, or stop with force, which loses what was trained since the last checkpoint"
    )
    assert held == started
    assert (status.state, status.summary) == (JobState.STOPPED, "stopped: nodes released by force")
    assert _wanted() == {"lab-coordinator": 0, "lab-workers": 0}


def test_there_is_nothing_to_stop_when_no_job_runs(lab: JobControl) -> None:
    with pytest.raises(NotFound) as caught:
        lab.stop(wait_s=1)

    assert str(caught.value) == (
        "environment lab: a job must be running to be stopped, got none; trainfabric job status tells more"
    )


def test_a_job_goes_on_from_its_newest_checkpoint_as_the_next_run(lab: JobControl, ledger: JobLedger) -> None:
    _start(lab)
    lab.stop(force=True)
    commit(_checkpoints("first"), step=10)

    resumed = _start(lab, resume=True)

    assert (resumed.run, resumed.resume, resumed.from_step) == (2, True, None)
    assert resumed.resume_options == ["--resume"]
    assert ledger.current() == resumed


def test_a_job_goes_on_from_an_older_checkpoint_while_the_newest_is_damaged(lab: JobControl, ledger: JobLedger) -> None:
    checkpoints = _checkpoints("first")
    commit(checkpoints, step=10)
    commit(checkpoints, step=20)
    checkpoints.delete("steps/00000020-run-1/rank00000-0000.bin")

    resumed = _start(lab, resume=True, from_step=10)

    assert resumed.resume_options == ["--resume", "--from-step", "10"]
    assert ledger.current() == resumed


def _delete_part(checkpoints: Store) -> None:
    checkpoints.delete("steps/00000010-run-1/rank00000-0000.bin")


def _truncate_part(checkpoints: Store) -> None:
    checkpoints.put("steps/00000010-run-1/rank00000-0000.bin", bytes(20))


def _delete_manifest(checkpoints: Store) -> None:
    checkpoints.delete("steps/00000010-run-1/manifest.json")


@pytest.mark.parametrize(
    ("damage", "error", "says"),
    [
        (_delete_part, NotFound, "rank00000-0000.bin must exist, got none"),
        (_truncate_part, InvalidInput, "rank00000-0000.bin must be an object of 24 bytes, got 20"),
        (_delete_manifest, NotFound, "manifest.json must exist, got none"),
    ],
)
@pytest.mark.parametrize("from_step", [None, 10])
def test_a_damaged_checkpoint_is_refused_before_anything_starts(
    lab: JobControl,
    ledger: JobLedger,
    damage: Callable[[Store], None],
    error: type[Exception],
    says: str,
    from_step: int | None,
) -> None:
    checkpoints = _checkpoints("first")
    commit(checkpoints, step=10)
    damage(checkpoints)

    with pytest.raises(error) as caught:
        _start(lab, resume=True, from_step=from_step)

    assert str(caught.value) == (
        f"s3://checkpoints/jobs/first/checkpoints/: steps/00000010-run-1/{says}; "
        "restore the object, or resume an older commit with --from-step"
    )
    assert ledger.current() is None
    assert ledger.jobs() == []
    assert _wanted() == {"lab-coordinator": 0, "lab-workers": 0}


def test_an_overwritten_manifest_is_refused_before_anything_starts(lab: JobControl, ledger: JobLedger) -> None:
    committed = commit(_checkpoints("first"), step=10).at_step(10)
    _checkpoints("first").put(committed.manifest_key, b"{}")

    with pytest.raises(InvalidInput) as caught:
        _start(lab, resume=True)

    assert str(caught.value) == (
        "s3://checkpoints/jobs/first/checkpoints/: steps/00000010-run-1/manifest.json must be an object with SHA-256 "
        f"{committed.manifest_sha256}, got {hashlib.sha256(b'{}').hexdigest()}; "
        "restore the object, or resume an older commit with --from-step"
    )
    assert ledger.current() is None
    assert _wanted() == {"lab-coordinator": 0, "lab-workers": 0}


def test_a_step_that_is_not_committed_is_refused_with_those_that_are(lab: JobControl, ledger: JobLedger) -> None:
    commit(_checkpoints("first"), step=10)
    commit(_checkpoints("first"), step=20)

    with pytest.raises(NotFound) as caught:
        _start(lab, resume=True, from_step=15)

    assert str(caught.value) == (
        "s3://checkpoints/jobs/first/checkpoints/: step must be a committed one, got 15; committed steps: 10, 20"
    )
    assert ledger.current() is None


def test_a_new_job_has_no_step_to_go_on_from(lab: JobControl, ledger: JobLedger) -> None:
    with pytest.raises(InvalidInput) as caught:
        _start(lab, from_step=10)

    assert str(caught.value) == (
        "environment lab: from-step must be given with resume, got 10 without it; add --resume"
    )
    assert ledger.current() is None


@pytest.mark.parametrize("job", ["first", "second"])
def test_a_resumed_job_hears_of_the_one_that_runs_before_its_checkpoints_are_looked_for(
    lab: JobControl, ledger: JobLedger, job: str
) -> None:
    first = _start(lab)

    with pytest.raises(Refused) as caught:
        _start(lab, job, resume=True)

    assert str(caught.value) == (
        f"environment lab: jobs must run one at a time, got {job} while first (run 1, since "
        f"{first.created:%Y-%m-%d %H:%M} UTC) is running; wait for it, or end it with trainfabric job stop"
    )
    assert ledger.current() == first


def test_a_fleet_of_one_node_has_no_workers(lab: JobControl) -> None:
    _write_parameter(deployed(1).model_dump_json())

    _start(connect("lab", "us-east-1"), plan=plan(1))

    assert _wanted()["lab-coordinator"] == 1


def test_an_environment_that_is_not_deployed_is_not_found(aws: str) -> None:
    with pytest.raises(NotFound) as caught:
        connect("lab", "us-east-1")

    assert str(caught.value) == (
        "environment lab: environment must be a deployed one, got no parameter /trainfabric/lab/environment in "
        "us-east-1; deploy it first, or correct its name or region"
    )


def test_an_environment_of_another_version_is_refused(aws: str) -> None:
    _write_parameter("{}")

    with pytest.raises(InvalidInput) as caught:
        connect("lab", "us-east-1")

    assert str(caught.value) == (
        "environment lab: /trainfabric/lab/environment must be as this version writes it, got name: field required; "
        "deploy the environment again"
    )


def test_an_embedded_aws_that_is_not_running_is_named(aws: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")

    with pytest.raises(Unreachable) as caught:
        connect("lab", "us-east-1")

    assert str(caught.value) == (
        "environment lab: ssm must answer, got no connection to http://127.0.0.1:9/; the embedded AWS is not running "
        "(make demo starts it), or AWS_ENDPOINT_URL or the network is wrong"
    )


def test_missing_credentials_are_named(aws: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")

    with pytest.raises(Unreachable) as caught:
        connect("lab", "us-east-1")

    assert str(caught.value) == (
        "environment lab: AWS credentials must be given, got none; "
        "set AWS_PROFILE or run aws configure; on a node, check its instance profile"
    )


def test_a_missing_region_is_named(aws: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")

    with pytest.raises(Unreachable) as caught:
        connect("lab")

    assert str(caught.value) == (
        "environment lab: AWS region must be given, got none; set AWS_REGION, or give the region of the environment"
    )
