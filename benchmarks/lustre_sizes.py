"""The size of a Lustre file system for a throughput, by kind: `python -m benchmarks.lustre_sizes FILE.svg`.

Nothing is measured: it draws `lustre_size`, which works out every size from the rules of FSx, each with its source in
`trainfabric_plan.lustre.facts`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType

from trainfabric_plan.lustre import LustreWish, lustre_size
from trainfabric_plan.lustre.facts import QUOTA_GIB, SCRATCH_MBPS_PER_TIB, THROUGHPUTS_MBPS_PER_TIB

REQUIRED_MBPS = tuple(round(100 * 10 ** (step / 50)) for step in range(151))
"""From 100 MB/s to 100,000 MB/s in equal steps of a logarithmic scale."""

_SHADES = ("#0b6e99", "#3d97b8", "#7cbbd1", "#b4d9e5")


def capacities() -> Mapping[str, tuple[int, ...]]:
    """GiB for each of `REQUIRED_MBPS`, by kind of file system on SSD."""
    found = {
        f"PERSISTENT_2, {tier} MB/s per TiB": tuple(map(partial(_persistent_gib, tier), REQUIRED_MBPS))
        for tier in THROUGHPUTS_MBPS_PER_TIB
    }
    scratch = tuple(map(_scratch_gib, REQUIRED_MBPS))
    return MappingProxyType({**found, f"SCRATCH_2, {SCRATCH_MBPS_PER_TIB} MB/s per TiB": scratch})


def _persistent_gib(tier: int, required_mbps: int) -> int:
    return _gib(LustreWish(required_throughput_mbps=required_mbps, throughput_mbps_per_tib=tier))


def _scratch_gib(required_mbps: int) -> int:
    return _gib(LustreWish(deployment="scratch_2", required_throughput_mbps=required_mbps))


def _gib(wish: LustreWish) -> int:
    size = lustre_size(wish).capacity_gib
    assert size is not None, "both kinds have a size"
    return size


def draw(target: Path) -> None:
    """Writes the plot, the same bytes every time."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    with matplotlib.rc_context({"svg.hashsalt": "lustre", "svg.fonttype": "none", "font.size": 9}):
        figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
        for (name, gib), colour in zip(capacities().items(), (*_SHADES, "#b3261e"), strict=True):
            axes.step(REQUIRED_MBPS, gib, where="post", label=name, color=colour, lw=1.6)
        axes.axhline(QUOTA_GIB, color="#666666", lw=0.8, ls=":")
        axes.annotate("usual quota of an account", (110, QUOTA_GIB), xytext=(0, 3), textcoords="offset points")
        axes.set(xscale="log", yscale="log", xlim=(100, 100_000), ylim=(200, 1_200_000))
        axes.set_xlabel("MB/s that all nodes read together")
        axes.set_ylabel("smallest size, GiB")
        axes.legend(frameon=False, loc="lower right")
        axes.spines[["top", "right"]].set_visible(False)
        figure.savefig(target, metadata={"Date": None, "Creator": None})
        pyplot.close(figure)


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
