"""Rows of the catalog for people and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainfabric_cli.output import console, print_table, table
from trainfabric_plan.catalog import (
    InstanceType,
    Interface,
    addresses_per_node,
    efa_interfaces,
    offers_bandwidth,
    on_demand_price,
)
from trainfabric_plan.catalog.prices import spot_saving, spot_saving_regions

if TYPE_CHECKING:
    from trainfabric_cli.catalog_refresh import Refreshed


def document(row: InstanceType) -> dict[str, Any]:
    """A row as JSON; what nobody could confirm is null, and `unknown` says why."""
    price, known = on_demand_price(row.name), row.cards is not None
    return {
        "instance_type": row.name,
        "accelerator": row.accelerator,
        "accelerators": row.accelerators,
        "accelerator_memory_mib": row.accelerator_memory_mib,
        "maker": row.maker,
        **_accelerator(row),
        "vcpus": row.vcpus,
        "memory_gib": row.memory_gib,
        "nvme_gb": row.nvme_gb,
        "architecture": row.architecture,
        "network_gbps": row.network_gbps,
        "efa_gbps": row.efa_gbps,
        "ip_gbps": row.ip_gbps,
        "gpudirect_rdma": row.gpudirect_rdma,
        "cards": len(row.known_cards) if known else None,
        "interfaces_per_card": [card.interfaces for card in row.known_cards] if known else None,
        "efa": row.efa_interface_count if known else None,
        "efa_interfaces": _layout(efa_interfaces(row)) if known else None,
        "bandwidth_interfaces": _layout(efa_interfaces(row, mode="bandwidth")) if offers_bandwidth(row) else None,
        "usage_classes": None if row.usage_classes is None else sorted(row.usage_classes),
        "cluster_placement": row.cluster_placement,
        "ultraserver_nodes": None if row.ultraserver_nodes is None else list(row.ultraserver_nodes),
        "source": row.source,
        "date": row.date,
        "sources": dict(row.sources),
        "unknown": dict(row.unknown),
        "price": price
        and {"usd_per_hour": price.value, "region": "us-east-1", "date": price.date, "source": price.source},
    }


def print_rows(rows: list[InstanceType]) -> None:
    """A line for every row."""
    numbers = ("vCPUs", "GiB", "Gbps", "EFA", "USD/h")
    made = table("instance type", "accelerators", *numbers, "of", numbers=numbers)
    for row in rows:
        price = on_demand_price(row.name)
        made.add_row(
            row.name,
            f"{row.accelerators} × {row.accelerator}" if row.accelerator else "none",
            str(row.vcpus),
            f"{row.memory_gib:g}",
            f"{row.network_gbps:g}",
            "unknown" if row.cards is None else str(row.efa_interface_count),
            f"{price.value:,.2f}" if price else "no source",
            price.date if price else "",
        )
    print_table(console(), "Instance types (prices on demand in us-east-1)", made)


def print_row(row: InstanceType) -> None:
    """All that is known of one row: facts, each with its source, and interfaces."""
    out, made = console(), table("fact", "value", "source, or why it is unknown")
    for attribute, name, value in _facts(row):
        made.add_row(name, value, row.unknown.get(attribute) or row.sources.get(attribute) or "")
    for name, value, source in (*_accelerator_lines(row), *_price_lines(row)):
        made.add_row(name, value, source)
    print_table(out, row.name, made)
    out.print(f"What has no source beside it: {row.source}, {row.date}\n")
    if row.cards is not None:
        _print_interfaces("Network interfaces of a node", efa_interfaces(row))
        if offers_bandwidth(row):
            _print_interfaces('Network interfaces with interfaces: "bandwidth"', efa_interfaces(row, mode="bandwidth"))


def print_refreshed(done: Refreshed) -> None:
    """What EC2 says otherwise than the catalog, and what became of the file."""
    out = console()
    if done.differences:
        made = table("instance type", "fact", "catalog", f"EC2 in {done.region}", "in use")
        for name, rows in done.differences.items():
            for fact, ours, theirs in rows:
                made.add_row(name, fact, ours, theirs, "catalog's" if fact in done.kept.get(name, {}) else "EC2's")
        print_table(out, "EC2 says otherwise than the catalog", made)
    else:
        out.print("EC2 says what the catalog says")
    for reason in dict.fromkeys(text for facts in done.kept.values() for text in facts.values()):
        out.print(f"the catalog's word stays: {reason}")
    for text in _of_the_file(done):
        out.print(text)


def _of_the_file(done: Refreshed) -> list[str]:
    counted = (("added", done.added), ("changed", done.changed), ("as before", done.same), ("left alone", done.left))
    parts = [f"{len(names)} {verb}" for verb, names in counted if names]
    written = "written" if done.added or done.changed else "not written, nothing changed"
    lines = [f"{done.path} {written}: {', '.join(parts)}"]
    if done.changed:
        lines.append(f"changed: {', '.join(done.changed)}")
    if done.absent:
        lines.append(f"{done.region} does not offer, or does not show this account: {', '.join(done.absent)}")
    return lines


def _accelerator(row: InstanceType) -> dict[str, Any]:
    facts, links = row.accelerator_facts, row.links
    return {
        "peak_tflops": dict(facts.peak_tflops) if facts else None,
        "memory_gbytes_per_s": facts.memory_gbytes_per_s if facts else None,
        "links": links
        and {
            "kind": links.kind,
            "generation": links.generation,
            "gbytes_per_s": links.gbytes_per_s,
            "source": links.source,
        },
    }


def _layout(interfaces: tuple[Interface, ...]) -> list[dict[str, Any]]:
    return [{"card": one.card, "device": one.device, "type": str(one.type)} for one in interfaces]


def _facts(row: InstanceType) -> list[tuple[str, str, str]]:
    cards = "unknown" if row.cards is None else f"{len(row.cards)}, EFA on {row.efa_interface_count}"
    accelerators = f"{row.accelerators} × {row.accelerator}, {row.accelerator_memory_mib} MiB each"
    return [
        ("accelerators", "accelerators", accelerators if row.accelerator else "none"),
        *(
            [("accelerator_memory_mib", "memory of one", f"{row.accelerator_memory_mib} MiB")]
            if row.accelerator
            else []
        ),
        ("vcpus", "vCPUs", f"{row.vcpus}, {row.architecture}"),
        ("memory_gib", "memory", f"{row.memory_gib:g} GiB"),
        ("nvme_gb", "local NVMe", _amount(row.nvme_gb, "GB")),
        ("network_gbps", "network", f"{row.network_gbps:g} Gbps"),
        ("efa_gbps", "EFA", _amount(row.efa_gbps, "Gbps")),
        ("ip_gbps", "IP, at most", _amount(row.ip_gbps, "Gbps")),
        ("cards", "network cards", cards),
        *([("gpudirect_rdma", "GPUDirect RDMA", _truth(row.gpudirect_rdma))] if row.accelerator else []),
        ("usage_classes", "sold as", "unknown" if row.usage_classes is None else ", ".join(sorted(row.usage_classes))),
        ("cluster_placement", "cluster placement", _truth(row.cluster_placement)),
        *_ultraservers(row),
    ]


def _ultraservers(row: InstanceType) -> list[tuple[str, str, str]]:
    sizes = "unknown" if row.ultraserver_nodes is None else " or ".join(map(str, row.ultraserver_nodes))
    return [("ultraserver_nodes", "nodes of an UltraServer", sizes)] if sizes else []


def _accelerator_lines(row: InstanceType) -> list[tuple[str, str, str]]:
    lines, facts, links = [], row.accelerator_facts, row.links
    if facts:
        peaks = ", ".join(f"{dtype} {value:g}" for dtype, value in facts.peak_tflops.items())
        lines.append(("dense TFLOP/s", peaks or "unknown", f"{facts.source}, {facts.date}"))
        lines.append(
            ("accelerator memory", _amount(facts.memory_gbytes_per_s, "GB/s"), f"{facts.source}, {facts.date}")
        )
    if links:
        text = f"{links.kind} {links.generation or ''}, {_amount(links.gbytes_per_s, 'GB/s per accelerator')}"
        lines.append(("links", text, f"{links.source}, {links.date}"))
    elif "links" in row.unknown:
        lines.append(("links", "unknown", row.unknown["links"]))
    return lines


def _price_lines(row: InstanceType) -> list[tuple[str, str, str]]:
    price = on_demand_price(row.name)
    text = f"{price.value:,.2f} USD per hour in us-east-1" if price else "unknown"
    lines = [("on demand", text, f"{price.source}, {price.date}" if price else "no source found")]
    savings = {region: spot_saving(row.name, region) for region in spot_saving_regions(row.name)}
    for saving in list(savings.values())[:1]:
        named = ", ".join(f"{region} {one.value:.0%}" for region, one in savings.items() if one)
        lines.append(("saved by spot", named, f"{saving.source}, {saving.date}" if saving else ""))
    return lines


def _amount(value: float | None, unit: str) -> str:
    return "unknown" if value is None else f"{value:g} {unit}"


def _truth(value: bool | None) -> str:
    return "unknown" if value is None else "yes" if value else "no"


def _print_interfaces(title: str, interfaces: tuple[Interface, ...]) -> None:
    made = table("card", "device", "type", numbers=("card", "device"))
    for one in interfaces:
        made.add_row(str(one.card), str(one.device), str(one.type))
    print_table(console(), f"{title} ({addresses_per_node(interfaces)} with an address)", made)
