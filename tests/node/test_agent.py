from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest

from tests.node.samples import spec
from trainfabric_node.agent import Host, Launch, Node, Patience, serve
from trainfabric_node.agent.conclusion import is_headless
from trainfabric_node.jobs import JobLedger, NodeState, NodeStatus, Outcome, StopRequest
from trainfabric_node.jobs.records import now
from trainfabric_node.store import open_store
from trainfabric_plan.contract import Metric, Role
from trainfabric_plan.errors import Unreachable

QUICK = Patience(
    poll_s=0.02,
    publish_s=0.05,
    metrics_s=0.05,
    heartbeat_s=0.1,
    notice_s=0.02,
    stop_s=10.0,
    unbegun_s=1.0,
    interrupted_s=10.0,
    failed_s=0.3,
    result_s=5.0,
    peers_s=5.0,
    absent_s=60.0,
)

STEP = """echo '{"step": 1, "loss": 5.0, "grad_norm": 1.0, "tokens": 8, "seconds": 0.1}' > steps.jsonl; echo step 1"""
DONE = f"""{STEP}; sleep 0.2; echo '{{"status": "done", "step": 60}}' > result.json"""
UNTIL_STOPPED = f"""{STEP}
until [ -e "$1" ]; do sleep 0.02; done
echo '{{"status": "stopped", "step": 24}}' > result.json"""


@dataclass
class Lab:
    """A bucket and the nodes around it, each with an agent in a thread and a shell script as its trainer."""

    folder: Path
    ledger: JobLedger
    hosts: dict[str, Host] = field(default_factory=dict)
    threads: list[threading.Thread] = field(default_factory=list)
    released: list[float] = field(default_factory=list)
    metrics: list[dict[Metric, float]] = field(default_factory=list)

    def node(self, name: str, role: Role, script: str, **changes: object) -> Host:
        """Starts a node whose trainer runs a shell script in its output directory; `$1` is the stop flag."""

        def command(launch: Launch) -> Sequence[str]:
            return ["sh", "-c", f'cd "$2"; {script}', "sh", str(launch.files.stop_flag), str(launch.files.output)]

        host = Host(
            node=Node(instance_id=name, address="127.0.0.1", role=role),
            region="us-east-1",
            ledger=self.ledger,
            checkpoint_bucket="s3://checkpoints/",
            state=self.folder / name,
            variables={"PATH": "/usr/bin:/bin"},
            interruption=lambda: None,
            release_nodes=lambda: self.released.append(time.monotonic()),
            metrics=self,
            build_command=command,
            patience=QUICK,
        )
        host = replace(host, **changes)  # type: ignore[arg-type]
        self.hosts[name] = host
        self.threads.append(threading.Thread(target=serve, args=(host,)))
        self.threads[-1].start()
        return host

    def put(self, values: dict[Metric, float]) -> None:
        self.metrics.append(values)

    def outcome(self) -> Outcome:
        """How the run ended, once the coordinator has said so and freed the environment."""
        _until(lambda: self.ledger.run("first", 1).outcome() is not None and self.ledger.current() is None)
        outcome = self.ledger.run("first", 1).outcome()
        assert outcome is not None
        return outcome

    def states(self) -> dict[str, NodeState]:
        return {node.instance_id: node.state for node in self.ledger.run("first", 1).nodes()}

    def detail(self, name: str) -> str:
        status = self.ledger.run("first", 1).node(name)
        assert status is not None
        return status.detail

    def wait_until_running(self, nodes: int) -> None:
        _until(lambda: list(self.states().values()).count(NodeState.RUNNING) == nodes)

    def leave(self) -> None:
        for host in self.hosts.values():
            host.leaving.set()
        for thread in self.threads:
            thread.join(10)
        assert not any(thread.is_alive() for thread in self.threads)


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "the condition must come true within 20 s"
        time.sleep(0.02)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    made = Lab(tmp_path, JobLedger(open_store(str(tmp_path / "bucket"))))
    yield made
    made.leave()


def test_a_job_runs_on_all_nodes_and_the_coordinator_ends_it(lab: Lab) -> None:
    lab.node("i-c", Role.COORDINATOR, "sleep 0.2")
    lab.node("i-w", Role.WORKER, DONE)

    lab.ledger.claim(spec())

    outcome = lab.outcome()
    assert (outcome.state, outcome.step, outcome.detail) == ("done", 60, "")
    assert lab.states() == {"i-c": NodeState.DONE, "i-w": NodeState.DONE}
    assert len(lab.released) == 1


def test_what_the_trainer_writes_is_published_wherever_rank_0_is(lab: Lab) -> None:
    lab.node("i-c", Role.COORDINATOR, "echo from the coordinator; sleep 0.2")
    lab.node("i-w", Role.WORKER, DONE)

    lab.ledger.claim(spec())
    lab.outcome()

    records = lab.ledger.run("first", 1)
    assert [line["step"] for line in records.steps()] == [1]
    assert (records.log("i-c"), records.log("i-w")) == ("from the coordinator\n", "step 1\n")
    assert lab.metrics[-1][Metric.LOSS] == 5.0


def test_the_nodes_find_recipe_and_plan_beside_them_and_nothing_of_earlier_runs(lab: Lab) -> None:
    given = spec(1)
    old = lab.folder / "i-c" / "runs" / "first" / "0001" / "output" / "steps.jsonl"
    old.parent.mkdir(parents=True)
    old.write_text("old\n")
    lab.node("i-c", Role.COORDINATOR, f"ls; cat ../recipe.json ../plan.json; {DONE}")

    lab.ledger.claim(given)
    lab.outcome()

    log = lab.ledger.run("first", 1).log("i-c")
    assert log == given.recipe.model_dump_json(indent=2) + given.plan.model_dump_json(indent=2) + "step 1\n"


def test_nodes_meet_at_the_coordinator(lab: Lab) -> None:
    lab.node("i-c", Role.COORDINATOR, DONE, rendezvous_port=41000)

    lab.ledger.claim(spec(1))
    lab.outcome()

    met = lab.ledger.run("first", 1).rendezvous()
    assert met is not None
    assert (met.host, met.port) == ("127.0.0.1", 41000)


def test_a_stop_that_is_asked_for_reaches_every_trainer_as_a_flag(lab: Lab) -> None:
    lab.node("i-c", Role.COORDINATOR, UNTIL_STOPPED)
    lab.node("i-w", Role.WORKER, 'until [ -e "$1" ]; do sleep 0.02; done')
    lab.ledger.claim(spec())
    lab.wait_until_running(2)

    lab.ledger.run("first", 1).request_stop(StopRequest(reason="asked", detail="by a test", requested=now()))

    outcome = lab.outcome()
    assert (outcome.state, outcome.step, outcome.detail) == ("stopped", 24, "asked by a test")
    assert lab.states() == {"i-c": NodeState.STOPPED, "i-w": NodeState.STOPPED}


def test_an_agent_that_is_told_to_leave_stops_the_job_with_a_checkpoint(lab: Lab) -> None:
    lab.node("i-c", Role.COORDINATOR, UNTIL_STOPPED)
    worker = lab.node("i-w", Role.WORKER, 'until [ -e "$1" ]; do sleep 0.02; done')
    lab.ledger.claim(spec())
    lab.wait_until_running(2)

    worker.leaving.set()

    outcome = lab.outcome()
    assert (outcome.state, outcome.step) == ("stopped", 24)
    assert outcome.detail == "interrupted i-w: the agent was told to leave"
    assert lab.states() == {"i-c": NodeState.STOPPED, "i-w": NodeState.STOPPED}


def test_a_spot_notice_stops_the_job_with_a_checkpoint(lab: Lab) -> None:
    notice: list[str] = []
    lab.node("i-c", Role.COORDINATOR, UNTIL_STOPPED)
    script = 'until [ -e "$1" ]; do sleep 0.02; done'
    lab.node("i-w", Role.WORKER, script, interruption=lambda: next(iter(notice), None))
    lab.ledger.claim(spec())
    lab.wait_until_running(2)

    notice.append("spot notice: terminate at 08:22")

    outcome = lab.outcome()
    assert (outcome.state, outcome.detail) == ("stopped", "interrupted i-w: spot notice: terminate at 08:22")


def test_a_trainer_that_fails_ends_the_run_with_its_last_lines(lab: Lab) -> None:
    lab.node("i-c", Role.COORDINATOR, "while :; do sleep 0.02; done")
    lab.node("i-w", Role.WORKER, "sleep 0.3; echo out of memory; exit 3")

    lab.ledger.claim(spec())

    outcome = lab.outcome()
    assert (outcome.state, outcome.detail) == ("failed", "i-w: the trainer left with status 3: out of memory")
    assert lab.states() == {"i-c": NodeState.FAILED, "i-w": NodeState.FAILED}
    assert lab.detail("i-c") == "ended because another node failed: ended by force 0.3 s after the stop"
    assert len(lab.released) == 1


def test_a_node_that_knows_why_the_run_failed_is_heard_before_one_that_only_ended_first(lab: Lab) -> None:
    closing = "W1130 18:11:40.934000 9 torch/distributed/elastic/multiprocessing/api.py:1028] Sending process 8"
    lab.node("i-c", Role.COORDINATOR, f"echo '{closing}'; exit 1")
    lab.node("i-w", Role.WORKER, "sleep 0.2; echo part 3 is damaged; exit 2")

    lab.ledger.claim(spec())

    assert lab.outcome().detail == "i-w: the trainer left with status 2: part 3 is damaged"
    assert lab.states() == {"i-c": NodeState.FAILED, "i-w": NodeState.FAILED}
    assert lab.detail("i-c") == "ended because another node failed: the trainer left with status 1: gave no reason"


def test_a_trainer_that_leaves_no_result_has_failed(lab: Lab) -> None:
    lab.node("i-c", Role.COORDINATOR, "exit 0", patience=replace(QUICK, result_s=0.1))

    lab.ledger.claim(spec(1))

    assert lab.outcome().detail == "i-c: the trainer left with status 0, but no node published its result"


def test_a_stop_before_all_nodes_have_met_ends_what_waits_for_them(lab: Lab) -> None:
    lab.node("i-c", Role.COORDINATOR, "exec sleep 300")
    lab.ledger.claim(spec())
    lab.wait_until_running(1)

    lab.ledger.run("first", 1).request_stop(StopRequest(reason="asked", requested=now()))

    assert lab.outcome().state == "stopped"
    assert lab.detail("i-c") == "stopped before training began"


def test_a_stop_before_the_coordinator_has_come_up_ends_the_workers(lab: Lab) -> None:
    lab.node("i-w", Role.WORKER, DONE)
    lab.ledger.claim(spec())
    _until(lambda: lab.states() == {"i-w": NodeState.JOINING})

    lab.ledger.run("first", 1).request_stop(StopRequest(reason="asked", requested=now()))

    _until(lambda: lab.states() == {"i-w": NodeState.STOPPED})
    assert lab.detail("i-w") == "stopped before training began"


def test_workers_that_no_coordinator_joins_fail_the_run_and_release_the_nodes(lab: Lab) -> None:
    impatient = replace(QUICK, meet_s=0.2, absent_s=0.2)
    for name in ("i-v", "i-w"):
        lab.node(name, Role.WORKER, DONE, patience=impatient)

    lab.ledger.claim(spec(3))

    outcome = lab.outcome()
    assert outcome.state == "failed"
    assert outcome.detail.endswith(": no coordinator came up within 0.2 s")
    assert NodeState.FAILED in lab.states().values()
    assert lab.released


def test_a_coordinator_that_has_fallen_silent_is_replaced_at_the_end_of_the_run(lab: Lab) -> None:
    lab.ledger.claim(spec())
    records = lab.ledger.run("first", 1)
    silent = NodeStatus(instance_id="i-c", role=Role.COORDINATOR, state=NodeState.RUNNING, updated=now())
    records.report(silent.model_copy(update={"updated": now() - timedelta(minutes=10)}))
    records.request_stop(StopRequest(reason="asked", requested=now()))

    lab.node("i-w", Role.WORKER, DONE, patience=replace(QUICK, peers_s=0.1, absent_s=0.2))

    assert lab.outcome().state == "stopped"
    assert len(lab.released) == 1


def test_a_coordinator_that_still_reports_concludes_itself(lab: Lab) -> None:
    lab.ledger.claim(spec())
    records = lab.ledger.run("first", 1)
    long_ago = now() - timedelta(minutes=10)
    just_now = now() - timedelta(seconds=1)
    records.report(NodeStatus(instance_id="i-c", role=Role.COORDINATOR, state=NodeState.RUNNING, updated=just_now))
    records.report(NodeStatus(instance_id="i-w", role=Role.WORKER, state=NodeState.STOPPED, updated=long_ago))

    host = lab.node("i-w", Role.WORKER, DONE)

    assert not is_headless(host, spec())
    assert is_headless(replace(host, patience=replace(QUICK, absent_s=0.5)), spec())


def test_a_node_that_waits_for_the_others_keeps_reporting(lab: Lab) -> None:
    lab.node("i-w", Role.WORKER, DONE)
    lab.ledger.claim(spec())
    records = lab.ledger.run("first", 1)
    _until(lambda: bool(records.nodes()))
    first = records.nodes()[0]

    _until(lambda: records.nodes()[0].updated > first.updated)

    assert records.nodes()[0].state is NodeState.JOINING


def test_an_agent_that_starts_anew_in_the_middle_of_a_run_fails_it(lab: Lab) -> None:
    lab.ledger.claim(spec(1))
    before = NodeStatus(instance_id="i-c", role=Role.COORDINATOR, state=NodeState.RUNNING, updated=now())
    lab.ledger.run("first", 1).report(before)

    lab.node("i-c", Role.COORDINATOR, DONE)

    assert lab.outcome().detail == "i-c: the agent started anew in the middle of the run"


def test_a_coordinator_that_starts_anew_after_the_trainer_has_ended_concludes_the_run(lab: Lab) -> None:
    lab.ledger.claim(spec(1))
    records = lab.ledger.run("first", 1)
    records.publish("result.json", b'{"status": "done", "step": 60}')
    records.report(NodeStatus(instance_id="i-c", role=Role.COORDINATOR, state=NodeState.DONE, updated=now()))

    lab.node("i-c", Role.COORDINATOR, "exit 1")

    assert lab.outcome().state == "done"


def test_a_run_whose_environment_was_released_by_force_ends_without_touching_the_next(lab: Lab) -> None:
    lab.node("i-c", Role.COORDINATOR, UNTIL_STOPPED)
    first = spec(1)
    lab.ledger.claim(first)
    lab.wait_until_running(1)

    lab.ledger.run("first", 1).conclude(Outcome(state="stopped", detail="by force", ended=now()))
    lab.ledger.release(first)

    _until(lambda: lab.states() == {"i-c": NodeState.FAILED})
    assert lab.detail("i-c") == "the environment was released while the trainer ran"
    assert lab.released == []


def test_one_run_after_the_other_is_taken_part_in(lab: Lab) -> None:
    lab.node("i-c", Role.COORDINATOR, DONE)
    lab.ledger.claim(spec(1))
    lab.outcome()

    lab.ledger.claim(spec(1, job="second", nonce="b"))

    _until(lambda: lab.ledger.run("second", 1).outcome() is not None)
    assert len(lab.released) == 2


def test_metrics_that_cannot_be_published_do_not_harm_the_job(lab: Lab) -> None:
    class Broken:
        def put(self, values: dict[Metric, float]) -> None:
            raise Unreachable("cloudwatch must answer")

    lab.node("i-c", Role.COORDINATOR, DONE, metrics=Broken())

    lab.ledger.claim(spec(1))

    assert lab.outcome().state == "done"


def test_nodes_that_cannot_be_released_do_not_keep_the_environment(lab: Lab) -> None:
    def refuse() -> None:
        raise Unreachable("autoscaling must accept the request")

    lab.node("i-c", Role.COORDINATOR, DONE, release_nodes=refuse)

    lab.ledger.claim(spec(1))

    assert lab.outcome().state == "done"
