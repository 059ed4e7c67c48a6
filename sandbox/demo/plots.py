"""Plots of the demo, as SVG and PNG."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

from sandbox.demo.interruptions import Change, changes
from sandbox.demo.report import DemoFiles

_OURS, _REFERENCE, _MARK, _TAKEN, _GIVEN = "#0b6e99", "#e07a1f", "#7a7a7a", "#b3261e", "#2e7d32"


def plot_losses(files: DemoFiles, directory: Path, layout: str) -> None:
    """Write `loss.svg` and `loss.png`: both losses, their difference below, checkpoints and changes of epoch marked."""
    matplotlib.use("Agg")
    from matplotlib import pyplot

    steps = [s["step"] for s in files.steps]
    ours, reference = [s["loss"] for s in files.steps], [s["loss"] for s in files.reference]
    figure, (top, bottom) = pyplot.subplots(
        2, 1, figsize=(9, 5.6), sharex=True, height_ratios=(3, 1), layout="constrained", gridspec_kw={"hspace": 0.04}
    )
    top.plot(steps, reference, color=_REFERENCE, linewidth=5, alpha=0.45, label="one process, plain PyTorch")
    top.plot(steps, ours, color=_OURS, linewidth=1.6, label=layout)
    top.set_ylabel("loss")
    top.set_title("The same training, through an interruption and in one process", loc="left")
    bottom.semilogy(
        steps, [max(abs(a - b), 1e-9) for a, b in zip(ours, reference, strict=True)], color=_OURS, linewidth=1.2
    )
    bottom.set_ylabel("|Δ loss| (0 at 1e-9)")
    bottom.set_xlabel("optimizer step")
    for event in files.events:
        if event["event"] == "commit":
            top.axvline(event["step"], color=_MARK, linewidth=0.6, linestyle=":")
    for number, change in enumerate(changes(files.epoch_steps, files.events)):
        height = max(ours) - 0.16 * number * (max(ours) - min(ours))
        _mark(top, change, height, left=change.after_step > 0.6 * steps[-1])
    top.plot([], [], color=_MARK, linewidth=0.8, linestyle=":", label="checkpoint committed")
    top.legend(loc="lower left", edgecolor="none", framealpha=0.9)
    for axes in (top, bottom):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(directory / "loss.svg", metadata={"Date": None})
    figure.savefig(directory / "loss.png", dpi=140)
    pyplot.close(figure)


def _mark(axes: Any, change: Change, height: float, *, left: bool) -> None:
    """A line between two epochs, with what happened and what it cost."""
    colour = _GIVEN if change.planned else _TAKEN
    what = "node taken in" if change.planned else "node taken away"
    axes.axvline(change.after_step, color=colour, linewidth=1.4)
    words = (
        f"  {what} after step {change.after_step}: {change.ranks[0]} → {change.ranks[1]} ranks,  \n"
        f"  {change.steps_lost} steps lost, next step after {change.seconds:.1f} s  "
    )
    side = "right" if left else "left"
    axes.annotate(words, (change.after_step, height), color=colour, va="top", ha=side, fontsize=9)
