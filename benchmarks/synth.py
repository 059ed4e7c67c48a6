"""What synthesising a whole environment costs against the least that any CDK app costs: `python -m benchmarks.synth`.

Each run is a process of its own, from its start to the templates on disk, as `cdk synth` starts it: the floor is an app
with one stack and one bucket, the other the environment file given (by default the spot fleet on p5.48xlarge). Both run
in turn, with CDK's own CloudFormation validator off, as everywhere but in `make validate`. Ratios are of medians, and
of CPU seconds (user and system, the process behind the CDK included) as well as of wall-clock seconds: the latter move
with whatever else the machine does. The last line is JSON; it is kept in `build/bench/synth.json`, with a plot.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
BENCH = ROOT / "build" / "bench"
GOAL = 2.0
"""Most times the floor that the whole environment should take."""

_FLOOR = """\
import aws_cdk as cdk
from aws_cdk import aws_s3 as s3
app = cdk.App(analytics_reporting=False)
s3.Bucket(cdk.Stack(app, "Floor"), "Bucket")
app.synth()
"""

_WHOLE = """\
from trainfabric_stacks import deploy_app
deploy_app()
"""


@dataclass(frozen=True, kw_only=True)
class Took:
    """One run, in seconds."""

    wall: float
    cpu: float


def apps(environment: Path) -> dict[str, list[str]]:
    """Command lines of what is compared."""
    context = json.dumps({"environment": str(environment)})
    whole = f"import os; os.environ['CDK_CONTEXT_JSON'] = {context!r}\n" + _WHOLE
    return {"floor": [sys.executable, "-c", _FLOOR], "environment": [sys.executable, "-c", whole]}


def run_once(command: list[str]) -> Took:
    """Starts the app, waits for its templates, and takes what it and its children used."""
    with tempfile.TemporaryDirectory(prefix="trainfabric-synth-") as directory:
        variables = {
            **os.environ,
            "CDK_VALIDATION": "false",
            "CDK_OUTDIR": str(Path(directory) / "out"),
            "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "20",
        }
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(command, env=variables, cwd=ROOT, check=True, capture_output=True)
        wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        assert list(Path(directory).glob("out/*.template.json")), "the app wrote no template"
    return Took(wall=wall, cpu=after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def measure(commands: Mapping[str, list[str]], rounds: int) -> dict[str, list[Took]]:
    """Every app once per round, in turn; a first round warms the file cache and counts for nothing."""
    took: dict[str, list[Took]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, command in commands.items():
            one = run_once(command)
            if number:
                took[name].append(one)
                print(f"{number:2d} of {rounds}: {name:12s} {one.wall:5.2f} s, {one.cpu:5.2f} s of CPU", flush=True)
    return took


def summary(took: Mapping[str, list[Took]], environment: Path) -> dict[str, Any]:
    """Medians and their ratios."""
    wall = {name: statistics.median(one.wall for one in runs) for name, runs in took.items()}
    cpu = {name: statistics.median(one.cpu for one in runs) for name, runs in took.items()}
    return {
        "benchmark": "synth",
        "environment": str(environment.relative_to(ROOT)),
        "rounds": len(took["floor"]),
        "floor_s": round(wall["floor"], 3),
        "environment_s": round(wall["environment"], 3),
        "ratio_wall": round(wall["environment"] / wall["floor"], 2),
        "ratio_cpu": round(cpu["environment"] / cpu["floor"], 2),
        "goal": GOAL,
    }


def plot(took: Mapping[str, list[Took]], result: Mapping[str, Any], directory: Path) -> None:
    """`synth.svg` and `synth.png`: every run as a dot, and the goal."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 2.4), layout="constrained")
    for row, runs in enumerate(took.values()):
        axes.plot([one.wall for one in runs], [row] * len(runs), "o", alpha=0.6)
    axes.axvline(GOAL * result["floor_s"], linestyle="--", color="grey", label=f"goal: {GOAL:g} × floor")
    axes.set_yticks(range(len(took)), list(took))
    axes.set_ylim(-0.6, len(took) - 0.4)
    axes.set_xlim(left=0)
    axes.set_xlabel("seconds from the start of the app to its templates")
    axes.set_title(f"Synthesis: {result['ratio_wall']:g} × the floor ({result['ratio_cpu']:g} × in CPU seconds)")
    axes.legend(loc="lower right")
    for ending in ("svg", "png"):
        figure.savefig(directory / f"synth.{ending}", dpi=150)


def main() -> None:
    """Measures, and keeps and prints the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--environment", type=Path, default=ROOT / "environments" / "p5_spot.yaml")
    arguments = parser.parse_args()
    environment = arguments.environment.resolve()
    took = measure(apps(environment), arguments.rounds)
    result = summary(took, environment)
    BENCH.mkdir(parents=True, exist_ok=True)
    (BENCH / "synth.json").write_text(json.dumps(result) + "\n")
    plot(took, result, BENCH)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
