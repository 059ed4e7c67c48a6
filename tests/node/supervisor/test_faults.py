from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.node.supervisor.lab import Controller, Lab, NodeProcesses
from tests.node.supervisor.processes import until


def _running(lab: Lab, **ranks: Any) -> tuple[Controller, NodeProcesses]:
    controller = lab.controller(lab.start())
    node = lab.node("i-1", **ranks)
    controller.form("i-1")
    node.rank(0)
    node.rank(1)
    return controller, node


@contextmanager
def _stopped(process: int) -> Iterator[None]:
    os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process, signal.SIGCONT)


def _detail(controller: Controller) -> str:
    epoch = controller.epoch("i-1")
    assert epoch is not None
    return epoch.detail


def test_a_rank_that_is_killed_is_told_of_at_once_and_then_with_its_signal(lab: Lab) -> None:
    controller, node = _running(lab)
    rank = node.rank(1)

    os.kill(rank, signal.SIGKILL)

    controller.await_state("1 failed", "i-1")
    until(lambda: _detail(controller) == f"rank 1 (process {rank}) was ended by a signal")
    told = controller.said["i-1"][-1]
    assert (told.of_others, told.hopeless) == (False, False)
    until(lambda: lab.ranks() == [])


def test_a_rank_that_fails_gives_its_reason(lab: Lab) -> None:
    end = {"detail": "part 3 must have CRC32C 1, got 2", "hopeless": True}

    controller, _ = _running(lab, fail={"1": {"at": 3, "end": end}})

    controller.await_state("1 failed", "i-1")
    told = controller.said["i-1"][-1]
    assert told.detail == "rank 1: part 3 must have CRC32C 1, got 2"
    assert (told.of_others, told.hopeless) == (False, True)


def test_a_node_whose_ranks_failed_because_of_others_says_so(lab: Lab) -> None:
    end = {"detail": "Connection reset by peer", "of_others": True}

    controller, _ = _running(lab, fail={"0": {"at": 3, "end": end}})

    controller.await_state("1 failed", "i-1")
    until(lambda: lab.ranks() == [])
    assert all(said.of_others for said in controller.said["i-1"] if said.state == "failed")
    assert _detail(controller) == "rank 0: Connection reset by peer"


def test_the_agent_of_an_epoch_that_is_killed_takes_its_ranks_along(lab: Lab) -> None:
    controller, node = _running(lab)
    agent = next(process for process in lab.ranks() if process not in (node.rank(0), node.rank(1)))

    os.kill(agent, signal.SIGKILL)

    controller.await_state("1 failed", "i-1")
    until(lambda: _detail(controller) == "the agent of the ranks was ended by SIGKILL")
    assert lab.ranks() == []


def test_a_launcher_that_is_killed_takes_the_ranks_along_and_another_runs_the_next_epoch(lab: Lab) -> None:
    controller, node = _running(lab)

    node.launcher.kill()

    controller.await_state("1 failed", "i-1")
    until(lambda: _detail(controller) == "the launcher has ended, and the ranks with it")
    assert lab.ranks() == []
    assert not controller.beats["i-1"].ready
    node.launcher.wait()
    node.launcher = lab.launch("i-1")
    controller.form("i-1", number=2)
    controller.await_state("2 running", "i-1")


def test_an_order_to_a_node_whose_launcher_is_not_warm_fails_at_once(lab: Lab) -> None:
    controller = lab.controller(lab.start())
    node = lab.node("i-1")
    until(lambda: "i-1" in controller.beats and controller.beats["i-1"].ready)
    node.launcher.kill()
    until(lambda: not controller.beats["i-1"].ready)

    controller.beats["i-1"] = controller.beats["i-1"].model_copy(update={"ready": True})
    controller.form("i-1")

    controller.await_state("1 failed", "i-1")
    assert _detail(controller) == "the launcher is not warm"


def test_a_rank_that_stands_still_is_named_with_its_host_and_its_stack(lab: Lab) -> None:
    lab.timing["rank_stalled_s"] = 0.5
    controller, node = _running(lab)

    os.kill(node.rank(1), signal.SIGSTOP)

    controller.await_state("1 failed", "i-1")
    told = controller.said["i-1"][-1]
    (stall,) = told.stalls
    assert (stall.rank, stall.host) == (1, "127.0.0.1")
    assert stall.detail.endswith("s, its process is stopped")
    assert told.detail == f"rank 1 {stall.detail}, on i-1 at 127.0.0.1"
    assert "count (fake_launcher.py:" in stall.stack
    assert lab.ranks() == []


def test_ranks_that_make_no_step_are_told_of_with_their_stacks(lab: Lab) -> None:
    lab.timing["step_stalled_s"] = 0.5
    controller = lab.controller(lab.start())
    lab.node("i-1", step=1000.0)

    controller.form("i-1")

    controller.await_state("1 failed", "i-1")
    told = controller.said["i-1"][-1]
    assert told.detail == "no rank has made a step for 0.5 s, on i-1 at 127.0.0.1"
    assert [(stall.rank, stall.detail) for stall in told.stalls] == [
        (0, "is in phase start after step 0"),
        (1, "is in phase start after step 0"),
    ]
    assert all("count (fake_launcher.py:" in stall.stack for stall in told.stalls)
    assert lab.ranks() == []


def test_a_node_that_stood_still_as_a_whole_is_not_told_of_as_ranks_that_did(lab: Lab) -> None:
    lab.timing["rank_stalled_s"] = 0.5
    controller, node = _running(lab)
    everything = [node.supervisor.pid, *lab.ranks()]

    for process in everything:
        os.kill(process, signal.SIGSTOP)
    time.sleep(1.5)
    for process in everything:
        os.kill(process, signal.SIGCONT)

    reached = node.step(0)
    until(lambda: node.step(0) > reached + 30)
    assert controller.state("i-1") == "1 running"


def test_ranks_are_ended_when_the_controller_is_silent_and_the_node_goes_on_when_it_speaks(lab: Lab) -> None:
    lab.timing["lease_s"] = 1.0
    controller, _ = _running(lab)

    controller.speaks.clear()
    until(lambda: lab.ranks() == [])
    controller.speaks.set()

    controller.await_state("1 failed", "i-1")
    assert _detail(controller) == "no answer of the controller for 1 s"
    controller.form("i-1", number=2)
    controller.await_state("2 running", "i-1")


def test_a_controller_that_is_back_before_the_lease_ends_has_missed_nothing(lab: Lab) -> None:
    lab.timing["lease_s"] = 20.0
    controller, node = _running(lab)
    run = controller.run
    rank = node.rank(0)
    controller.close()
    lab.controllers.remove(controller)

    again = lab.controller(run, "c2")
    again.number = 1

    again.await_state("1 running", "i-1")
    assert node.rank(0) == rank


def test_a_supervisor_that_was_stopped_for_longer_than_its_lease_ends_its_ranks_first(lab: Lab) -> None:
    lab.timing["lease_s"] = 0.8
    controller, node = _running(lab)

    with _stopped(node.supervisor.pid):
        controller.speaks.clear()
        time.sleep(1.0)
        assert len(lab.ranks()) == 3
        began = time.monotonic()
    until(lambda: lab.ranks() == [])

    assert time.monotonic() - began < 0.5
    controller.speaks.set()
    controller.await_state("1 failed", "i-1")


def test_a_supervisor_that_was_stopped_while_others_went_on_ends_its_ranks(lab: Lab) -> None:
    controller, node = _running(lab)

    with _stopped(node.supervisor.pid):
        controller.order, controller.number = None, 2

    until(lambda: lab.ranks() == [])
    controller.await_state("none", "i-1")


def test_a_launcher_that_does_not_end_ranks_without_a_lease_is_killed_and_they_with_it(lab: Lab) -> None:
    lab.timing["lease_s"] = 1.0
    controller, node = _running(lab)

    node.launcher.send_signal(signal.SIGSTOP)
    controller.speaks.clear()

    until(lambda: node.launcher.poll() is not None)
    until(lambda: lab.ranks() == [])
    controller.speaks.set()
    controller.await_state("1 failed", "i-1")
