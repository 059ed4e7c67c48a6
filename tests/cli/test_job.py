"""Jobs: the records are real, on this disk; the nodes are played by the tests. One test has an AWS in memory."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import boto3
import pytest

from tests.node.commits import commit
from trainfabric_node.jobs import JobControl, JobLedger, JobSpec, NodeState, NodeStatus, Outcome
from trainfabric_node.jobs.records import now
from trainfabric_node.store import PosixStore
from trainfabric_plan.contract import Role, checkpoint_prefix, environment_parameter
from trainfabric_plan.deployed import DeployedEnvironment

DEPLOYED = DeployedEnvironment(
    name="demo",
    region="us-east-1",
    data_bucket="demo-data",
    checkpoint_bucket="demo-checkpoints",
    lustre_dns_name="fs-1.fsx",
    lustre_mount_name="fsx",
    coordinator_group="coordinator",
    worker_group="workers",
    nodes=4,
    ranks_per_node=2,
)


class Nodes:
    """Stands for the Auto Scaling groups: knows how many nodes are asked for."""

    def __init__(self) -> None:
        self.asked = 0

    def scale_up(self, nodes: int) -> None:
        self.asked = nodes

    def scale_down(self) -> None:
        self.asked = 0


@pytest.fixture
def nodes() -> Nodes:
    return Nodes()


@pytest.fixture
def ledger(tmp_path: Path) -> JobLedger:
    """The records of environment demo, on this disk."""
    return JobLedger(PosixStore(tmp_path / "checkpoints"))


@pytest.fixture
def job(
    trainfabric: Any,
    environment_file: Any,
    tmp_path: Path,
    ledger: JobLedger,
    nodes: Nodes,
    monkeypatch: pytest.MonkeyPatch,
) -> Any:
    """Runs `trainfabric job COMMAND … --environment demo.yaml`; `start` takes the prepared corpus on this disk."""
    (tmp_path / "corpus.json").write_text("{}")
    monkeypatch.setattr("trainfabric_node.jobs.connect", lambda *_: JobControl(DEPLOYED, ledger, cast(Any, nodes)))
    more = {"start": ("--data", str(tmp_path / "corpus"))}
    file = environment_file()
    return lambda command, *arguments: trainfabric(
        "job", command, *more.get(command, ()), *arguments, "--environment", file
    )


def node(number: int, state: NodeState, detail: str = "") -> NodeStatus:
    role = Role.WORKER if number else Role.COORDINATOR
    return NodeStatus(instance_id=f"i-{number:017x}", role=role, state=state, detail=detail, updated=now())


@pytest.fixture
def play(ledger: JobLedger) -> Callable[..., None]:
    """Nodes of the first run say how far they are, and the coordinator publishes its steps."""

    def say(state: NodeState, steps: int, nodes: int = 4) -> None:
        run = ledger.run("first", 1)
        for number in range(nodes):
            run.report(node(number, state))
        lines = [{"step": n, "loss": 8 / n, "tokens": 2048, "seconds": 0.5} for n in range(1, steps + 1)]
        run.publish("steps.jsonl", "".join(f"{json.dumps(line)}\n" for line in lines).encode())

    return say


def test_start_asks_for_all_nodes_and_writes_what_the_run_is(job: Any, ledger: JobLedger, nodes: Nodes) -> None:
    ended = job("start", "first", "--json")

    assert (ended.status, ended.err) == (0, "")
    spec = JobSpec.model_validate_json(ended.out)
    assert (spec.job, spec.run, spec.resume) == ("first", 1, False)
    assert (spec.recipe.name, spec.recipe.steps) == ("tiny_cpu", 40)
    assert str(spec.plan.layout) == "data 2 × pipeline 2 × tensor 2"
    assert ledger.current() == spec
    assert nodes.asked == 4


def test_start_tells_people_what_was_started_and_how_to_watch_it(job: Any, tmp_path: Path) -> None:
    assert job("start", "first").out.splitlines() == [
        f"started first (run 1) on 4 nodes with {tmp_path}/corpus",
        "next: trainfabric job status --follow --environment demo.yaml",
    ]


def test_start_takes_fewer_steps_than_the_recipe(job: Any) -> None:
    assert job("start", "first", "--steps", "5", "--json").json["recipe"]["steps"] == 5


def test_a_second_job_is_refused_by_name(job: Any, ledger: JobLedger) -> None:
    job("start", "first")
    since = ledger.job("first").created

    ended = job("start", "second", "--json")

    assert (ended.status, ended.out) == (2, "")
    assert ended.err == (
        "environment demo: jobs must run one at a time, got second while first (run 1, since "
        f"{since:%Y-%m-%d %H:%M} UTC) is running; wait for it, or end it with trainfabric job stop\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("start", "First!"),
            "environment demo: job must be 1 to 63 lower-case letters, digits and hyphens, the first no hyphen, "
            "got First!\n",
        ),
        (
            ("start", "first", "--resume"),
            "environment demo: job to resume must have a committed checkpoint, got none of first; "
            "start it without resume, or under another name if it failed before its first checkpoint\n",
        ),
        (
            ("start", "first", "--from-step", "10"),
            "environment demo: from-step must be given with resume, got 10 without it; add --resume\n",
        ),
        (
            ("start", "first", "--data", "absent/corpus"),
            "environment demo: corpus must be a prepared one, got none at absent/corpus; "
            "write it with python -m trainfabric_training.data prepare --output absent/corpus\n",
        ),
        (
            ("stop",),
            "environment demo: a job must be running to be stopped, got none; trainfabric job status tells more\n",
        ),
        (("logs",), "environment demo: job must be given, got none; no job has been started\n"),
    ],
    ids=["name", "resume", "from-step", "corpus", "stop", "logs"],
)
def test_what_cannot_be_done_ends_with_status_2_and_asks_for_no_node(
    job: Any, ledger: JobLedger, nodes: Nodes, arguments: tuple[str, ...], message: str
) -> None:
    ended = job(*arguments)

    assert (ended.status, ended.out, ended.err) == (2, "", message)
    assert nodes.asked == 0
    assert ledger.current() is None


@pytest.fixture
def checkpoints(tmp_path: Path) -> PosixStore:
    """The checkpoints of the first job, of steps 10 and 20."""
    store = PosixStore(tmp_path / "checkpoints" / checkpoint_prefix("first"))
    commit(store, step=10)
    commit(store, step=20)
    return store


def test_a_damaged_checkpoint_is_refused_before_nodes_are_asked_for_and_an_older_one_goes_on(
    job: Any, ledger: JobLedger, nodes: Nodes, checkpoints: PosixStore
) -> None:
    checkpoints.delete("steps/00000020-run-1/rank00000-0000.bin")

    ended = job("start", "first", "--resume", "--json")

    assert (ended.status, ended.out, nodes.asked, ledger.current()) == (2, "", 0, None)
    assert ended.err == (
        f"{checkpoints.uri}: steps/00000020-run-1/rank00000-0000.bin must exist, got none; "
        "restore the object, or resume an older commit with --from-step\n"
    )
    resumed = job("start", "first", "--resume", "--from-step", "10", "--json").json
    assert (resumed["resume"], resumed["from_step"], nodes.asked) == (True, 10, 4)


def test_a_step_without_a_checkpoint_is_refused_with_those_that_have_one(
    job: Any, ledger: JobLedger, nodes: Nodes, checkpoints: PosixStore
) -> None:
    ended = job("start", "first", "--resume", "--from-step", "15")

    assert (ended.status, ended.out, nodes.asked, ledger.current()) == (2, "", 0, None)
    assert ended.err == f"{checkpoints.uri}: step must be a committed one, got 15; committed steps: 10, 20\n"


def test_a_job_that_never_was_is_refused_with_those_that_were(job: Any, tmp_path: Path) -> None:
    job("start", "first")

    ended = job("status", "second")

    assert (ended.status, ended.out) == (2, "")
    assert ended.err == (
        f"{PosixStore(tmp_path / 'checkpoints').uri}: job must be an existing one, got second; existing jobs: first\n"
    )


def test_less_than_one_step_is_wrong_usage(job: Any, ledger: JobLedger) -> None:
    ended = job("start", "first", "--steps", "0")

    assert (ended.status, ended.out) == (2, "")
    assert "Invalid value for '--steps'" in ended.err
    assert ledger.current() is None


def test_status_before_any_job_says_so(job: Any) -> None:
    ended = job("status", "--json")

    assert ended.status == 0
    assert (ended.json["state"], ended.json["summary"]) == ("none", "no job has been started")


def test_status_shows_nodes_step_and_loss(job: Any, play: Callable[..., None]) -> None:
    job("start", "first")
    play(NodeState.RUNNING, steps=4)

    status = job("status", "--json").json

    assert (status["job"], status["run"], status["state"]) == ("first", 1, "running")
    assert (status["step"], status["steps"], status["loss"], status["tokens_per_second"]) == (4, 40, 2.0, 4096.0)
    assert [one["role"] for one in status["nodes"]] == ["coordinator", "worker", "worker", "worker"]
    lines = [" ".join(line.split()) for line in job("status", "first").out.splitlines()]
    assert lines[0] == "first: running at step 4 of 40"
    for line in ("step 4 of 40", "loss 2.0000", "tokens per second 4,096", "i-00000000000000000 coordinator running"):
        assert line in lines


def test_brackets_in_what_a_node_says_are_shown_as_they_are(job: Any, ledger: JobLedger) -> None:
    job("start", "first")
    ledger.run("first", 1).report(node(0, NodeState.FAILED, detail="[Errno 28] no space [/left]"))

    assert "[Errno 28] no space [/left]" in job("status").out


def test_following_prints_a_line_for_each_change_and_the_end(
    job: Any, ledger: JobLedger, play: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    job("start", "first")
    progress = iter([2, 2, 4])

    def sleep(_: float) -> None:
        step = next(progress, None)
        if step:
            play(NodeState.RUNNING, steps=step)
        else:
            ledger.run("first", 1).conclude(Outcome(state="done", step=4, ended=now()))

    monkeypatch.setattr("trainfabric_cli.following.sleep", sleep)
    ended = job("status", "--follow")

    assert ended.status == 0
    assert ended.out.splitlines()[:5] == [
        "starting: 0 of 4 nodes have come up",
        "running at step 2 of 40, loss 4.0000",
        "running at step 4 of 40, loss 2.0000",
        "done at step 4 of 40, loss 2.0000",
        "first: done at step 4 of 40",
    ]


def test_following_a_job_that_failed_ends_with_status_1(job: Any, ledger: JobLedger) -> None:
    job("start", "first")
    ledger.run("first", 1).conclude(Outcome(state="failed", detail="rank 3 died", ended=now()))

    ended = job("status", "--follow", "--json")

    assert (ended.status, ended.err) == (1, "")
    assert (ended.json["state"], ended.json["summary"]) == ("failed", "failed: rank 3 died")


def test_start_with_wait_prints_the_end_alone_as_json(
    job: Any, ledger: JobLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sleep(_: float) -> None:
        ledger.run("first", 1).conclude(Outcome(state="done", step=40, ended=now()))

    monkeypatch.setattr("trainfabric_cli.following.sleep", sleep)

    ended = job("start", "first", "--wait", "--json")

    assert (ended.status, ended.err, ended.json["state"]) == (0, "", "done")


def test_ctrl_c_while_following_leaves_the_job_alone_and_says_so(
    job: Any, ledger: JobLedger, nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sleep(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("trainfabric_cli.following.sleep", sleep)

    ended = job("start", "first", "--wait", "--json")

    assert (ended.status, ended.out) == (130, "")
    assert ended.err == "the job goes on; trainfabric job status --follow shows it again\n"
    assert ledger.current() and nodes.asked == 4


def test_stop_asks_the_nodes_and_returns(job: Any, ledger: JobLedger, play: Callable[..., None]) -> None:
    job("start", "first")
    play(NodeState.RUNNING, steps=4)

    status = job("stop", "--json").json

    assert status["state"] == "stopping"
    request = ledger.run("first", 1).stop_request()
    assert request and request.reason == "asked"


def test_stop_with_wait_returns_when_the_nodes_are_released(
    job: Any, ledger: JobLedger, nodes: Nodes, play: Callable[..., None]
) -> None:
    job("start", "first")
    play(NodeState.STOPPED, steps=4)
    ledger.run("first", 1).conclude(Outcome(state="stopped", step=4, ended=now()))

    status = job("stop", "--wait", "--json").json

    assert (status["state"], status["step"], nodes.asked) == ("stopped", 4, 0)
    assert ledger.current() is None


def test_stop_with_force_releases_nodes_that_never_answer(job: Any, nodes: Nodes, play: Callable[..., None]) -> None:
    job("start", "first")
    play(NodeState.RUNNING, steps=4)

    assert job("stop", "--force", "--json").json["state"] == "stopped"
    assert nodes.asked == 0


def test_stop_gives_up_on_silent_nodes_after_the_timeout(job: Any, play: Callable[..., None]) -> None:
    job("start", "first")
    play(NodeState.RUNNING, steps=4, nodes=1)

    ended = job("stop", "--wait", "--timeout-s", "0.1")

    assert (ended.status, ended.out) == (2, "")
    assert ended.err == (
        "environment demo: nodes must report the end within 0.1 s, got none of i-00000000000000000 (running); "
        "wait longer, or stop with force, which loses what was trained since the last checkpoint\n"
    )


def test_logs_of_all_nodes_or_of_one(job: Any, ledger: JobLedger) -> None:
    job("start", "first")
    for number in range(2):
        ledger.run("first", 1).publish(f"logs/i-{number}.log", f"hello from {number}\n".encode())

    assert job("logs").out == "==> i-0 <==\nhello from 0\n\n==> i-1 <==\nhello from 1\n"
    assert job("logs", "first", "--node", "i-1").out == "hello from 1\n"
    assert job("logs", "--node", "i-1", "--json").json == {"job": "first", "node": "i-1", "log": "hello from 1\n"}
    assert job("logs", "--json").json["job"] == "first"
    assert job("logs", "--json").json["node"] is None


def test_logs_of_a_node_that_is_none_are_refused(job: Any) -> None:
    job("start", "first")

    ended = job("logs", "--node", "i-9")

    assert (ended.status, ended.out) == (2, "")
    assert ended.err == "environment demo: node must have published a log, got i-9; those that have: none\n"


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
    for group, most in ((DEPLOYED.coordinator_group, 1), (DEPLOYED.worker_group, 3)):
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
