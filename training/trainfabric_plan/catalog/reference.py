"""The catalog as a page for people.

`python -m trainfabric_plan.catalog.reference PATH` writes it as Markdown; a test holds the committed file against it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

from trainfabric_plan.catalog.accelerators import ACCELERATORS, LINKS
from trainfabric_plan.catalog.instances import INSTANCE_TYPES
from trainfabric_plan.catalog.interfaces import InterfaceMode, addresses_per_node, efa_interfaces, offers_bandwidth
from trainfabric_plan.catalog.prices import on_demand_price
from trainfabric_plan.catalog.table import DATE, SOURCE
from trainfabric_plan.catalog.types import InstanceType

_HEADER = f"""\
# Instance types

Generated from `trainfabric_plan.catalog`; change its tables, then run `make generate`. How to add a type, and how to
use what EC2 says to your own account: [add an instance type](how-to/add-an-instance-type.md).

Source of what has none beside it: {SOURCE}, {DATE}.
Prices are US dollars per hour on demand in us-east-1, with the date of their source; a `-` is a price that no source
confirmed. A `?` is a fact that nobody could confirm; the reasons stand [below](#what-is-unknown-and-why).
`trainfabric catalog NAME` shows one type with the source of every fact.

"""


def reference_text() -> str:
    """The tables as Markdown, with a trailing newline."""
    rows = list(INSTANCE_TYPES.values())
    parts = (
        _HEADER,
        "## Types\n\n",
        *_table(("type", "accelerators", "vCPUs", "GiB", "NVMe GB", "arch", "sold as", "USD/h"), map(_machine, rows)),
        "\n## Network\n\n`interfaces` are those of one node with EFA, then those with `interfaces: bandwidth` where "
        "that is another layout; in brackets the addresses of the subnet that a node takes.\n\n",
        *_table(
            ("type", "Gbps", "EFA Gbps", "IP Gbps", "cards", "EFA", "interfaces", "GPUDirect"), map(_network, rows)
        ),
        "\n## Accelerators\n\nPeaks are dense, in TFLOP/s.\n\n",
        *_table(("accelerator", "MiB", "peaks", "memory GB/s", "source"), _accelerators()),
        "\n## Links in a node\n\nGB/s of one accelerator, both directions together.\n\n",
        *_table(("links", "GB/s", "source"), _links()),
        "\n## Sources of single facts\n\n",
        *_table(("types", "fact", "source"), _remarks(rows, "sources")),
        "\n## What is unknown, and why\n\n",
        *_table(("types", "fact", "why"), _remarks(rows, "unknown")),
    )
    return "".join(parts)


def _table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    names = list(columns)
    yield f"| {' | '.join(names)} |\n|{'---|' * len(names)}\n"
    for row in rows:
        yield f"| {' | '.join(row)} |\n"


def _machine(row: InstanceType) -> tuple[str, ...]:
    price = on_demand_price(row.name)
    return (
        f"`{row.name}`",
        f"{row.accelerators} × {row.accelerator}" if row.accelerator else "",
        str(row.vcpus),
        f"{row.memory_gib:g}",
        _known(row.nvme_gb),
        row.architecture,
        "?" if row.usage_classes is None else ", ".join(sorted(row.usage_classes)),
        f"{price.value} ({price.date})" if price else "-",
    )


def _network(row: InstanceType) -> tuple[str, ...]:
    if row.cards is None:
        cards = efa = layouts = "?"
    else:
        modes: list[InterfaceMode] = ["addresses", "bandwidth"] if offers_bandwidth(row) else ["addresses"]
        most = " or ".join(str(count) for count in sorted({card.interfaces for card in row.cards}))
        cards, efa = f"{len(row.cards)} of {most}", str(row.efa_interface_count)
        layouts = ", ".join(_size(row, mode) for mode in modes)
    direct = "" if not row.accelerators else _truth(row.gpudirect_rdma)
    return (
        f"`{row.name}`",
        f"{row.network_gbps:g}",
        _known(row.efa_gbps),
        _known(row.ip_gbps),
        cards,
        efa,
        layouts,
        direct,
    )


def _size(row: InstanceType, mode: InterfaceMode) -> str:
    layout = efa_interfaces(row, mode=mode)
    return f"{len(layout)} ({addresses_per_node(layout)})"


def _accelerators() -> Iterator[tuple[str, ...]]:
    for name, one in ACCELERATORS.items():
        peaks = ", ".join(f"{dtype} {value:g}" for dtype, value in one.peak_tflops.items()) or "?"
        yield name, str(one.memory_mib), peaks, _known(one.memory_gbytes_per_s), f"{one.source}, {one.date}"


def _links() -> Iterator[tuple[str, ...]]:
    for name, one in LINKS.items():
        yield name, _known(one.gbytes_per_s), f"{one.source}, {one.date}"


def _remarks(rows: list[InstanceType], kind: str) -> Iterator[tuple[str, ...]]:
    """Facts with the same remark on one line."""
    found = [(fact, text, row.name) for row in rows for fact, text in getattr(row, kind).items()]
    for (fact, text), about in groupby(sorted(found, key=lambda one: one[:2]), key=lambda one: one[:2]):
        yield ", ".join(f"`{name}`" for _, _, name in about), f"`{fact}`", text


def _known(value: float | None) -> str:
    return "?" if value is None else f"{value:g}"


def _truth(value: bool | None) -> str:
    return "?" if value is None else "yes" if value else "no"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(reference_text(), encoding="utf-8")
