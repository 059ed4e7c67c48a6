from __future__ import annotations

import threading
import time

import pytest

from tests.node.imds import running_imds
from trainfabric_node.agent.agent import host_of
from trainfabric_node.agent.desk import Desk
from trainfabric_node.agent.host import Node
from trainfabric_node.membership.protocol import Answer, NodeEpoch, Notice
from trainfabric_node.settings import read_settings
from trainfabric_plan.contract import Role


@pytest.fixture
def rings() -> list[None]:
    return []


@pytest.fixture
def desk(rings: list[None]) -> Desk:
    node = Node(instance_id="i-1", address="10.0.0.7", role=Role.WORKER)
    return Desk(node, "nonce", lambda: rings.append(None), now=100.0)


def _epoch(step: int = 0, state: str = "running") -> NodeEpoch:
    return NodeEpoch(number=3, state=state, step=step)  # type: ignore[arg-type]


def _answer(sequence: int) -> Answer:
    return Answer(sequence=sequence, controller="c1", epoch=3)


def test_beats_are_numbered_and_say_how_the_node_is(desk: Desk) -> None:
    first, _ = desk.beat()
    desk.say(ready=True, notice=None, epoch=_epoch(7))
    second, _ = desk.beat()

    assert (first.sequence, first.ready, first.epoch) == (1, False, None)
    assert (second.sequence, second.ready, second.epoch) == (2, True, _epoch(7))
    assert desk.number == 3


def test_a_beat_says_in_which_placement_group_the_node_is_as_its_settings_have_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("trainfabric_node.agent.agent.open_store", lambda uri: None)
    given = {"TRAINFABRIC_ENVIRONMENT": "lab", "TRAINFABRIC_ROLE": "worker", "TRAINFABRIC_REGION": "us-east-1"}
    with running_imds() as imds:
        more = {"TRAINFABRIC_CHECKPOINT_BUCKET": "tests", "AWS_EC2_METADATA_SERVICE_ENDPOINT": imds.endpoint}
        host = host_of(read_settings({**given, **more, "TRAINFABRIC_PLACEMENT": "2"}))

    said, _ = Desk(host.node, "nonce", lambda: None, now=0.0).beat()

    assert (said.instance_id, said.placement) == ("i-0123456789abcdef0", 2)


def test_news_is_waited_for_and_another_step_is_none(desk: Desk) -> None:
    desk.say(ready=True, notice=None, epoch=_epoch(7))
    _, news = desk.beat()
    desk.say(ready=True, notice=None, epoch=_epoch(8))
    began = time.monotonic()
    desk.await_news(news, 0.1)
    waited = time.monotonic() - began

    change = {"ready": True, "notice": Notice(kind="spot", detail=""), "epoch": _epoch(8)}
    threading.Timer(0.05, lambda: desk.say(**change)).start()  # type: ignore[arg-type]
    desk.await_news(news, 10.0)

    assert waited >= 0.1
    assert time.monotonic() - began < 5.0


def test_what_was_news_before_a_beat_is_not_waited_for_again(desk: Desk) -> None:
    desk.say(ready=True, notice=None, epoch=None)
    _, before = desk.beat()
    desk.say(ready=False, notice=None, epoch=None)

    desk.await_news(before, 10.0)

    _, after = desk.beat()
    assert after > before


def test_an_answer_is_taken_once_and_the_last_one_counts(desk: Desk, rings: list[None]) -> None:
    beat, _ = desk.beat()
    desk.leave(_answer(1), beat, 101.0)
    desk.leave(_answer(2), beat, 102.0)

    assert desk.take() == _answer(2)
    assert desk.take() is None
    assert len(rings) == 2
    assert (desk.silence(105.0), desk.controller) == (3.0, "c1")


def test_silence_before_the_first_answer_counts_from_the_beginning(desk: Desk) -> None:
    assert desk.silence(130.0) == 30.0


def test_the_controller_has_heard_what_a_beat_said_that_it_answered(desk: Desk) -> None:
    desk.say(ready=True, notice=None, epoch=_epoch(7))
    beat, _ = desk.beat()
    before = desk.has_heard()
    desk.leave(_answer(1), beat, 101.0)
    heard = desk.has_heard()

    desk.say(ready=True, notice=None, epoch=_epoch(8, "resume"))

    assert (before, heard, desk.has_heard()) == (False, True, False)
