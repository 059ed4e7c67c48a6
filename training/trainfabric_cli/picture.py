"""A picture of an environment as SVG: network, nodes, file system, buckets, and what flows between them."""

from __future__ import annotations

from html import escape

from trainfabric_plan.catalog import InterfaceType, efa_interfaces, instance_type
from trainfabric_plan.environment import Environment, Lustre, Storage
from trainfabric_plan.lustre import lustre_size
from trainfabric_plan.lustre.facts import SCRATCH_MBPS_PER_TIB
from trainfabric_plan.planning import AnyPlan, Plan

WIDTH, HEIGHT = 1060, 560
MOST_NODES_DRAWN = 4

_INK, _SOFT, _LINE = "#1c2733", "#5d6b7a", "#b8c2cc"
_BLUE, _ORANGE, _GREEN, _PANEL = "#0b6e99", "#e07a1f", "#3a7d44", "#f6f8fa"

_STYLE = (
    "text{font-family:system-ui,'DejaVu Sans',sans-serif;fill:" + _INK + "}"
    ".s{font-size:12px;fill:" + _SOFT + "}.m{font-size:13.5px}.b{font-size:14.5px;font-weight:600}"
)


def environment_svg(environment: Environment, plan: AnyPlan) -> str:
    """The picture of an environment; the same text on every machine."""
    parts = [
        _box(200, 16, 844, 528, stroke=_LINE, fill="none"),
        _text(216, 40, f"{environment.region}, one account", "s"),
        _box(216, 52, 560, 476, stroke=_BLUE, fill="none"),
        _text(232, 76, "VPC", "b", _BLUE),
        _text(268, 76, _network_words(environment), "s"),
        _box(232, 92, 528, 420, stroke=_BLUE, fill=_PANEL, dashes="5 4"),
        _text(248, 116, f"private subnet, {environment.availability_zone}", "s"),
        *_nodes(environment, plan),
        *_storage(environment),
        *_people(environment, plan),
    ]
    head = f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {HEIGHT}' role='img'>"
    title = f"<title>{escape(environment.name)}: a training environment on AWS</title>"
    arrow = (
        "<defs><marker id='a' viewBox='0 0 8 8' refX='7' refY='4' markerWidth='7' markerHeight='7' "
        f"orient='auto-start-reverse'><path d='M0 0L8 4L0 8z' fill='{_SOFT}'/></marker></defs>"
    )
    ground = f"<rect width='{WIDTH}' height='{HEIGHT}' fill='#ffffff'/>"
    return "\n".join((head, title, f"<style>{_STYLE}</style>", arrow, ground, *parts, "</svg>")) + "\n"


def _network_words(environment: Environment) -> str:
    if environment.network.vpc_id:
        return f"{environment.network.vpc_id} (existing)"
    return "NAT gateway out, S3 gateway endpoint, flow logs, no SSH"


def _nodes(environment: Environment, plan: AnyPlan) -> list[str]:
    instance = instance_type(environment.fleet.instance_type)
    interfaces = efa_interfaces(instance)
    efa = sum(interface.type is not InterfaceType.INTERFACE for interface in interfaces)
    drawn = min(plan.nodes, MOST_NODES_DRAWN)
    spot = environment.fleet.workers == "spot"
    parts = [
        _box(248, 132, 496, 214, stroke=_GREEN, fill="#ffffff"),
        _text(264, 154, "cluster placement group", "b", _GREEN),
        _text(480, 154, f"{plan.nodes} × {instance.name}{_spare_words(environment.fleet.spares)}", "m"),
    ]
    width = 464 / drawn - 8
    for index in range(drawn):
        first = index == 0
        x = 264 + index * (width + 8)
        colour = _BLUE if first else _ORANGE
        bought = "on demand" if first or not spot else "spot"
        parts += [
            _box(x, 168, width, 112, stroke=colour, fill=_PANEL, dashes="" if bought == "on demand" else "6 3"),
            _text(x + 8, 190, "coordinator" if first else "worker", "b", colour),
            _text(x + 10, 209, bought, "s"),
            _text(x + 10, 236, f"{instance.accelerators} × {instance.accelerator}", "m"),
            _text(x + 10, 256, f"{len(interfaces)} interfaces", "s"),
            _text(x + 10, 272, f"{efa} of them EFA", "s"),
            _line(x + width / 2, 280, x + width / 2, 306, _GREEN, 2),
        ]
    carried = "" if instance.efa_gbps is None else f" {instance.efa_gbps:,.0f} Gb/s a node"
    bus = f"EFA{carried}; self ingress and self egress"
    return [*parts, _line(264, 306, 728, 306, _GREEN, 5), _text(264, 332, bus, "s")]


def _spare_words(spares: int) -> str:
    return f" and {spares} warm spare{'s' if spares > 1 else ''}" if spares else ""


def _storage(environment: Environment) -> list[str]:
    lustre = environment.storage.lustre
    return [
        _box(248, 396, 496, 96, stroke=_INK, fill="#ffffff"),
        _text(264, 420, "FSx for Lustre", "b"),
        _text(264, 441, _file_system(lustre), "m"),
        _text(264, 461, f"mounted at {lustre.mount_point}; {_linked(environment.storage)}", "s"),
        _text(264, 479, _origin(lustre), "s"),
        _arrow(496, 396, 496, 348, both=True),
        *_bucket(812, 396, "data bucket", ("corpus as .bin and .idx", *_link_words(environment.storage))),
        *_bucket(
            812,
            168,
            "checkpoint bucket",
            ("named slices, a manifest", "and one log of commits;", "job records, logs, telemetry"),
        ),
        _arrow(746, 444, 810, 444, both=True),
        _arrow(746, 224, 810, 224, both=True),
    ]


def _file_system(lustre: Lustre) -> str:
    if not lustre.is_made:
        return f"{lustre.file_system_id}, which exists already"
    size = lustre_size(lustre.wish)
    if size.capacity_gib is None:
        return f"{size.deployment_type}, {size.in_words}, {lustre.compression}"
    tier = size.throughput_mbps_per_tib or SCRATCH_MBPS_PER_TIB
    return f"{size.deployment_type} SSD, {size.capacity_gib:,} GiB, {tier} MB/s per TiB, {lustre.compression}"


def _origin(lustre: Lustre) -> str:
    return "its security rules exist before it does; retained on destroy" if lustre.is_made else "stays as it is"


def _linked(storage: Storage) -> str:
    return "imports and exports automatically" if storage.links else "linked to no bucket here"


def _link_words(storage: Storage) -> tuple[str, ...]:
    return ("linked to Lustre by a data", "repository association") if storage.links else ("not linked to Lustre",)


def _bucket(x: float, y: float, name: str, lines: tuple[str, ...]) -> list[str]:
    texts = [_text(x + 16, y + 46 + 17 * i, line, "s") for i, line in enumerate(lines)]
    return [
        _box(x, y, 216, 108, stroke=_ORANGE, fill="#ffffff"),
        _text(x + 16, y + 25, f"S3 {name}", "b", _ORANGE),
        *texts,
    ]


def _people(environment: Environment, plan: AnyPlan) -> list[str]:
    file = f"{environment.name}.yaml"
    cost = "no confirmed price" if plan.usd_per_hour is None else f"${plan.usd_per_hour:,.2f} per hour"
    return [
        _text(16, 176, "platform engineer", "b"),
        _text(16, 196, file, "m"),
        _text(16, 214, "cdk deploy", "m", _BLUE),
        _arrow(120, 205, 198, 205),
        _text(16, 300, "ML engineer", "b"),
        _text(16, 320, "trainfabric plan", "m", _BLUE),
        _text(16, 338, "trainfabric job start", "m", _BLUE),
        _arrow(150, 330, 198, 330),
        _text(16, 400, "with every node up", "s"),
        _text(16, 420, cost, "b"),
        *(_text(16, 440 + 17 * i, line, "s") for i, line in enumerate(_shape_lines(plan))),
    ]


def _shape_lines(plan: AnyPlan) -> tuple[str, str]:
    if isinstance(plan, Plan):
        return f"layout: data {plan.layout.data}", f"× pipeline {plan.layout.pipeline} × tensor {plan.layout.tensor}"
    return "a command of its own", f"on {plan.nodes} × {plan.ranks_per_node} ranks"


def _box(x: float, y: float, w: float, h: float, *, stroke: str, fill: str, dashes: str = "") -> str:
    dash = f" stroke-dasharray='{dashes}'" if dashes else ""
    place = f"x='{x:g}' y='{y:g}' width='{w:g}' height='{h:g}'"
    return f"<rect {place} rx='8' fill='{fill}' stroke='{stroke}' stroke-width='1.6'{dash}/>"


def _text(x: float, y: float, text: str, kind: str, colour: str = "") -> str:
    fill = f" style='fill:{colour}'" if colour else ""
    return f"<text x='{x:g}' y='{y:g}' class='{kind}'{fill}>{escape(text)}</text>"


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, width: float) -> str:
    return f"<line x1='{x1:g}' y1='{y1:g}' x2='{x2:g}' y2='{y2:g}' stroke='{colour}' stroke-width='{width:g}'/>"


def _arrow(x1: float, y1: float, x2: float, y2: float, *, both: bool = False) -> str:
    start = " marker-start='url(#a)'" if both else ""
    place = f"x1='{x1:g}' y1='{y1:g}' x2='{x2:g}' y2='{y2:g}'"
    return f"<line {place} stroke='{_SOFT}' stroke-width='1.6' marker-end='url(#a)'{start}/>"
