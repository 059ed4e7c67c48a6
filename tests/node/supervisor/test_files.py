from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.node.samples import RECIPE, plan, spec
from tests.node.supervisor.fake_fleet import FakeFleet
from tests.node.supervisor.processes import until
from trainfabric_node.agent import Host, Node, procfs
from trainfabric_node.agent.bell import Bell
from trainfabric_node.agent.command import start_message, trainer_variables
from trainfabric_node.agent.crew import Crew
from trainfabric_node.agent.files import RankBeat, RankEnd, RunFiles
from trainfabric_node.agent.procfs import kernel_view, process_state, py_spy, stacks
from trainfabric_node.jobs import JobLedger
from trainfabric_node.jobs.records import now
from trainfabric_node.membership.protocol import EpochNode, EpochOrder, EpochRecord
from trainfabric_node.store import open_store
from trainfabric_plan.contract import Role
from trainfabric_plan.planning import Plan
from trainfabric_plan.recipes import Recipe


@pytest.fixture
def run_files(tmp_path: Path) -> RunFiles:
    return RunFiles(directory=tmp_path / "run", cache=tmp_path / "cache")


def _order(**changes: object) -> EpochOrder:
    record = EpochRecord(
        job="first",
        run=1,
        number=7,
        nonce="n7",
        nodes=tuple(EpochNode(instance_id=f"i-{n}", address=f"10.0.0.{n}", incarnation="x") for n in (5, 7)),
        plan=plan(2),
        detail="",
        controller="c1",
        claimed=now(),
    )
    given = {"record": record, "resume": False, "rendezvous_host": "10.0.0.5", "rendezvous_port": 29400}
    return EpochOrder(**{**given, **changes})  # type: ignore[arg-type]


def _host() -> Host:
    return Host(
        node=Node(instance_id="i-7", address="10.0.0.7", role=Role.WORKER),
        ledger=JobLedger(open_store("/nowhere")),
        checkpoint_bucket="s3://checkpoints/",
        state=Path("/state"),
        variables={"HOME": "/root"},
        notices=list,
        fleet=lambda _: FakeFleet(),
    )


def test_the_launcher_is_told_all_that_ranks_need() -> None:
    assert start_message(_host(), spec(2), _order(), 1) == {
        "epoch": 7,
        "directory": "/state/runs/first/0001/epochs/00000007",
        "environment": {"HOME": "/root"},
        "nodes": 2,
        "node_rank": 1,
        "ranks_per_node": 2,
        "run_id": "first.n7",
        "rendezvous": "10.0.0.5:29400",
        "address": "10.0.0.7",
        "arguments": [
            "--recipe",
            "/state/runs/first/0001/epochs/00000007/recipe.json",
            "--plan",
            "/state/runs/first/0001/epochs/00000007/plan.json",
            "--job",
            "first",
            "--data",
            "s3://data/data/corpus",
            "--checkpoints",
            "s3://checkpoints/jobs/first/checkpoints/",
            "--output",
            "/state/runs/first/0001/epochs/00000007/output",
            "--stop-flag",
            "/state/runs/first/0001/epochs/00000007/stop",
            "--cache",
            "/state/cache",
            "--nonce",
            "n7",
            "--rank-files",
            "/state/runs/first/0001/epochs/00000007/ranks",
            "--beat-seconds",
            "2",
        ],
    }


@pytest.mark.parametrize(
    ("changes", "options"),
    [
        ({"resume": True}, ["2", "--resume"]),
        ({"resume": True, "from_step": 10}, ["--resume", "--from-step", "10"]),
        ({"from_step": 10}, ["--beat-seconds", "2"]),
    ],
)
def test_an_epoch_that_goes_on_says_from_where(changes: dict[str, object], options: list[str]) -> None:
    arguments = start_message(_host(), spec(2), _order(**changes), 1)["arguments"]

    assert arguments[-len(options) :] == options


def test_ranks_inherit_the_environment_over_defaults_of_ours() -> None:
    assert trainer_variables({"OMP_NUM_THREADS": "4", "HOME": "/home"}, "eu-west-1") == {
        "OMP_NUM_THREADS": "4",
        "AWS_DEFAULT_REGION": "eu-west-1",
        "HOME": "/home",
        "PYTHONUNBUFFERED": "1",
    }


def test_an_epoch_begins_with_recipe_and_plan_and_nothing_of_earlier_tries(run_files: RunFiles) -> None:
    files = run_files.epoch(3)
    files.output.mkdir(parents=True)
    (files.output / "steps.jsonl").write_text("old\n")

    files.prepare(RECIPE, plan(2))

    assert Recipe.model_validate_json(files.recipe.read_bytes()) == RECIPE
    assert Plan.model_validate_json(files.plan.read_bytes()) == plan(2)
    assert list(files.output.iterdir()) == list(files.ranks.iterdir()) == []
    assert list(run_files.epochs()) == [3]


def test_ranks_that_are_asked_to_leave_at_a_checkpoint_can_be_asked_to_leave_at_once_but_not_back(
    run_files: RunFiles,
) -> None:
    files = run_files.epoch(1)
    files.prepare(RECIPE, plan())
    said = []
    for at in ("checkpoint", "checkpoint", "now", "checkpoint"):
        files.ask_to_leave(at)
        said.append(files.stop_flag.read_text())

    assert said == ["checkpoint", "checkpoint", "now", "now"]
    assert sorted(path.name for path in files.directory.iterdir() if path.name.startswith("stop")) == ["stop"]


def test_what_ranks_say_is_read_and_what_is_not_there_yet_is_none(run_files: RunFiles) -> None:
    files = run_files.epoch(1)
    files.prepare(RECIPE, plan())
    (files.ranks / "2.json").write_text('{"rank": 2, "pid": 7, "step": 3, "phase": "save", "beat": 1.5}')
    (files.ranks / "2.end.json").write_text('{"status": "resume", "step": 4}')
    (files.ranks / "3.end.json").write_text("{")

    assert files.beat(2) == RankBeat(rank=2, pid=7, step=3, phase="save", beat=1.5)
    assert files.end(2) == RankEnd(status="resume", step=4)
    assert (files.beat(1), files.end(1), files.printed()) == (None, None, "")
    assert files.end(3) == RankEnd(status="failed", detail=f"{files.ranks}/3.end.json cannot be read")


def test_only_the_end_of_what_ranks_printed_is_looked_at(run_files: RunFiles) -> None:
    files = run_files.epoch(1)
    files.prepare(RECIPE, plan())
    files.log.write_text("".join(f"{number}\n" for number in range(100_000)))

    assert files.printed(12) == "99998\n99999\n"


def test_the_state_of_a_process_is_that_of_the_kernel() -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"]) as process:
        until(lambda: process_state(process.pid) == "S")
        process.kill()
        until(lambda: process_state(process.pid) == "Z")
    assert process_state(process.pid) == "X"


def test_stacks_of_several_processes_are_those_of_python() -> None:
    program = "import time\ndef standing_still():\n    time.sleep(100)\nstanding_still()"
    with (
        subprocess.Popen([sys.executable, "-c", program]) as one,
        subprocess.Popen([sys.executable, "-c", program]) as two,
    ):
        until(lambda: all("standing_still" in text for text in stacks({4: one.pid, 5: two.pid}).values()))
        found = stacks({4: one.pid, 5: two.pid, 6: 2**22 - 1})
        for process in (one, two):
            process.kill()

    assert list(found) == [4, 5, 6]
    assert f"Process {two.pid}: " in found[5]
    assert found[6] == "the process is gone"


def test_without_py_spy_the_kernel_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(procfs, "py_spy", lambda: None)

    found = stacks({1: os.getpid()})

    assert found[1].startswith("State:\tR")
    assert kernel_view(os.getpid()).startswith("State:\tR")


def test_py_spy_is_that_of_this_environment() -> None:
    spy = py_spy()

    assert spy is not None
    assert Path(spy).parent == Path(sys.executable).parent


def test_a_bell_that_was_rung_before_ends_the_next_wait_and_only_that() -> None:
    bell = Bell()
    bell.ring()
    bell.ring()
    began = time.monotonic()
    bell.wait(10.0)
    early = time.monotonic() - began
    bell.wait(0.1)

    assert early < 5.0
    assert time.monotonic() - began >= 0.1


def test_what_a_thread_raises_is_raised_where_the_decisions_are() -> None:
    bell, stop = Bell(), threading.Event()
    crew = Crew(bell)

    def fail() -> None:
        raise ZeroDivisionError

    crew.start("good", lambda: until(stop.is_set), stop.set)
    crew.check()
    crew.start("bad", fail, lambda: None)
    bell.wait(10.0)

    with pytest.raises(ZeroDivisionError):
        crew.check()
    crew.stop(5.0)
    assert stop.is_set()
