"""Plots of the demo, as SVG and PNG."""

from __future__ import annotations

from pathlib import Path

import matplotlib

from sandbox.demo.report import DemoFiles

_OURS, _REFERENCE, _MARK = "#0b6e99", "#e07a1f", "#7a7a7a"


def plot_losses(files: DemoFiles, directory: Path, layout: str) -> None:
    """Write `loss.svg` and `loss.png`: both losses, their difference below, checkpoints and the stop marked."""
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
    top.set_title("The same training on eight ranks and in one process", loc="left")
    bottom.semilogy(
        steps, [max(abs(a - b), 1e-9) for a, b in zip(ours, reference, strict=True)], color=_OURS, linewidth=1.2
    )
    bottom.set_ylabel("|Δ loss| (0 at 1e-9)")
    bottom.set_xlabel("optimizer step")
    for event in files.events:
        if event["event"] == "commit":
            top.axvline(event["step"], color=_MARK, linewidth=0.6, linestyle=":")
        if event["event"] == "stop":
            top.axvline(event["step"], color=_MARK, linewidth=1.4)
            words = f"stopped after step {event['step']},\nresumed from its checkpoint  "
            top.annotate(words, (event["step"], min(ours)), color=_MARK, va="bottom", ha="right", fontsize=9)
    top.plot([], [], color=_MARK, linewidth=0.8, linestyle=":", label="checkpoint committed")
    top.legend(frameon=False, loc="upper right")
    for axes in (top, bottom):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(directory / "loss.svg", metadata={"Date": None})
    figure.savefig(directory / "loss.png", dpi=140)
    pyplot.close(figure)
