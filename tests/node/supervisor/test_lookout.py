from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.node.samples import spec
from tests.node.supervisor.fake_fleet import FakeFleet
from trainfabric_node.agent.desk import Desk
from trainfabric_node.agent.host import Host, Node
from trainfabric_node.agent.lookout import Lookout
from trainfabric_node.jobs import JobLedger, NodeState, NodeStatus
from trainfabric_node.jobs.records import ControllerAddress, now
from trainfabric_node.membership.protocol import Answer
from trainfabric_node.store import open_store
from trainfabric_plan.contract import STEPS_FILE, Role
from trainfabric_plan.errors import Unreachable
from trainfabric_plan.policy import FaultTolerance

GIVEN_BACK = ["release all but i-1", "give i-1 back"]


class Scene:
    """A node at time 0 in a run that has just been started."""

    def __init__(self, folder: Path, **changes: Any) -> None:
        self.now = 0.0
        self.rings: list[None] = []
        self.fleet = FakeFleet()
        self.spec = spec(2, **changes)
        self.ledger = JobLedger(open_store(str(folder)))
        self.ledger.claim(self.spec)
        self.records = self.ledger.run("first", 1)
        node = Node(instance_id="i-1", address="10.0.0.7", role=Role.WORKER)
        self.host = Host(
            node=node,
            ledger=self.ledger,
            checkpoint_bucket="s3://checkpoints/",
            state=folder,
            variables={},
            notices=list,
            fleet=lambda _: self.fleet,
        )
        self.desk = Desk(node, "a", lambda: None, now=0.0)
        self.lookout = self.made(self.host)

    def made(self, host: Host) -> Lookout:
        return Lookout(host, self.spec, self.desk, lambda: self.rings.append(None), clock=lambda: self.now)

    def answered(self, at: float) -> None:
        beat, _ = self.desk.beat()
        self.desk.leave(Answer(sequence=1, controller="c1", epoch=0), beat, at)

    def heard_of(self, name: str, state: NodeState, ago: float) -> None:
        updated = now() - timedelta(seconds=ago)
        self.records.report(NodeStatus(instance_id=name, role=Role.WORKER, state=state, updated=updated))


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def _address(**changes: Any) -> ControllerAddress:
    values = {"host": "10.0.0.5", "port": 29401, "rendezvous_port": 29400, "incarnation": "c1", "instance_id": "i-c"}
    return ControllerAddress(**{**values, "announced": now(), **changes})


def test_the_controller_is_found_where_it_was_announced(scene: Scene) -> None:
    scene.lookout.look()
    before = scene.lookout.controller
    scene.records.announce(_address())
    scene.lookout.look()

    assert before is None
    assert scene.lookout.controller is not None
    assert scene.lookout.controller.host == "10.0.0.5"


def test_a_node_reports_that_it_is_joining_until_the_controller_knows_it(scene: Scene) -> None:
    scene.lookout.look()

    assert [(one.instance_id, one.state) for one in scene.records.nodes()] == [("i-1", NodeState.JOINING)]


def test_a_node_that_the_controller_knows_leaves_its_record_alone(scene: Scene) -> None:
    scene.heard_of("i-1", NodeState.RUNNING, ago=1)

    scene.lookout.look()

    assert [one.state for one in scene.records.nodes()] == [NodeState.RUNNING]


def test_a_node_that_the_controller_answers_says_nothing_beside_it(scene: Scene) -> None:
    scene.answered(at=1.0)

    scene.lookout.look()

    assert scene.records.nodes() == []


def test_a_run_is_over_when_the_environment_is_freed_or_another_has_it(scene: Scene) -> None:
    scene.lookout.look()
    before = scene.lookout.over

    scene.ledger.release(scene.spec)
    scene.lookout.look()

    assert (before, scene.lookout.over, scene.rings) == (False, True, [None])
    scene.ledger.claim(spec(2, run=2, nonce="b"))
    assert scene.made(scene.host).over is False
    other = scene.made(scene.host)
    other.look()
    assert other.over


def test_a_bucket_that_does_not_answer_ends_nothing(scene: Scene) -> None:
    class Silent(JobLedger):
        def current(self) -> Any:
            raise Unreachable("s3 must answer")

    lookout = scene.made(replace(scene.host, ledger=Silent(scene.ledger.store)))
    lookout.look()

    assert not lookout.over


def test_a_run_that_no_controller_leads_fails_and_its_nodes_are_given_back(scene: Scene) -> None:
    scene.now = 1800.0
    scene.lookout.look()
    before = scene.records.outcome()

    scene.now = 1801.0
    scene.lookout.look()

    outcome = scene.records.outcome()
    assert before is None
    assert outcome is not None
    assert (outcome.state, outcome.detail) == ("failed", "no coordinator for 1800 s; resume the job")
    assert (scene.fleet.asked, scene.ledger.current(), scene.lookout.over) == (GIVEN_BACK, None, True)


def test_the_deadline_counts_from_the_last_answer(scene: Scene) -> None:
    scene.answered(at=1000.0)
    scene.now = 2000.0

    scene.lookout.look()

    assert scene.records.outcome() is None


def test_a_node_that_alone_does_not_reach_its_controller_gives_nothing_back(scene: Scene) -> None:
    scene.heard_of("i-2", NodeState.RUNNING, ago=60)
    scene.now = 5000.0

    scene.lookout.look()

    assert (scene.fleet.asked, scene.lookout.over) == ([], False)


@pytest.mark.parametrize(("state", "ago"), [(NodeState.RUNNING, 2000), (NodeState.JOINING, 1)])
def test_records_of_long_ago_or_of_nodes_that_wait_as_well_are_no_sign_of_a_controller(
    scene: Scene, state: NodeState, ago: float
) -> None:
    scene.heard_of("i-2", state, ago)
    scene.now = 5000.0

    scene.lookout.look()

    assert (scene.fleet.asked, scene.lookout.over) == (GIVEN_BACK, True)


def test_nodes_that_cannot_be_given_back_are_tried_again_before_the_run_is_ended(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scene.fleet, "release", _refusing)
    scene.now = 5000.0
    scene.lookout.look()
    before = scene.records.outcome()

    monkeypatch.undo()
    scene.lookout.look()

    assert before is None
    assert scene.records.outcome() is not None
    assert scene.fleet.asked == GIVEN_BACK


def test_the_node_itself_is_given_back_last_and_tried_again_until_it_is(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scene.fleet, "give_back", _refusing)
    scene.now = 5000.0
    scene.lookout.look()
    concluded = (scene.records.outcome() is not None, scene.ledger.current(), scene.lookout.over)

    monkeypatch.undo()
    scene.lookout.look()

    assert concluded == (True, None, False)
    assert (scene.fleet.asked, scene.lookout.over) == (GIVEN_BACK, True)


def test_a_node_that_still_has_to_go_makes_room_for_another_when_the_next_run_has_begun(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scene.fleet, "give_back", _refusing)
    scene.now = 5000.0
    scene.lookout.look()

    scene.ledger.claim(spec(2, run=2, nonce="b"))
    scene.lookout.look()

    assert scene.fleet.asked == ["release all but i-1", "replace i-1"]


def test_a_run_that_has_trained_waits_half_an_hour_for_a_coordinator_however_short_its_start_may_be(
    tmp_path: Path,
) -> None:
    scene = Scene(tmp_path, policy=FaultTolerance(start_deadline_s=60))
    scene.records.publish(1, STEPS_FILE, b"")

    scene.now = 1800.0
    scene.lookout.look()
    before = scene.lookout.over
    scene.now = 1801.0
    scene.lookout.look()

    outcome = scene.records.outcome()
    assert (before, scene.lookout.over) == (False, True)
    assert outcome is not None
    assert outcome.detail == "no coordinator for 1800 s; resume the job"


def test_before_a_run_has_trained_its_deadline_counts(tmp_path: Path) -> None:
    scene = Scene(tmp_path, policy=FaultTolerance(start_deadline_s=60))

    scene.now = 61.0
    scene.lookout.look()

    assert scene.lookout.over


def test_nodes_that_notice_it_together_give_the_fleet_back_one_after_the_other(scene: Scene) -> None:
    scene.heard_of("i-0", NodeState.JOINING, ago=2000)
    scene.heard_of("i-00", NodeState.LOST, ago=2000)

    scene.now = 1801.0
    scene.lookout.look()
    before = scene.fleet.asked.copy()
    scene.now = 1861.0
    scene.lookout.look()

    assert (before, scene.fleet.asked) == ([], GIVEN_BACK)


def _refusing(*_: object, **__: object) -> bool:
    raise Unreachable("autoscaling must accept the request")
