"""A controller in this process, on a store and a fleet that a test can make slow or silent."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.node.membership.field import small_plan
from tests.node.membership.fleets import FakeFleet
from tests.node.membership.said import notice
from tests.node.membership.supervisors import Supervisor, until
from tests.node.samples import spec
from trainfabric_node.jobs import JobLedger, JobSpec, NodeState
from trainfabric_node.jobs.records import StopRequest, now
from trainfabric_node.membership import ending, session
from trainfabric_node.membership.controller import Controller
from trainfabric_node.membership.session import Station
from trainfabric_node.store import Store, open_store
from trainfabric_plan.contract import Metric, Role
from trainfabric_plan.errors import Unreachable
from trainfabric_plan.policy import FaultTolerance


class Weather:
    """A store whose answers take as long as a test says, or fail."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.delay_s = 0.0
        self.is_down = False
        self.put_keys: list[str] = []

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if not callable(found):
            return found

        def asked(*arguments: Any) -> Any:
            time.sleep(self.delay_s)
            if self.is_down:
                raise Unreachable("the bucket does not answer")
            if name.startswith("put"):
                self.put_keys.append(arguments[0])
            return found(*arguments)

        return asked


class Nowhere:
    def put(self, values: dict[Metric, float]) -> None:
        """Nobody looks at them."""


class House:
    """A controller with its nodes."""

    def __init__(self, directory: Path, stack: ExitStack) -> None:
        self.store = open_store(str(directory / "bucket"))
        self.weather = Weather(self.store)
        self.ledger = JobLedger(self.store)
        self.fleet = FakeFleet()
        self.ahead_s = 0.0
        policy = FaultTolerance(heartbeats="fast", wait_for_replacement_s=0)
        recipe = spec().recipe.model_copy(update={"steps": 1_000_000})
        self.job: JobSpec = spec(2, plan=small_plan(2), policy=policy, recipe=recipe)
        self.station = Station(
            instance_id="i-1",
            address="127.0.0.1",
            control_port=0,
            rendezvous_port=29400,
            ledger=JobLedger(self.weather),
            fleet=lambda job: self.fleet,
            deployed=lambda: self.fleet,
            metrics=Nowhere(),
            poll_s=0.1,
            clock=lambda: time.monotonic() + self.ahead_s,
        )
        self.controller = Controller(self.station)
        self.thread = threading.Thread(target=self.controller.serve)
        self.ledger.claim(self.job)
        self.thread.start()
        stack.callback(self.thread.join, 30)
        stack.callback(self.controller.leave)
        self.nodes = [
            Supervisor(self.ledger, self.job, f"i-{n}", Role.WORKER if n > 1 else Role.COORDINATOR, f"10.0.0.{n}")
            for n in (1, 2)
        ]
        for node in self.nodes:
            stack.callback(node.kill)
        self.reach(2)

    def reach(self, step: int, epoch: int = 1) -> None:
        until(lambda: all(node.epoch and node.epoch.number >= epoch and node.epoch.step >= step for node in self.nodes))

    def reach_with(self, node: Supervisor, epoch: int) -> None:
        until(lambda: node.epoch and node.epoch.number >= epoch and node.epoch.step > 2)

    def let_look(self) -> None:
        """Until the controller has counted the nodes that are there now."""
        seen = self.fleet.looks
        until(lambda: self.fleet.looks > seen + 1)

    def events(self) -> list[str]:
        return [event["event"] for event in self.ledger.run("first", 1).events()]


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with ExitStack() as stack:
        yield House(tmp_path, stack)


@contextmanager
def later_controller(station: Station) -> Iterator[None]:
    controller = Controller(station)
    thread = threading.Thread(target=controller.serve)
    thread.start()
    try:
        yield
    finally:
        controller.leave()
        thread.join(30)


def slowest_answer(node: Supervisor, seconds: float) -> float:
    """The longest that a node waited for an answer."""
    seen, longest, end = len(node.answers), 0.0, time.monotonic() + seconds
    last = time.monotonic()
    while time.monotonic() < end:
        if len(node.answers) > seen:
            longest, last, seen = max(longest, time.monotonic() - last), time.monotonic(), len(node.answers)
        time.sleep(0.005)
    return max(longest, time.monotonic() - last)


def test_a_slow_bucket_delays_no_answer(house: House) -> None:
    house.weather.delay_s = 3.0
    slowest = slowest_answer(house.nodes[0], 4.0)
    house.weather.delay_s = 0.0

    assert slowest < 1.0


def test_nobody_stops_training_while_the_bucket_does_not_answer(house: House) -> None:
    house.weather.is_down = True
    until(lambda: house.nodes[0].epoch and house.nodes[0].epoch.step > 30)
    house.weather.is_down = False

    assert len(house.nodes[0].orders) == 1
    assert house.thread.is_alive()


def test_an_epoch_that_cannot_be_claimed_is_claimed_when_the_bucket_answers_again(house: House) -> None:
    house.weather.is_down = True
    house.nodes[1].fail("rank 2 was ended by signal 9")
    time.sleep(1.5)
    assert [len(node.orders) for node in house.nodes] == [1, 1]
    house.weather.is_down = False
    house.reach(2, epoch=2)

    assert [node.orders[-1].record.number for node in house.nodes] == [2, 2]


def test_a_fleet_that_does_not_answer_is_asked_again(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_HANDS_S", 0.05)
    house.fleet.failures = 1
    house.nodes[1].notice = notice()
    until(lambda: ("replace", "i-2") in house.fleet.asked)
    until(lambda: "node_replaced" in house.events())

    assert house.fleet.asked[:1] == [("protect", "i-1", "i-2")]


def test_at_the_end_nodes_are_released_before_the_outcome_is_told_and_the_environment_free(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ending, "ATTEMPT_S", 0.05)
    found: list[tuple[bool, bool]] = []
    records = house.ledger.run("first", 1)
    release = house.fleet.release

    def looked() -> None:
        release()
        found.append((records.outcome() is None, house.ledger.current() is not None))

    monkeypatch.setattr(house.fleet, "release", looked)
    house.fleet.failures = 2
    records.request_stop(StopRequest(detail="by trainfabric job stop", requested=now()))
    until(lambda: house.ledger.current() is None)

    assert found == [(True, True)]
    outcome = records.outcome()
    assert outcome is not None
    assert (outcome.state, outcome.detail) == ("stopped", "asked by trainfabric job stop")
    assert house.events()[-4:] == ["drain", "epoch_ended", "release", "release"]
    assert records.events()[-1]["detail"] == "tried again until it succeeds: autoscaling does not answer"
    assert [node.state for node in records.nodes()] == 2 * [NodeState.STOPPED]


def test_a_run_that_was_concluded_and_not_released_is_released(tmp_path: Path) -> None:
    with ExitStack() as stack:
        house = House(tmp_path, stack)
        records = house.ledger.run("first", 1)
        delete = house.store.delete
        house.store.delete = lambda key: None  # type: ignore[method-assign]
        records.request_stop(StopRequest(detail="by trainfabric job stop", requested=now()))
        until(records.outcome)
        house.controller.leave()
        house.thread.join(30)
        house.store.delete = delete  # type: ignore[method-assign]
        assert house.ledger.current() == house.job

        with later_controller(house.station):
            until(lambda: house.ledger.current() is None)


def test_a_bug_in_a_thread_ends_the_controller(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    raised: list[BaseException] = []
    monkeypatch.setattr(threading, "excepthook", lambda arguments: raised.append(arguments.exc_value))
    monkeypatch.setattr(house.fleet, "replace", lambda instance_id: 1 / 0)
    house.nodes[1].notice = notice()
    house.thread.join(30)

    assert not house.thread.is_alive()
    assert [type(error) for error in raised] == [ZeroDivisionError]


def test_nodes_that_never_come_up_are_given_back_and_missing_ones_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "_MEMBERS_S", 0.05)
    monkeypatch.setattr(session, "_HANDS_S", 0.05)
    with ExitStack() as stack:
        house = House(tmp_path, stack)
        cold = Supervisor(house.ledger, house.job, "i-3", Role.WORKER, "10.0.0.3", ready=False)
        stack.callback(cold.kill)
        house.fleet.there = ["i-1", "i-2", "i-3", "i-4"]
        until(lambda: cold.answers)
        house.let_look()
        house.ahead_s += house.job.policy.start_deadline_s + 1
        until(lambda: ("replace", "i-4") in house.fleet.asked)

        assert house.fleet.asked == [("protect", "i-1", "i-2"), ("replace", "i-3"), ("replace", "i-4")]
        until(lambda: house.events().count("node_replaced") == 2)
        assert ("i-3", "runs, but was not up and warm within 1800 s") in [
            (event.get("node"), event["detail"])
            for event in house.ledger.run("first", 1).events()
            if event["event"] == "node_replaced"
        ]

        house.fleet.there = ["i-1"]
        house.let_look()
        house.ahead_s += 61
        until(lambda: ("restore", 2, 0) in house.fleet.asked)


def test_a_later_controller_tells_who_is_gone_and_no_notice_twice(house: House) -> None:
    house.nodes[0].notice = notice("rebalance", "recommended at noon")
    records = house.ledger.run("first", 1)
    until(lambda: "rebalance" in house.events())
    until(lambda: [node.state for node in records.nodes()] == 2 * [NodeState.RUNNING])
    house.controller.leave()
    house.thread.join(30)
    house.nodes[1].kill()

    with later_controller(replace(house.station, incarnation="c-2")):
        until(lambda: [node.state for node in records.nodes()] == [NodeState.RUNNING, NodeState.LOST])
        house.reach_with(house.nodes[0], epoch=2)

    assert house.events().count("rebalance") == 1
    assert house.events().count("controller") == 2


def test_a_controller_without_a_job_releases_the_nodes(tmp_path: Path) -> None:
    with ExitStack() as stack:
        house = House(tmp_path, stack)
        house.controller.leave()
        house.thread.join(30)
        house.ledger.release(house.job)
        house.fleet.there = ["i-1", "i-2"]
        assert ("release",) not in house.fleet.asked

        def released_after_a_while() -> bool:
            house.ahead_s += 100
            return ("release",) in house.fleet.asked

        with later_controller(replace(house.station, incarnation="c-2")):
            until(released_after_a_while)
