"""A supervisor on a bucket that is a folder: `python fake_node.py JSON` with what tells nodes apart."""

from __future__ import annotations

import json
import logging
import sys
from dataclasses import replace
from pathlib import Path

from tests.node.supervisor.fake_fleet import FakeFleet
from trainfabric_node.agent import Host, Node, serve
from trainfabric_node.jobs import JobLedger
from trainfabric_node.membership.protocol import Notice, Pins
from trainfabric_node.membership.timing import FAST
from trainfabric_node.store import open_store
from trainfabric_plan.contract import Role


def main(given: dict[str, str]) -> None:
    folder = Path(given["folder"])

    def notices() -> list[Notice]:
        path = folder / f"notice-{given['name']}"
        return [Notice(kind="spot", detail=path.read_text())] if path.exists() else []

    host = Host(
        node=Node(instance_id=given["name"], address="127.0.0.1", role=Role(given["role"]), pins=Pins(asset_key="a")),
        ledger=JobLedger(open_store(str(folder / "bucket"))),
        checkpoint_bucket="s3://checkpoints/",
        state=folder / given["name"],
        variables={"RANKS": given["ranks"]},
        notices=notices,
        fleet=lambda _: FakeFleet(),
        timings={"production": replace(FAST, **json.loads(given["timing"]))},
        poll_s=0.05,
    )
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stdout)
    serve(host)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
