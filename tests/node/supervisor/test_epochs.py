from __future__ import annotations

import os
import signal

from tests.node.supervisor.lab import Lab
from tests.node.supervisor.processes import until
from trainfabric_node.jobs import NodeState
from trainfabric_node.membership.protocol import Drain

STEPS = 30


def test_a_node_that_waits_for_its_controller_says_that_it_is_joining(lab: Lab) -> None:
    run = lab.start()

    lab.node("i-1")

    records = lab.ledger.run(run.job, run.run)
    until(records.nodes)
    assert [(node.instance_id, node.state) for node in records.nodes()] == [("i-1", NodeState.JOINING)]


def test_nodes_run_an_epoch_to_its_end_and_upload_what_it_wrote(lab: Lab) -> None:
    run = lab.start(2)
    controller = lab.controller(run)
    lab.node("i-1", "coordinator", steps=STEPS)
    lab.node("i-2", steps=STEPS)

    controller.form("i-1", "i-2")

    controller.await_state("1 done", "i-1", "i-2")
    records = lab.ledger.run(run.job, run.run)
    states = [said.state for said in controller.said["i-1"]]
    assert list(dict.fromkeys(states)) == ["starting", "running", "done"]
    assert controller.said["i-1"][-1].step == STEPS
    assert [line["step"] for line in records.steps()] == list(range(1, STEPS + 1))
    assert records.result() is not None
    assert sorted(records.log("i-2").splitlines()[1:]) == [f"trainer: rank {rank} of epoch 1 counts" for rank in (2, 3)]


def test_a_beat_says_who_the_node_is(lab: Lab) -> None:
    controller = lab.controller(lab.start(nonce="secret"))

    lab.node("i-1")

    until(lambda: "i-1" in controller.beats and controller.beats["i-1"].ready)
    beat = controller.beats["i-1"]
    assert (beat.token, beat.role, beat.address, beat.pins.asset_key) == ("secret", "worker", "127.0.0.1", "a")
    assert (beat.notice, beat.epoch) == (None, None)


def test_ranks_that_are_asked_to_leave_do_and_the_node_says_so_when_all_is_uploaded(lab: Lab) -> None:
    run = lab.start()
    controller = lab.controller(run)
    node = lab.node("i-1")
    controller.form("i-1")
    node.rank(0)

    controller.drain = Drain(epoch=1, at="checkpoint", detail="a test")

    controller.await_state("1 resume", "i-1")
    result = lab.ledger.run(run.job, run.run).result()
    assert result is not None
    assert result.status == "stopped"
    # ranks that only count do not wait for each other: another may have come further than rank 0
    assert 0 < result.step <= controller.said["i-1"][-1].step
    assert (node.folder / "runs/first/0001/epochs/00000001/stop").read_text() == "checkpoint"


def test_a_drain_of_an_earlier_epoch_moves_nobody(lab: Lab) -> None:
    controller = lab.controller(lab.start())
    node = lab.node("i-1")
    controller.drain = Drain(epoch=1, at="now", detail="a test")
    controller.form("i-1", number=2)

    reached = node.rank(0, epoch=2) and node.step(0, epoch=2)

    until(lambda: node.step(0, epoch=2) > reached + 20)
    assert controller.state("i-1") == "2 running"


def test_a_new_epoch_ends_the_ranks_of_the_old_one(lab: Lab) -> None:
    controller = lab.controller(lab.start())
    node = lab.node("i-1")
    controller.form("i-1")
    old = [node.rank(0), node.rank(1)]

    controller.form("i-1", number=2)

    controller.await_state("2 running", "i-1")
    assert not set(old) & set(lab.ranks())
    assert len(lab.ranks()) == 3


def test_a_node_that_is_no_member_of_the_new_epoch_ends_its_ranks_and_waits(lab: Lab) -> None:
    controller = lab.controller(lab.start(2))
    lab.node("i-1")
    lab.node("i-2")
    controller.form("i-1", "i-2")
    controller.await_state("1 running", "i-1", "i-2")

    controller.form("i-2", number=2)

    controller.await_state("2 running", "i-2")
    controller.await_state("none", "i-1")
    assert len(lab.ranks()) == 3


def test_a_run_that_is_concluded_ends_the_ranks_and_the_node_takes_part_in_the_next(lab: Lab) -> None:
    first = lab.start()
    controller = lab.controller(first)
    node = lab.node("i-1")
    controller.form("i-1")
    node.rank(0)

    controller.concluded = True

    until(lambda: not lab.ranks())
    lab.ledger.release(first)
    again = lab.controller(lab.start(run=2, nonce="b"), "c2")
    again.form("i-1", number=2)
    again.await_state("2 running", "i-1")


def test_a_run_whose_environment_was_freed_by_force_is_over(lab: Lab) -> None:
    run = lab.start()
    node = lab.node("i-1")
    controller = lab.controller(run)
    controller.form("i-1")
    node.rank(0)

    lab.ledger.release(run)

    until(lambda: not lab.ranks())
    until(lambda: "over on this node" in node.printed())


def test_a_controller_that_another_replaces_is_left(lab: Lab) -> None:
    run = lab.start()
    old = lab.controller(run)
    lab.node("i-1")
    old.form("i-1")
    old.await_state("1 running", "i-1")

    new = lab.controller(run, "c2")
    new.number = 1

    new.await_state("1 running", "i-1")


def test_a_controller_of_the_past_is_not_obeyed(lab: Lab) -> None:
    run = lab.start()
    controller = lab.controller(run)
    node = lab.node("i-1")
    controller.form("i-1", number=5)
    controller.await_state("5 running", "i-1")
    pid = node.rank(0, epoch=5)

    controller.number, controller.order, controller.concluded = 4, None, True

    until(lambda: "is one of the past" in node.printed())
    assert pid in lab.ranks()


def test_a_supervisor_that_is_killed_leaves_no_rank_and_another_goes_on_as_a_new_member(lab: Lab) -> None:
    controller = lab.controller(lab.start())
    node = lab.node("i-1")
    controller.form("i-1")
    node.rank(0)
    before = controller.beats["i-1"].incarnation

    os.kill(node.supervisor.pid, signal.SIGKILL)
    until(lambda: not lab.ranks())
    node.supervisor.wait()
    node.supervisor = lab.supervise("i-1")

    until(lambda: controller.beats["i-1"].incarnation != before and controller.beats["i-1"].ready)
    assert controller.state("i-1") == "none"
    assert node.launcher.poll() is None
    controller.form("i-1", number=2)
    controller.await_state("2 running", "i-1")


def test_what_a_killed_supervisor_has_not_uploaded_the_next_one_does(lab: Lab) -> None:
    run = lab.start()
    lab.timing["publish_s"] = 1000.0
    controller = lab.controller(run)
    node = lab.node("i-1")
    controller.form("i-1")
    until(lambda: node.step(0) > 5)

    os.kill(node.supervisor.pid, signal.SIGKILL)
    node.supervisor.wait()
    node.supervisor = lab.supervise("i-1")

    until(lambda: len(lab.ledger.run(run.job, run.run).steps()) > 5)
