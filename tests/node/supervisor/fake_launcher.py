"""The launcher as it is, with ranks that only count: `python fake_launcher.py SOCKET`.

What the ranks do stands as JSON in their variable `RANKS`: `steps` to take, seconds of a `step`, and `fail`, by the
number of a rank, the step `at` which it fails and what its last word, its `end`, then is.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from trainfabric_node.launch.processes import die_with_parent
from trainfabric_training.launch.wire import Start

BEAT_S = 0.02


def run_agent(start: Start, launcher: int) -> int:
    os.setsid()
    die_with_parent(launcher)
    log = os.open(start.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.dup2(log, 1)
    os.dup2(log, 2)
    agent = os.getpid()
    first = start.node_rank * start.ranks_per_node
    ranks = {fork_rank(start, rank, agent): rank for rank in range(first, first + start.ranks_per_node)}
    left = dict(ranks)
    while left:
        pid, status = os.wait()
        rank = left.pop(pid)
        if status and (start.rank_files / f"{rank}.end.json").exists() is False:
            say_end(start, rank, status="failed", detail=f"rank {rank} (process {pid}) was ended by a signal")
        if status:
            for other in left:
                os.kill(other, signal.SIGKILL)
                os.waitpid(other, 0)
                say_end(start, left[other], status="failed", detail=f"ended with rank {rank}", of_others=True)
            return 1
    return 0


def fork_rank(start: Start, rank: int, agent: int) -> int:
    pid = os.fork()
    if pid == 0:
        die_with_parent(agent)
        os.setsid()
        os._exit(count(start, rank, json.loads(start.environment.get("RANKS", "{}"))))
    return pid


def count(start: Start, rank: int, script: dict[str, Any]) -> int:
    print(f"trainer: rank {rank} of epoch {start.epoch} counts", flush=True)
    flag = Path(start.arguments[start.arguments.index("--stop-flag") + 1])
    output = Path(start.arguments[start.arguments.index("--output") + 1])
    said: dict[str, Any] = {"rank": rank, "pid": os.getpid(), "step": 0, "phase": "start"}
    threading.Thread(target=beat_on, args=(start, said), daemon=True).start()
    for step in range(1, script.get("steps", 100_000) + 1):
        time.sleep(script.get("step", 0.02))
        said.update(step=step, phase="train")
        if rank == 0:
            with (output / "steps.jsonl").open("a") as steps:
                steps.write(json.dumps({"step": step}) + "\n")
        fail = script.get("fail", {}).get(str(rank))
        if fail and step >= fail["at"]:
            say_end(start, rank, status="failed", step=step, **fail["end"])
            return 1
        if flag.exists():
            return leave(start, rank, step, "resume", output)
    return leave(start, rank, script["steps"], "done", output)


def leave(start: Start, rank: int, step: int, status: str, output: Path) -> int:
    if rank == 0:
        named = {"resume": "stopped", "done": "done"}[status]
        (output / "result.json").write_text(json.dumps({"status": named, "step": step}))
    say_end(start, rank, status=status, step=step)
    return 0


def beat_on(start: Start, said: dict[str, Any]) -> NoReturn:
    while True:
        write(start.rank_files / f"{said['rank']}.json", {**said, "beat": time.time()})
        time.sleep(BEAT_S)


def say_end(start: Start, rank: int, **end: Any) -> None:
    write(start.rank_files / f"{rank}.end.json", end)


def write(path: Path, content: dict[str, Any]) -> None:
    whole = path.with_name(f".{path.name}")
    whole.write_text(json.dumps(content))
    whole.replace(path)


if __name__ == "__main__":
    stand_in = ModuleType("trainfabric_training.launch.epoch")
    stand_in.run_agent = run_agent  # type: ignore[attr-defined]
    sys.modules[stand_in.__name__] = stand_in
    from trainfabric_training.launch.server import Launcher

    Launcher(Path(sys.argv[1])).serve()
