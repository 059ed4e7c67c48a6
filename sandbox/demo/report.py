"""The demo's report, computed from the files that the demo leaves; nothing in it is remembered from the run.

`python -m sandbox.demo report` computes it again from `build/demo`.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.demo.interruptions import changes, steps_trained_twice
from trainfabric_plan.contract import EVENTS_FILE, STEPS_FILE
from trainfabric_plan.environment.file import read_environment
from trainfabric_plan.planning.cost import cost_per_hour
from trainfabric_plan.planning.planner import make_plan

REFERENCE_STEPS_FILE = "reference_steps.jsonl"
EPOCH_STEPS_FILE = "epoch_steps.jsonl"
"""Lines of `steps.jsonl` of every epoch, also those that a later one has replaced, each with its `epoch`."""
DEPLOYMENT_FILE = "deployment.json"
SECONDS_FILE = "seconds.json"
CORPUS_FILE = "corpus.json"
REPORT_FILE = "report.json"

LARGEST_LOSS_DIFFERENCE = 1e-3
"""The demo fails beyond this. The parity test bounds the first 20 steps at 2e-6; rounding grows from there."""

WHAT_GREEN_MEANS = (
    "A green deploy here proves that the templates resolve, that their resources are created in a working order and "
    "that their references hold. It does not prove that EC2, FSx or IAM would accept every value."
)


@dataclass(frozen=True, kw_only=True)
class DemoFiles:
    """What the demo wrote, read back.

    Attributes:
        steps: Lines of `steps.jsonl`, one per optimizer step, by step.
        epoch_steps: Lines of `epoch_steps.jsonl`, by epoch.
        reference: Lines of `reference_steps.jsonl`, of the one-process run.
        events: Lines of `events.jsonl` in order.
        deployment: What boto3 found after the deploy.
        seconds: Seconds of each phase, in order.
        corpus: What the tokenised corpus is.
    """

    steps: list[dict[str, Any]]
    epoch_steps: list[dict[str, Any]]
    reference: list[dict[str, Any]]
    events: list[dict[str, Any]]
    deployment: dict[str, Any]
    seconds: dict[str, float]
    corpus: dict[str, Any]


def read_demo(directory: Path) -> DemoFiles:
    """Read the files of a finished demo back from its directory."""
    return DemoFiles(
        steps=_lines(directory / STEPS_FILE),
        epoch_steps=_lines(directory / EPOCH_STEPS_FILE),
        reference=_lines(directory / REFERENCE_STEPS_FILE),
        events=_lines(directory / EVENTS_FILE),
        deployment=json.loads((directory / DEPLOYMENT_FILE).read_text()),
        seconds=json.loads((directory / SECONDS_FILE).read_text()),
        corpus=json.loads((directory / CORPUS_FILE).read_text()),
    )


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines() if line.strip()]


def make_report(files: DemoFiles, environment_file: Path) -> dict[str, Any]:
    """The report as plain data. Seconds and dollars are rounded; losses and their difference are not."""
    environment = read_environment(environment_file)
    plan = make_plan(environment)
    cost = cost_per_hour(environment)
    losses = [step["loss"] for step in files.steps]
    total = sum(files.seconds.values())
    return {
        "environment": environment.name,
        "stacks": files.deployment["stacks"],
        "resources": dict(sorted(Counter(r["type"] for r in files.deployment["resources"]).items())),
        "resources_real_in_moto": sum(r["kind"] == "real" for r in files.deployment["resources"]),
        "resources_checked_records": sorted({r["type"] for r in files.deployment["resources"] if r["kind"] != "real"}),
        "what_a_green_deploy_means": WHAT_GREEN_MEANS,
        "launch_template_network_interfaces": files.deployment["launch_template_network_interfaces"],
        "instance_type": environment.fleet.instance_type,
        "nodes": plan.nodes,
        "ranks": plan.ranks,
        "layout": plan.layout.model_dump(),
        "global_batch": plan.global_batch,
        "corpus": files.corpus,
        "steps": len(losses),
        "loss_first": losses[0],
        "loss_last": losses[-1],
        "tokens": sum(step["tokens"] for step in files.steps),
        "max_loss_difference": loss_difference(files.steps, files.reference),
        **interruptions(files),
        "checkpoints": sum(e["event"] == "commit" for e in files.events),
        "checkpoint_uri": next((e["checkpoint"] for e in reversed(files.events) if e["event"] == "commit"), None),
        "checkpoints_uri": files.deployment["checkpoints_uri"],
        "seconds": {name: round(value, 1) for name, value in [*files.seconds.items(), ("total", total)]},
        "usd_per_hour_of_the_real_environment": cost.usd_per_hour,
        "cost_items": [{"item": i.item, "usd_per_hour": i.usd_per_hour, "basis": i.basis} for i in cost.items],
    }


def interruptions(files: DemoFiles) -> dict[str, Any]:
    """What nodes that went and came did to the run; `resume_seconds` is the longest pause for one that went."""
    found = changes(files.epoch_steps, files.events)
    unplanned = [change for change in found if not change.planned]
    return {
        "interruptions": len(unplanned),
        "steps_lost": steps_trained_twice(files.epoch_steps),
        "resume_seconds": round(max((change.seconds for change in unplanned), default=0.0), 2),
        "epochs": [
            {
                "epoch": change.epoch,
                "ended_after_step": change.after_step,
                "planned": change.planned,
                "steps_lost": change.steps_lost,
                "seconds_to_the_next_step": round(change.seconds, 2),
                "ranks_before": change.ranks[0],
                "ranks_after": change.ranks[1],
                "why": change.why,
            }
            for change in found
        ],
    }


def loss_difference(steps: list[dict[str, Any]], reference: list[dict[str, Any]]) -> float:
    """Largest |Δloss| over all steps.

    Raises:
        ValueError: If the two runs are not of the same steps, each exactly once: a lost or repeated step is a failure.
    """
    ours, theirs = [s["step"] for s in steps], [s["step"] for s in reference]
    if not ours or ours != theirs or ours != list(range(1, len(ours) + 1)):
        raise ValueError(f"steps.jsonl: steps must be those of the reference, each once, got {ours} against {theirs}")
    return max(abs(float(a["loss"]) - float(b["loss"])) for a, b in zip(steps, reference, strict=True))


def layout_words(layout: dict[str, int]) -> str:
    """`data 2 × pipeline 2 × tensor 2`."""
    return " × ".join(f"{name} {degree}" for name, degree in layout.items())
