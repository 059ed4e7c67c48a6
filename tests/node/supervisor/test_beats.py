from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from tests.node.supervisor.processes import until
from trainfabric_node.agent.beats import Beats
from trainfabric_node.agent.desk import Desk
from trainfabric_node.agent.host import Node
from trainfabric_node.jobs.records import ControllerAddress, now
from trainfabric_node.membership.protocol import Answer, Beat, NodeEpoch
from trainfabric_node.membership.server import ControlServer
from trainfabric_node.membership.timing import FAST
from trainfabric_plan.contract import Role
from trainfabric_plan.errors import Refused

SELDOM = replace(FAST, beat_s=1000.0)


class Scene:
    """The beat thread of a node, and a controller."""

    def __init__(self) -> None:
        self.desk = Desk(Node(instance_id="i-1", address="10.0.0.7", role=Role.WORKER), "a", lambda: None, 0.0)
        self.address: ControllerAddress | None = None
        self.said: list[Beat] = []
        self.renewed: list[float] = []
        self.missed: list[float] = []
        self.epoch = 0

    @contextmanager
    def controller(self, respond: Callable[[Beat], Answer] | None = None, name: str = "c1") -> Iterator[None]:
        def answer(beat: Beat) -> Answer:
            self.said.append(beat)
            return Answer(sequence=beat.sequence, controller=name, epoch=self.epoch)

        with ControlServer("127.0.0.1", 0, respond or answer) as server:
            self.address = ControllerAddress(
                host="127.0.0.1",
                port=server.port,
                rendezvous_port=29400,
                incarnation=name,
                instance_id="i-c",
                announced=now(),
            )
            yield

    @contextmanager
    def beating(self, timing: object = FAST) -> Iterator[None]:
        beats = Beats(
            self.desk,
            lambda: self.address,
            self.renewed.append,
            lambda: self.missed.append(time.monotonic()),
            timing,  # type: ignore[arg-type]
        )
        thread = threading.Thread(target=beats.run)
        thread.start()
        try:
            yield
        finally:
            beats.stop()
            self.desk.say(ready=not self.desk.beat()[0].ready, notice=None, epoch=None)
            thread.join(10)
            assert not thread.is_alive()


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_beats_are_said_at_intervals_once_the_controller_is_announced(scene: Scene) -> None:
    with scene.beating():
        time.sleep(0.1)
        with scene.controller():
            until(lambda: len(scene.said) >= 3)

    assert [beat.sequence for beat in scene.said[:3]] == [1, 2, 3]
    assert scene.desk.controller in ("c1", "")


def test_news_is_said_at_once(scene: Scene) -> None:
    with scene.controller(), scene.beating(SELDOM):
        until(lambda: scene.said)
        scene.desk.say(ready=True, notice=None, epoch=None)
        until(lambda: scene.said[-1].ready, 2.0)


def test_the_lease_begins_when_the_beat_was_said(scene: Scene) -> None:
    def late(beat: Beat) -> Answer:
        time.sleep(0.3)
        return Answer(sequence=beat.sequence, controller="c1", epoch=0)

    with scene.controller(late), scene.beating(SELDOM):
        until(lambda: scene.renewed)
        heard = time.monotonic()

    assert heard - scene.renewed[0] >= 0.3


def test_a_controller_that_does_not_answer_is_missed_once_and_tried_again(scene: Scene) -> None:
    with scene.controller():
        gone = scene.address
    scene.address = gone
    with scene.beating():
        until(lambda: scene.missed)
        time.sleep(0.4)
        missed = len(scene.missed)
        with scene.controller():
            until(lambda: scene.said)

    assert missed == 1
    assert scene.renewed


def test_a_controller_that_refuses_the_run_renews_nothing(scene: Scene) -> None:
    def refuse(beat: Beat) -> Answer:
        raise Refused("beat: token must be that of the run, got another")

    with scene.controller(refuse), scene.beating():
        until(lambda: scene.missed)

    assert scene.renewed == []


def test_a_controller_of_an_earlier_epoch_renews_nothing_and_is_not_listened_to(scene: Scene) -> None:
    scene.desk.say(ready=True, notice=None, epoch=NodeEpoch(number=5, state="running"))
    scene.epoch = 4

    with scene.controller(), scene.beating():
        until(lambda: scene.missed)

    assert scene.renewed == []
    assert scene.desk.take() is None


def test_another_controller_that_is_announced_is_talked_to_instead(scene: Scene) -> None:
    with scene.controller(name="c1"), scene.beating():
        until(lambda: scene.desk.controller == "c1")
        with scene.controller(name="c2"):
            until(lambda: scene.desk.controller == "c2")
