"""What a launcher has imported is all that a rank needs until it has taken, saved and restored a step."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch.distributed as dist

from tests.node.seaweed import running_seaweed
from tests.training.conftest import Workplace
from trainfabric_node.checkpoint import CheckpointStore
from trainfabric_node.store import open_store
from trainfabric_plan.layout import Layout
from trainfabric_training.launch.wire import Start

LAUNCHER = """
import json, os, sys, threading
from pathlib import Path
from trainfabric_training.settings import prepare_launcher, prepare_ranks

prepare_launcher()
from trainfabric_training.engine.preload import cuda_is_there, preload

prepare_ranks(cpu=not cuda_is_there())
from trainfabric_training.launch import epoch
from trainfabric_training.launch.wire import Start

preload()
import gc, torch

facts = Path(sys.argv[1])
(facts / "launcher.json").write_text(json.dumps({
    "cuda": torch.cuda.is_initialized(), "frozen": gc.get_freeze_count(), "threads": threading.active_count(),
    "tasks": len(list(Path("/proc/self/task").iterdir())),
}))
trainer = epoch.run

def run(*arguments, **more):
    before = set(sys.modules)
    status = trainer(*arguments, **more)
    (facts / f"{os.environ['RANK']}.json").write_text(json.dumps({
        "imported": sorted(set(sys.modules) - before), "threads": torch.get_num_threads(),
    }))
    return status

epoch.run = run
for line in sys.stdin:
    process = os.fork()
    if process == 0:
        os._exit(epoch.run_agent(Start.model_validate_json(line), os.getppid()))
    print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)
"""


@pytest.fixture
def launcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Start], int]]:
    """Runs an epoch in forks of a process that did what a launcher does; its exit status."""
    with running_seaweed(tmp_path) as server:
        server.make_bucket("tests")
        for name, value in {**server.environment, "CUDA_VISIBLE_DEVICES": ""}.items():
            monkeypatch.setenv(name, value)
        process = subprocess.Popen(
            [sys.executable, "-c", LAUNCHER, str(tmp_path)],
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

        def run(start: Start) -> int:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(start.model_dump_json() + "\n")
            process.stdin.flush()
            return int(process.stdout.readline())

        with process:
            yield run
            process.kill()


def test_a_rank_imports_nothing_more_and_the_launcher_touches_no_device_and_starts_no_thread(
    launcher: Callable[[Start], int], workplace: Workplace, tmp_path: Path
) -> None:
    layout = Layout(pipeline=2, tensor=2)
    CheckpointStore(open_store("s3://tests/checkpoints/")).claim("one")
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)  # type: ignore[attr-defined]
    start = Start(
        epoch=1,
        directory=tmp_path / "1",
        environment={"GLOO_SOCKET_IFNAME": "lo"},
        nodes=1,
        node_rank=0,
        ranks_per_node=layout.ranks,
        run_id="one",
        rendezvous=f"127.0.0.1:{store.port}",
        address="127.0.0.1",
        arguments=(
            *workplace.arguments("preload", layout, "--checkpoints", "s3://tests/checkpoints/"),
            *("--nonce", "one", "--stop-after-step", "1"),
        ),
    )
    trained = launcher(start)
    assert trained == 75, start.log.read_text()
    imported_to_train = [_imported(tmp_path, rank) for rank in range(layout.ranks)]
    again = start.model_copy(update={"directory": tmp_path / "2", "run_id": "two"})
    resumed = launcher(again.model_copy(update={"arguments": (*start.arguments, "--resume", "--stop-after-step", "2")}))
    imported_to_resume = [_imported(tmp_path, rank) for rank in range(layout.ranks)]

    assert resumed == 75, again.log.read_text()
    assert imported_to_train == imported_to_resume == [[]] * layout.ranks
    facts = json.loads((tmp_path / "launcher.json").read_text())
    assert (facts["cuda"], facts["threads"]) == (False, 1)
    assert facts["frozen"] > 100_000


def _imported(directory: Path, rank: int) -> list[str]:
    facts = json.loads((directory / f"{rank}.json").read_text())
    assert facts["threads"] == 1
    return list(facts["imported"])
