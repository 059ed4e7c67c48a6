from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.node.samples import spec
from trainfabric_node.agent import Launch, Node, RunFiles, torchrun_command
from trainfabric_node.agent.launch import trainer_variables
from trainfabric_node.agent.metrics import StepMetrics
from trainfabric_node.agent.process import TrainerProcess, marked
from trainfabric_node.agent.publisher import Publisher
from trainfabric_node.jobs import JobLedger, Rendezvous, RunRecords
from trainfabric_node.store import open_store
from trainfabric_plan.contract import Metric, Role


@pytest.fixture
def records(tmp_path: Path) -> RunRecords:
    return JobLedger(open_store(str(tmp_path / "bucket"))).run("first", 1)


@pytest.fixture
def files(tmp_path: Path) -> RunFiles:
    made = RunFiles(directory=tmp_path / "run", cache=tmp_path / "cache")
    made.output.mkdir(parents=True)
    return made


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def _launch(role: Role, **changes: object) -> Launch:
    return Launch(
        spec=spec(4, **changes),
        node=Node(instance_id="i-1", address="10.0.0.7", role=role),
        rendezvous=Rendezvous(host="10.0.0.5", port=29400),
        checkpoints="s3://checkpoints/jobs/first/checkpoints/",
        files=RunFiles(directory=Path("/state/runs/first/0001"), cache=Path("/state/cache")),
    )


def test_the_trainer_runs_under_torchrun_on_exactly_the_nodes_of_the_plan() -> None:
    assert torchrun_command(_launch(Role.WORKER)) == [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--nnodes=4:4",
        "--nproc-per-node=2",
        "--rdzv-backend=c10d",
        "--rdzv-endpoint=10.0.0.5:29400",
        "--rdzv-id=first-1",
        "--rdzv-conf=is_host=0,join_timeout=1800,read_timeout=300",
        "--local-addr=10.0.0.7",
        "--max-restarts=0",
        "-m",
        "trainfabric_training",
        "--recipe",
        "/state/runs/first/0001/recipe.json",
        "--plan",
        "/state/runs/first/0001/plan.json",
        "--job",
        "first",
        "--data",
        "s3://data/data/corpus",
        "--checkpoints",
        "s3://checkpoints/jobs/first/checkpoints/",
        "--output",
        "/state/runs/first/0001/output",
        "--stop-flag",
        "/state/runs/first/0001/stop",
        "--cache",
        "/state/cache",
    ]


def test_the_coordinator_hosts_the_rendezvous() -> None:
    assert "--rdzv-conf=is_host=1,join_timeout=1800,read_timeout=300" in torchrun_command(_launch(Role.COORDINATOR))


def test_a_run_that_goes_on_says_so_to_the_trainer() -> None:
    command = torchrun_command(_launch(Role.WORKER, run=2, resume=True))

    assert command[-1] == "--resume"
    assert "--rdzv-id=first-2" in command


def test_a_run_that_goes_on_from_an_older_checkpoint_says_its_step_to_the_trainer() -> None:
    command = torchrun_command(_launch(Role.WORKER, run=2, resume=True, from_step=10))

    assert command[-3:] == ["--resume", "--from-step", "10"]


def test_the_trainer_inherits_the_environment_but_never_shares_the_rendezvous_store() -> None:
    inherited = {"OMP_NUM_THREADS": "4", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "0", "HOME": "/home"}

    assert trainer_variables(inherited, "eu-west-1") == {
        "OMP_NUM_THREADS": "4",
        "AWS_DEFAULT_REGION": "eu-west-1",
        "HOME": "/home",
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
        "PYTHONUNBUFFERED": "1",
    }


def test_what_a_trainer_starts_in_other_sessions_ends_with_it(tmp_path: Path) -> None:
    with TrainerProcess(
        ["sh", "-c", "setsid sleep 300 & sleep 300"], os.environ, tmp_path, tmp_path / "log"
    ) as trainer:
        while not trainer.has_children:
            time.sleep(0.01)
        mark = trainer._mark
        running = marked(mark)

    assert len(running) == 3
    assert marked(mark) == []
    assert trainer.status == -9


def test_a_trainer_dies_with_an_agent_that_is_killed(tmp_path: Path) -> None:
    agent = (
        "import os, sys, time\n"
        "from pathlib import Path\n"
        "from trainfabric_node.agent.process import TrainerProcess\n"
        "folder = Path(sys.argv[1])\n"
        "trainer = TrainerProcess(['sleep', '300'], os.environ, folder, folder / 'log')\n"
        "print(trainer._mark, flush=True)\n"
        "time.sleep(300)\n"
    )
    with subprocess.Popen([sys.executable, "-c", agent, str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        mark = process.stdout.readline().strip()
        before = marked(mark)
        process.kill()
    deadline = time.monotonic() + 5
    while marked(mark) and time.monotonic() < deadline:
        time.sleep(0.01)

    assert len(before) == 1
    assert marked(mark) == []


def test_a_trainer_is_asked_to_terminate_before_it_is_killed(tmp_path: Path) -> None:
    script = "trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.01; done"
    with TrainerProcess(["sh", "-c", script], os.environ, tmp_path, tmp_path / "log") as trainer:
        while "ready" not in trainer.output():
            time.sleep(0.01)
        trainer.terminate()
        while trainer.status is None:
            time.sleep(0.01)

    assert trainer.status == 7
    assert trainer.output() == "ready\nbye\n"


def test_only_the_end_of_a_long_output_is_kept_in_hand(tmp_path: Path) -> None:
    with TrainerProcess(["seq", "1", "100000"], os.environ, tmp_path, tmp_path / "log") as trainer:
        while trainer.status is None:
            time.sleep(0.01)

    assert trainer.output(13) == "99999\n100000\n"


def test_files_are_uploaded_when_they_have_changed(records: RunRecords, files: RunFiles) -> None:
    publisher = Publisher(records, files, "i-1", pause_s=0)
    files.log.write_text("one\n")
    publisher.publish()
    first = records.log("i-1")
    with files.log.open("a") as log:
        log.write("two\n")
    (files.output / "steps.jsonl").write_text('{"step": 1}\n')
    publisher.publish()

    assert (first, records.log("i-1")) == ("one\n", "one\ntwo\n")
    assert records.steps() == [{"step": 1}]
    assert records.result() is None


def test_only_the_end_of_a_long_log_is_uploaded(records: RunRecords, files: RunFiles) -> None:
    files.log.write_bytes(b"x" * 5_000_000 + b"end")

    Publisher(records, files, "i-1", pause_s=0).publish()

    assert len(records.log("i-1")) == 4 * 1024 * 1024
    assert records.log("i-1").endswith("xend")


def test_slow_uploads_are_made_seldom(records: RunRecords, files: RunFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, uploads = Clock(), []

    def slow(name: str, data: bytes) -> None:
        uploads.append(clock.now)
        clock.now += 2.0

    monkeypatch.setattr(records, "publish", slow)
    publisher = Publisher(records, files, "i-1", pause_s=3.0, clock=clock)
    for second in range(100):
        clock.now = max(clock.now, float(second))
        files.log.write_text("x" * second)
        publisher.publish_when_due()

    assert uploads == [0.0, 42.0, 84.0]


class Sink:
    def __init__(self) -> None:
        self.put_values: list[dict[Metric, float]] = []

    def put(self, values: dict[Metric, float]) -> None:
        self.put_values.append(values)


def _line(step: int) -> bytes:
    line = {"step": step, "loss": 8.0 - step, "grad_norm": 1.5, "tokens": 2048, "seconds": 0.25 * step}
    return json.dumps(line).encode() + b"\n"


def test_metrics_are_made_of_new_steps_only(records: RunRecords) -> None:
    sink = Sink()
    metrics = StepMetrics(records, lambda: 10, sink, pause_s=0)

    metrics.publish()
    records.publish("steps.jsonl", _line(1) + _line(2) + b'{"step": 3')
    metrics.publish()
    metrics.publish()
    records.publish("steps.jsonl", _line(1) + _line(2) + _line(3))
    metrics.publish()

    assert sink.put_values == [
        {
            Metric.LOSS: 6.0,
            Metric.GRADIENT_NORM: 1.5,
            Metric.STEP_SECONDS: 0.375,
            Metric.TOKENS_PER_SECOND: 4096 / 0.75,
            Metric.CHECKPOINT_STEP: 10.0,
        },
        {
            Metric.LOSS: 5.0,
            Metric.GRADIENT_NORM: 1.5,
            Metric.STEP_SECONDS: 0.75,
            Metric.TOKENS_PER_SECOND: 2048 / 0.75,
            Metric.CHECKPOINT_STEP: 10.0,
        },
    ]


def test_there_is_no_checkpoint_metric_before_the_first_commit(records: RunRecords) -> None:
    sink = Sink()
    records.publish("steps.jsonl", _line(1))

    StepMetrics(records, lambda: None, sink, pause_s=0).publish_when_due()

    assert Metric.CHECKPOINT_STEP not in sink.put_values[0]
