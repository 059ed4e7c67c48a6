"""A node whose link is taken away reaches nobody and is told nothing: it fences itself, and the others go on."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from sandbox.namespaces import inside
from tests.faults.lab import AGENT, Lab, LocalNode, lab, settled
from trainfabric_node.membership.timing import FAST
from trainfabric_plan.contract import CONTROL_PORT

NODES = 4
NEW_STEP_S = 20.0
"""As after any other loss, see test_faults.py."""
FENCE_S = FAST.lease_s + 2.0
"""The lease, and what a launcher has to kill its ranks."""


@pytest.fixture(scope="module")
def linked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A job of four nodes with links of their own."""
    with lab(tmp_path_factory.mktemp("links"), nodes=NODES, name="links", network="namespaces") as made:
        made.start("--checkpoint-every", "2")
        made.wait_for_step_beyond(3)
        yield made


@pytest.fixture
def running(linked: Lab) -> Iterator[Lab]:
    """The same, whole again before the test, and without processes that outlived their node after it."""
    with settled(linked, NODES) as made:
        yield made


def test_a_worker_without_link_fences_itself_and_is_replaced_while_the_others_go_on(running: Lab) -> None:
    # given
    before, cut = running.epoch()["number"], running.victim()
    (rank,) = cut.ranks(before)
    agent = cut.service(AGENT)
    # when
    began = time.time()
    seconds = running.seconds_to_new_step(lambda: _take_link(running, cut), NEW_STEP_S)
    # then the others train, while its rank may still wait for its peers
    print("seconds to new step:", seconds)
    assert cut.instance_id not in _members(running)
    assert len(_members(running)) == 2
    # and the rank is dead within the lease, though nothing can have told the node
    running.wait_for("the end of its rank", lambda: not _alive(rank.pid), FENCE_S)
    print("seconds to fence:", time.time() - began)
    assert time.time() - began < FENCE_S
    assert _alive(agent)
    assert not _reaches_controller(running, cut)
    # and another node takes its place
    running.wait_until_whole(NODES)
    print("seconds to whole:", time.time() - began)
    assert cut.instance_id not in _members(running)
    assert cut.instance_id in {event["node"] for event in running.events("node_replaced")}
    running.wait_for("nothing left of it", lambda: not cut.processes())
    assert running.commits_follow_their_claim()


def test_a_worker_whose_link_comes_back_early_goes_on_with_nothing_of_what_it_did(running: Lab) -> None:
    # given a worker that the others have gone on without, and whose rank still lives
    before, cut = running.epoch()["number"], running.victim()
    (rank,) = cut.ranks(before)
    agent = cut.service(AGENT)
    began = time.time()
    _take_link(running, cut)
    running.wait_for("an epoch without it", lambda: running.epoch()["number"] > before)
    after = running.epoch()
    assert _alive(rank.pid)
    # when
    cut.ask("link-up")
    # then
    running.wait_for("the end of its rank", lambda: not _alive(rank.pid), FENCE_S)
    print("seconds to end of old rank:", time.time() - began)
    running.wait_until_whole(NODES)
    print("seconds to whole:", time.time() - began)
    assert cut.instance_id not in {node["instance_id"] for node in after["nodes"]}
    assert cut.instance_id in _members(running)
    assert cut.service(AGENT) == agent
    assert running.commits_follow_their_claim()
    claimed = datetime.fromisoformat(after["claimed"])
    late = [step for step in running.steps() if datetime.fromisoformat(step["time"]) > claimed]
    assert not [step for step in late if step["epoch"] <= before]


def test_workers_fence_themselves_when_the_coordinator_has_no_link_and_go_on_when_it_is_back(running: Lab) -> None:
    # given
    before, cut = running.epoch()["number"], running.coordinator()
    ranks = {node.instance_id: node.ranks(before)[0].pid for node in running.workers()}
    # when
    began = time.time()
    _take_link(running, cut)
    running.wait_for("the end of the workers' ranks", lambda: not any(map(_alive, ranks.values())), FENCE_S)
    # then nothing goes on
    print("seconds to fence:", time.time() - began)
    assert running.epoch()["number"] == before
    # until it is back
    back = time.time()
    seconds = running.seconds_to_new_step(lambda: cut.ask("link-up"))
    print("seconds from link to new step:", seconds)
    running.wait_until_whole(NODES)
    print("seconds from link to whole:", time.time() - back)
    assert running.coordinator() == cut
    assert running.commits_follow_their_claim()


def test_no_step_is_missing_and_nothing_is_left_after_a_stop(running: Lab) -> None:
    steps = sorted({line["step"] for line in running.steps()})

    status = running.stop()

    assert steps == list(range(1, steps[-1] + 1))
    assert status["state"] == "stopped"
    running.wait_for("no instance", lambda: not running.nodes())
    running.wait_for("no process", lambda: not running.orphans())


def _take_link(lab: Lab, node: LocalNode) -> None:
    """Returns once the node is cut off."""
    node.ask("link-down")
    lab.wait_for("the end of the link", (node.directory / "link-down.seen").exists)


def _members(lab: Lab) -> set[str]:
    return {node["instance_id"] for node in lab.epoch()["nodes"]}


def _reaches_controller(lab: Lab, node: LocalNode) -> bool:
    """Whether a process of the node can connect to the coordinator."""
    coordinator = lab.coordinator().instance_id
    (address,) = [member["address"] for member in lab.epoch()["nodes"] if member["instance_id"] == coordinator]

    def connect() -> bool:
        with socket.socket() as trying:
            trying.settimeout(1.0)
            return trying.connect_ex((address, CONTROL_PORT)) == 0

    return inside(Path(f"/proc/{node.service(AGENT)}/ns/net"), connect)


def _alive(pid: int | None) -> bool:
    return Path(f"/proc/{pid}").exists()
