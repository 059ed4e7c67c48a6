"""The controller as its unit runs it, against S3, an embedded AWS and a metadata service, without torch."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest

from tests.node.membership.controller_lab import BUCKET, Lab, begin, running_lab
from tests.node.membership.said import notice
from tests.node.membership.supervisors import until
from tests.node.samples import RECIPE, deployed
from tests.node.seaweed import Seaweed
from trainfabric_node.jobs import NodeState
from trainfabric_node.jobs.records import StopRequest, now
from trainfabric_node.membership.timing import FAST
from trainfabric_plan.contract import environment_parameter

ENVIRONMENT = deployed(4, checkpoint_bucket=BUCKET)


@pytest.fixture
def lab(tmp_path: Path, seaweed: Seaweed, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    with running_lab(tmp_path, seaweed, monkeypatch, ENVIRONMENT) as made:
        yield made


def test_a_job_trains_to_its_end_and_its_nodes_are_released(lab: Lab) -> None:
    begin(lab, recipe=RECIPE.model_copy(update={"steps": 25}))
    names = list(lab.supervisors)

    assert lab.outcome() == ("done", 25, "")
    assert lab.wanted() == [0, 0]
    assert lab.epochs() == [names]
    assert [event["event"] for event in lab.events() if event["event"] != "node_joined"] == [
        "controller",
        "epoch",
        "epoch_ended",
        "release",
    ]
    epoch = lab.told("epoch")[0]
    assert epoch == {
        "event": "epoch",
        "time": "",
        "epoch": 1,
        "nodes": names,
        "layout": str(lab.job.plan.layout),
        "ranks": 8,
        "detail": "4 nodes are there",
    }
    states = {node.instance_id: node.state for node in lab.ledger.run("first", 1).nodes()}
    assert states == dict.fromkeys(names, NodeState.DONE)


def test_members_are_protected_and_told_as_running(lab: Lab) -> None:
    begin(lab)

    until(lambda: all(member.protected for member in lab.fleet.members()), what=lab.log)
    records = lab.ledger.run("first", 1)
    until(lambda: [node.state for node in records.nodes()] == 4 * [NodeState.RUNNING], what=lab.log)


def test_a_job_that_is_stopped_saves_and_ends(lab: Lab) -> None:
    begin(lab)
    lab.ledger.run("first", 1).request_stop(StopRequest(detail="by trainfabric job stop", requested=now()))

    state, step, detail = lab.outcome()

    assert (state, detail) == ("stopped", "asked by trainfabric job stop")
    assert step is not None
    assert lab.wanted() == [0, 0]
    assert [event["state"] for event in lab.told("epoch_ended")] == ["resume"]


def test_a_killed_rank_makes_a_new_epoch_on_the_same_nodes(lab: Lab) -> None:
    begin(lab)
    next(iter(lab.supervisors.values())).fail("rank 1 was ended by signal 9")
    took = until(lambda: len(lab.records()) == 2, what=lab.log)
    lab.reach(3)

    assert took < 2
    assert lab.epochs()[1] == lab.epochs()[0]


def test_a_spot_node_leaves_with_all_saved_and_its_replacement_is_taken_in_at_a_checkpoint(lab: Lab) -> None:
    begin(lab)
    leaver = list(lab.supervisors.values())[2]
    leaver.notice = notice("spot", "terminate at noon")
    until(lambda: len(lab.records()) == 2, what=lab.log)
    lab.reach(3)
    until(lambda: leaver.instance_id not in [m.instance_id for m in lab.fleet.members() if not m.leaving])
    assert leaver.instance_id not in lab.epochs()[1]
    (fresh,) = lab.join()

    until(lambda: len(lab.records()) == 3, what=lab.log)
    lab.reach(3)

    assert len(lab.epochs()[1]) == 2
    assert len(lab.epochs()[2]) == 4
    assert fresh.instance_id in lab.epochs()[2]
    assert [event["state"] for event in lab.told("epoch_ended")] == ["resume", "resume"]
    assert [event["at"] for event in lab.told("drain")] == ["now", "checkpoint"]
    assert lab.told("spot_notice") == [
        {"event": "spot_notice", "time": "", "node": leaver.instance_id, "detail": "terminate at noon"}
    ]
    assert [event["node"] for event in lab.told("node_replaced")] == [leaver.instance_id]


def test_a_silent_node_is_lost_and_replaced(lab: Lab) -> None:
    begin(lab)
    lost = list(lab.supervisors.values())[3]
    lost.is_frozen = True
    took = until(lambda: len(lab.records()) == 2, what=lab.log)
    until(lambda: lab.told("node_replaced"), what=lab.log)

    assert 1.0 < took < 3.5
    assert lost.instance_id not in lab.epochs()[1]
    assert lost.instance_id not in [m.instance_id for m in lab.fleet.members() if not m.leaving]
    lost.is_frozen = False
    (fresh,) = lab.join()
    until(lambda: len(lab.records()) == 3, what=lab.log)
    assert fresh.instance_id in lab.epochs()[2]
    assert lost.instance_id not in lab.epochs()[2]
    assert lost.answers[-1].epoch >= 2


def test_a_controller_that_hears_nobody_gives_nobody_back_and_goes_on_with_all_once_it_does(lab: Lab) -> None:
    begin(lab)
    names = list(lab.supervisors)
    workers = [lab.supervisors[name] for name in names[1:]]
    for one in workers:
        one.is_frozen = True
    frozen = time.monotonic()
    until(lambda: lab.epochs()[-1] == names[:1], what=lab.log)
    until(lambda: time.monotonic() - frozen > FAST.give_up_s + 3)
    for one in workers:
        one.is_frozen = False
    until(lambda: len(lab.records()) > 2 and lab.epochs()[-1] == names, what=lab.log)
    lab.reach(3)

    assert names[:1] in lab.epochs()
    assert lab.told("node_replaced") == []
    assert [member.instance_id for member in lab.fleet.members()] == names


def test_nodes_are_those_of_the_job_whatever_is_deployed_meanwhile(lab: Lab) -> None:
    boto3.client("ssm").put_parameter(
        Name=environment_parameter("lab"), Value='{"of": "another version"}', Type="String", Overwrite=True
    )
    begin(lab)
    lab.ledger.run("first", 1).request_stop(StopRequest(detail="by trainfabric job stop", requested=now()))

    assert lab.outcome()[0] == "stopped"
    assert lab.wanted() == [0, 0]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_controller_that_is_started_anew_goes_on_with_the_epoch(lab: Lab, how: signal.Signals) -> None:
    process = begin(lab)
    coordinator = next(iter(lab.supervisors))
    process.send_signal(how)
    process.wait(20)
    lab.start_controller(coordinator)
    until(lambda: len(lab.told("controller")) == 2, what=lab.log)
    lab.reach(max(one.epoch.step for one in lab.supervisors.values() if one.epoch) + 20)

    assert len(lab.records()) == 1
    assert all(len(one.orders) == 1 for one in lab.supervisors.values())
    assert len(lab.told("node_joined")) == 4
    next(iter(lab.supervisors.values())).fail("rank 1 was ended by signal 9")
    until(lambda: len(lab.records()) == 2, what=lab.log)
    assert lab.epochs()[1] == lab.epochs()[0]


def test_what_happened_while_no_controller_was_there_is_caught_up_with(lab: Lab) -> None:
    process = begin(lab)
    names = list(lab.supervisors)
    process.kill()
    process.wait()
    lab.supervisors[names[3]].kill()
    for name in names[:3]:
        lab.supervisors[name].fail("connection reset by peer", of_others=True)
    lab.start_controller(names[0])
    until(lambda: len(lab.records()) == 2, what=lab.log)

    assert lab.epochs()[1] == names[:2]


def test_a_controller_on_another_node_takes_over_only_from_one_that_is_gone(lab: Lab) -> None:
    first = begin(lab)
    second = lab.start_controller("i-another", "127.0.0.2")
    until(lambda: "goes on" in lab.log(), what=lab.log)
    assert len(lab.told("controller")) == 1
    first.kill()
    first.wait()
    until(lambda: len(lab.told("controller")) == 2, what=lab.log)
    lab.reach(max(one.epoch.step for one in lab.supervisors.values() if one.epoch) + 5)

    assert len(lab.records()) == 1
    assert second.poll() is None


def test_a_controller_beside_which_another_is_announced_ends(lab: Lab) -> None:
    first = begin(lab)
    records = lab.ledger.run("first", 1)
    announced = records.controller()
    assert announced is not None
    records.announce(announced.model_copy(update={"incarnation": "another"}))

    assert first.wait(20) == 1
    assert "controller must be another, which is announced, got" in lab.log()


def test_a_run_that_others_ended_by_force_is_left_and_the_next_is_served(lab: Lab) -> None:
    process = begin(lab)
    lab.ledger.release(lab.job)
    until(lambda: all(one.is_over for one in lab.supervisors.values()), what=lab.log)

    lab.supervisors.clear()
    lab.job = lab.job.model_copy(update={"run": 2, "nonce": "next", "resume": True})
    lab.ledger.claim(lab.job)
    lab.join()
    lab.reach(3)

    assert process.poll() is None
    assert [(record.run, record.number) for record in lab.records()] == [(1, 1), (2, 2)]


def test_a_run_that_failed_says_why(lab: Lab) -> None:
    begin(lab)
    list(lab.supervisors.values())[1].fail("rank 2: no such corpus", hopeless=True)
    name = list(lab.supervisors)[1]

    state, _, detail = lab.outcome()

    assert (state, detail) == ("failed", f"{name}: rank 2: no such corpus")
    assert lab.wanted() == [0, 0]


def test_a_controller_needs_no_torch() -> None:
    loaded = (
        "import sys, trainfabric_node.membership.controller;"
        "print({'torch', 'deepspeed', 'numpy'} & set(sys.modules), 'trainfabric_node.agent' in sys.modules)"
    )

    printed = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True).stdout

    assert printed == "set() False\n"
