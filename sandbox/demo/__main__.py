"""`python -m sandbox.demo [run|report]`: the whole demo, or its report again from the files it left."""

from __future__ import annotations

import fcntl
import json
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from rich.console import Console
from rich.table import Table

from sandbox.demo.commands import DemoFailed
from sandbox.demo.report import LARGEST_LOSS_DIFFERENCE, REPORT_FILE, layout_words, make_report, read_demo
from sandbox.demo.run import run_demo
from sandbox.processes import exit_on_sigterm
from trainfabric_plan.errors import Refused, TrainfabricError

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "demo"
ENVIRONMENT_FILE = ROOT / "environments" / "demo.yaml"


def main(arguments: list[str]) -> int:
    """Run the demo; leaves with 0, with 1 if a part failed, with 2 for what the user can mend."""
    console = Console()
    exit_on_sigterm()
    signal.signal(signal.SIGINT, _stop_once)
    try:
        if arguments != ["report"]:
            with _only_one():
                run_demo(ROOT, BUILD, ENVIRONMENT_FILE, console)
        return _finish(console)
    except TrainfabricError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 2
    except (DemoFailed, ValueError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("demo: stopped; nothing runs on", file=sys.stderr)
        return 130


def _stop_once(number: int, frame: FrameType | None) -> None:
    """The first Ctrl-C stops everything in order; those after it change nothing."""
    signal.signal(number, signal.SIG_IGN)
    print("demo: stopping what runs, up to half a minute", file=sys.stderr)
    raise KeyboardInterrupt


@contextmanager
def _only_one() -> Iterator[None]:
    """Hold the checkout's demo directory, empty: a second demo is refused, one that died is not in the way."""
    BUILD.parent.mkdir(exist_ok=True)
    with (BUILD.parent / "demo.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refused(
                f"{BUILD}: demo must be the only one in this checkout, got one that runs; wait for it"
            ) from None
        shutil.rmtree(BUILD, ignore_errors=True)
        BUILD.mkdir()
        yield


def _finish(console: Console) -> int:
    # matplotlib takes a second to import, so only here
    from sandbox.demo.page import page
    from sandbox.demo.plots import plot_losses

    try:
        files = read_demo(BUILD)
    except FileNotFoundError as error:
        raise Refused(f"{error.filename}: report must be made of a finished demo, got none; run make demo") from None
    report = make_report(files, ENVIRONMENT_FILE)
    (BUILD / REPORT_FILE).write_text(json.dumps(report, indent=2) + "\n")
    plot_losses(files, BUILD, f"{layout_words(report['layout'])}, {report['ranks']} ranks")
    (BUILD / "report.html").write_text(page(report, files, (BUILD / "loss.svg").read_text()))
    _print(report, console)
    if report["max_loss_difference"] > LARGEST_LOSS_DIFFERENCE:
        raise DemoFailed(
            f"max_loss_difference must be at most {LARGEST_LOSS_DIFFERENCE}, got {report['max_loss_difference']}"
        )
    if report["interruptions"] != 1 or report["steps_lost"]:
        got = f"{report['interruptions']} with {report['steps_lost']}"
        raise DemoFailed(f"one interruption must lose no step, got {got}: {json.dumps(report['epochs'], indent=2)}")
    if report["loss_last"] >= report["loss_first"]:
        raise DemoFailed(f"loss must fall, got {report['loss_first']} at first and {report['loss_last']} at last")
    return 0


def _print(report: dict[str, Any], console: Console) -> None:
    table = Table(title="trainfabric demo", title_justify="left", show_header=False, pad_edge=False)
    usd = report["usd_per_hour_of_the_real_environment"]
    interfaces = report["launch_template_network_interfaces"]
    efa = sum(i["type"] != "interface" for i in interfaces)
    fleet = f"{report['nodes']} × {report['instance_type']}"
    rows = {
        "stacks": ", ".join(s["name"] for s in report["stacks"]),
        "resources": f"{sum(report['resources'].values())} of {len(report['resources'])} types, "
        f"{report['resources_real_in_moto']} real in moto, the others checked records",
        "a node's interfaces": f"{len(interfaces)}, {efa} of them EFA ({report['instance_type']})",
        "layout": f"{layout_words(report['layout'])} = {report['ranks']} ranks on {report['nodes']} nodes",
        "loss": f"{report['loss_first']:.4f} → {report['loss_last']:.4f} in {report['steps']} steps",
        "interruptions": f"{report['interruptions']}, {report['steps_lost']} steps lost, next step after "
        f"{report['resume_seconds']:.1f} s",
        "against one process": f"largest |Δ loss| {report['max_loss_difference']:.2e}",
        "checkpoints": f"{report['checkpoints']} in {report['checkpoints_uri']}",
        "real counterpart": "no confirmed price" if usd is None else f"${usd:,.2f} per hour ({fleet}, list prices)",
        "seconds": ", ".join(f"{k} {v:.0f}" for k, v in report["seconds"].items()),
    }
    for name, value in rows.items():
        table.add_row(f"[bold]{name}[/]", value)
    console.print(table)
    console.print(report["what_a_green_deploy_means"], style="dim")
    console.print(f"report: {(BUILD / 'report.html').relative_to(ROOT)}", highlight=False)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
