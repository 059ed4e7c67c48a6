"""The report as one HTML page that needs nothing beside it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from html import escape
from typing import Any

from sandbox.demo.report import DemoFiles, layout_words

_STYLE = """
:root{--ink:#1c2733;--soft:#5d6b7a;--line:#dde3ea;--accent:#0b6e99;--panel:#f6f8fa}
body{font:15px/1.55 system-ui,sans-serif;color:var(--ink);max-width:1040px;margin:2.2rem auto;padding:0 1.2rem}
h1{font-size:1.65rem;margin:0 0 .2rem}h2{font-size:1.1rem;margin:2.2rem 0 .6rem}
p.lead{color:var(--soft);margin:.1rem 0 1.4rem}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:.8rem}
.card{background:var(--panel);border:1px solid var(--line);border-radius:8px;padding:.7rem .9rem}
.card b{display:block;font-size:1.35rem;color:var(--accent)}.card span{color:var(--soft);font-size:.85rem}
table{border-collapse:collapse;width:100%;font-size:.9rem}
th,td{text-align:left;padding:.32rem .6rem;border-bottom:1px solid var(--line);vertical-align:top}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.note{background:var(--panel);border-left:3px solid var(--accent);padding:.6rem .9rem;margin:.8rem 0}
svg{width:100%;height:auto}.kind{color:var(--soft)}code{font-size:.88em}
"""


def page(report: dict[str, Any], files: DemoFiles, loss_svg: str) -> str:
    """The HTML of the report.

    Args:
        report: What `make_report` returned.
        files: The files it came from.
        loss_svg: Text of `loss.svg`, put into the page.
    """
    layout = layout_words(report["layout"])
    fleet = f"{report['nodes']} × {report['instance_type']}"
    usd = report["usd_per_hour_of_the_real_environment"]
    cards = [
        (f"{report['ranks']} ranks", layout),
        (str(report["steps"]), f"steps, {report['tokens']:,} tokens"),
        (f"{report['loss_first']:.2f} → {report['loss_last']:.2f}", "loss, first and last step"),
        (f"{report['max_loss_difference']:.1e}", "largest |Δ loss| against one process"),
        (f"{report['steps_lost']} steps", f"lost in {report['interruptions']} interruption(s)"),
        (f"{report['resume_seconds']:.1f} s", "from the last step before to the next"),
        (f"{len(report['stacks'])} stacks", f"{sum(report['resources'].values())} resources deployed"),
        (
            "not known" if usd is None else f"${usd:,.2f}/h",
            f"real counterpart: {fleet}",
        ),
    ]
    return "\n".join(
        (
            "<!doctype html><html lang='en'><meta charset='utf-8'><title>trainfabric demo</title>",
            f"<style>{_STYLE}</style>",
            f"<h1>trainfabric demo: {escape(report['environment'])}</h1>",
            "<p class='lead'>An environment, deployed with the CDK on an embedded AWS, and a corpus trained in it.</p>",
            "<div class='cards'>",
            *(f"<div class='card'><b>{escape(value)}</b><span>{escape(label)}</span></div>" for value, label in cards),
            "</div>",
            "<h2>Training</h2>",
            _training(report),
            loss_svg[loss_svg.index("<svg") :],
            "<h2>Through the interruption</h2>",
            _table(
                ("epoch", "ended after step", "ranks", "steps lost", "seconds to the next step", "then"),
                _epochs(report),
            ),
            "<details><summary>everything that happened</summary>",
            _table(("time", "event", "what"), _events(files)),
            "</details>",
            "<h2>What was deployed</h2>",
            f"<p class='note'>{escape(report['what_a_green_deploy_means'])}</p>",
            _table(("stack", "resource", "type", "in the embedded AWS"), _resources(files)),
            "<h2>Network interfaces of a node</h2>",
            _interfaces(report),
            "<h2>What the real environment costs per hour</h2>",
            _table(("item", "US dollars per hour", "basis"), _costs(report), numbers={1}),
            "<h2>Seconds</h2>",
            _table(("phase", "seconds"), [(k, f"{v:.1f}") for k, v in report["seconds"].items()], numbers={1}),
        )
    )


def _training(report: dict[str, Any]) -> str:
    corpus = report["corpus"]
    return (
        f"<p>A GPT trained on {corpus['tokens']:,} tokens from {corpus['documents']:,} files of the Python standard "
        f"library, read from the data bucket. EC2 took a spot node back in the middle: all ranks saved the same step, "
        f"and training went on without it {report['resume_seconds']:.1f} s later, with {report['steps_lost']} steps "
        f"lost. {report['checkpoints']} checkpoints lie under <code>{escape(report['checkpoints_uri'])}</code>.</p>"
    )


def _epochs(report: dict[str, Any]) -> Iterable[tuple[str, ...]]:
    for e in report["epochs"]:
        ranks = f"{e['ranks_before']} → {e['ranks_after']}"
        numbers = (str(e["epoch"]), str(e["ended_after_step"]), ranks, str(e["steps_lost"]))
        yield *numbers, f"{e['seconds_to_the_next_step']:.1f}", e["why"]


def _events(files: DemoFiles) -> Iterable[tuple[str, ...]]:
    for event in files.events:
        rest = {name: value for name, value in event.items() if name not in ("time", "event")}
        yield event["time"][11:23], event["event"], ", ".join(f"{name} {value}" for name, value in rest.items())


def _resources(files: DemoFiles) -> Iterable[tuple[str, ...]]:
    words = {"real": "real in moto", "record": "checked record"}
    for r in files.deployment["resources"]:
        yield r["stack"], r["logical_id"], r["type"], words.get(r["kind"], r["kind"])


def _interfaces(report: dict[str, Any]) -> str:
    found = report["launch_template_network_interfaces"]
    efa = sum(i["type"] != "interface" for i in found)
    rows = [(str(i["card"]), str(i["device"]), i["type"]) for i in found]
    summary = f"<p>{len(found)} interfaces in the deployed launch template, {efa} of them EFA.</p>"
    return f"{summary}<details><summary>all of them</summary>{_table(('card', 'device', 'type'), rows)}</details>"


def _costs(report: dict[str, Any]) -> Iterable[tuple[str, ...]]:
    for item in report["cost_items"]:
        usd = item["usd_per_hour"]
        yield item["item"], "not known" if usd is None else f"{usd:.2f}", item["basis"]


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]], numbers: Collection[int] = ()) -> str:
    def cells(tag: str, row: tuple[str, ...]) -> str:
        kinds = (" class='n'" if i in numbers else "" for i in range(len(row)))
        return "".join(f"<{tag}{kind}>{escape(cell)}</{tag}>" for cell, kind in zip(row, kinds, strict=True))

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f"<table><tr>{cells('th', head)}</tr>{body}</table>"
