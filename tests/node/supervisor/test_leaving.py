from __future__ import annotations

import signal

from tests.node.supervisor.lab import Controller, Lab, NodeProcesses
from tests.node.supervisor.processes import until
from trainfabric_node.membership.protocol import Drain, Notice

LEAVE = Notice(kind="leave", detail="the supervisor was told to leave")
DRAIN = Drain(epoch=1, at="now", detail="a test")


def _running(lab: Lab) -> tuple[Controller, NodeProcesses]:
    controller = lab.controller(lab.start())
    node = lab.node("i-1")
    controller.form("i-1")
    node.rank(0)
    node.rank(1)
    return controller, node


def test_a_notice_reaches_the_controller_while_the_ranks_go_on(lab: Lab) -> None:
    controller, node = _running(lab)

    (lab.folder / "notice-i-1").write_text("terminate at 08:22")

    until(lambda: controller.beats["i-1"].notice == Notice(kind="spot", detail="terminate at 08:22"))
    reached = node.step(0)
    until(lambda: node.step(0) > reached)


def test_a_supervisor_that_is_told_to_leave_goes_when_its_ranks_have_left_in_order(lab: Lab) -> None:
    controller, node = _running(lab)

    node.supervisor.send_signal(signal.SIGTERM)
    until(lambda: controller.beats["i-1"].notice == LEAVE)
    assert controller.state("i-1") == "1 running"
    controller.drain = DRAIN

    assert node.supervisor.wait(10) == 0
    assert controller.state("i-1") == "1 resume"
    assert lab.ranks() == []


def test_ranks_that_do_not_leave_in_time_are_killed_when_the_supervisor_goes(lab: Lab) -> None:
    lab.timing["drain_s"] = 0.5
    controller, node = _running(lab)

    node.supervisor.send_signal(signal.SIGTERM)

    assert node.supervisor.wait(10) == 0
    assert controller.state("i-1") == "1 running"
    assert lab.ranks() == []


def test_a_node_without_ranks_leaves_at_once_and_says_so(lab: Lab) -> None:
    controller = lab.controller(lab.start())
    node = lab.node("i-1")
    until(lambda: controller.beats)

    node.supervisor.send_signal(signal.SIGTERM)

    assert node.supervisor.wait(5) == 0
    assert controller.beats["i-1"].notice == LEAVE


def test_a_supervisor_leaves_without_a_job_or_a_controller(lab: Lab) -> None:
    idle = lab.node("i-1")
    until(lambda: "waiting for a job" in idle.printed())
    idle.supervisor.send_signal(signal.SIGTERM)
    assert idle.supervisor.wait(5) == 0

    lab.start()
    alone = lab.node("i-2")
    until(lambda: "taking part" in alone.printed())
    alone.supervisor.send_signal(signal.SIGTERM)
    assert alone.supervisor.wait(5) == 0
