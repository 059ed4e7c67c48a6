"""The default profile takes a stall of ten seconds for what it is: nobody starts anew."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pytest

from tests.faults.lab import Lab, lab
from trainfabric_plan.policy import FaultTolerance

STALL_S = 10.0
NODES = 2


@pytest.fixture(scope="module")
def steady(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A job of two nodes in the profile that an environment file has if it names none."""
    directory: Path = tmp_path_factory.mktemp("steady")
    with lab(directory, nodes=NODES, heartbeats=FaultTolerance().heartbeats, name="steady") as made:
        made.start("--checkpoint-every", "5")
        made.wait_for_step_beyond(3)
        yield made
        made.stop()


def test_a_node_that_stalls_for_ten_seconds_goes_on_where_it_was(steady: Lab) -> None:
    before, node = steady.epoch()["number"], steady.workers()[0]

    node.ask("freeze")
    stopped = time.time()
    steady.wait_for("the stall", lambda: time.time() - stopped > STALL_S)
    node.ask("thaw")

    steady.wait_for_step_beyond(steady.highest_step() + 2)
    ends = [datetime.fromisoformat(line["time"]) for line in steady.steps()]
    longest = max((after - before_it).total_seconds() for before_it, after in pairwise(ends))
    assert longest > STALL_S - 2  # in a step, in a save or between both
    assert steady.epoch()["number"] == before
    assert steady.events("node_lost") == []
