"""How long a training run pauses when something of it is killed: `python -m benchmarks.recovery [--kills N]`.

A deployed environment with local nodes (moto as AWS, SeaweedFS as S3, gloo on CPU) trains the tiny recipe with ZeRO-1
in the fast profile. One process or node after the other gets SIGKILL; measured is the time from the signal to the end
of the first optimizer step beyond the highest one before it, so that restoring and repeated steps count. The last line
is JSON; it is kept in `build/bench/recovery.json`, with a plot beside it.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.faults.lab import AGENT, LAUNCHER, Lab, kill, lab

ROOT = Path(__file__).resolve().parents[1]
BENCH = ROOT / "build" / "bench"
NODES = 4
CHECKPOINT_EVERY = 2


def kinds(made: Lab) -> dict[str, Callable[[], None]]:
    """What is killed, on one worker after the other."""
    node, number = made.victim(), made.epoch()["number"]
    return {
        "rank": lambda: kill(node.ranks(number)[0].pid),
        "node": lambda: node.ask("power-off"),
        "elastic agent": lambda: kill(node.elastic_agent()),
        "supervisor": lambda: kill(node.service(AGENT)),
        "launcher": lambda: kill(node.service(LAUNCHER)),
    }


def measure(made: Lab, kills: int) -> dict[str, list[float]]:
    """Seconds of each kill, by what was killed; each waits until the run is whole again."""
    seconds: dict[str, list[float]] = {}
    for number, kind in enumerate(itertools.islice(itertools.cycle(kinds_in_turn()), kills), 1):
        made.wait_until_whole(NODES)
        made.wait_for_step_beyond(made.highest_step() + 1)
        took = made.seconds_to_new_step(kinds(made)[kind])
        seconds.setdefault(kind, []).append(took)
        print(f"{number:3d} of {kills}: {kind:13s} {took:5.2f} s", flush=True)
    return seconds


def kinds_in_turn() -> tuple[str, ...]:
    """The order in which things are killed."""
    return ("rank", "node", "elastic agent", "supervisor", "launcher")


def summary(seconds: dict[str, list[float]]) -> dict[str, Any]:
    """Quantiles over all kills, and medians by kind."""
    every = sorted(value for values in seconds.values() for value in values)
    return {
        "benchmark": "recovery",
        "kills": len(every),
        "p50_s": round(statistics.median(every), 2),
        "p95_s": round(every[max(0, -(-len(every) * 95 // 100) - 1)], 2),
        "max_s": round(every[-1], 2),
        "median_s_by_kind": {kind: round(statistics.median(values), 2) for kind, values in seconds.items()},
        "seconds": {kind: [round(value, 2) for value in values] for kind, values in seconds.items()},
        "ranks": NODES,
        "checkpoint_every": CHECKPOINT_EVERY,
    }


def plot(seconds: dict[str, list[float]], directory: Path) -> None:
    """`recovery.svg` and `recovery.png`: every kill as a dot, by kind."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 3.2), layout="constrained")
    for row, values in enumerate(seconds.values()):
        axes.plot(values, [row] * len(values), "o", alpha=0.6, color="#0b6e99")
        axes.plot([statistics.median(values)], [row], "|", markersize=22, color="#b3261e")
    axes.set_yticks(range(len(seconds)), list(seconds))
    axes.set_xlim(left=0)
    axes.set_xlabel("seconds from SIGKILL to the first new step (bar: median)")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(directory / "recovery.svg", metadata={"Date": None})
    figure.savefig(directory / "recovery.png", dpi=140)


def main(arguments: list[str]) -> int:
    """Run it; 0 if every kill was recovered from."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recovery", description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=30, help="how many, over all kinds in turn")
    chosen = parser.parse_args(arguments)
    build = BENCH / "recovery"
    shutil.rmtree(build, ignore_errors=True)
    with lab(build, nodes=NODES, name="recovery") as made:
        made.start("--checkpoint-every", str(CHECKPOINT_EVERY))
        seconds = measure(made, chosen.kills)
        made.stop()
    result = summary(seconds)
    (BENCH / "recovery.json").write_text(json.dumps(result, indent=2) + "\n")
    plot(seconds, BENCH)
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
