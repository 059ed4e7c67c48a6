from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.node.commits import manifest, write_part
from tests.node.membership.field import small_plan
from tests.node.samples import spec
from trainfabric_node.jobs import JobLedger, JobSpec
from trainfabric_node.jobs.records import ControllerAddress, now
from trainfabric_node.membership.actions import Form
from trainfabric_node.membership.epochs import Epochs
from trainfabric_node.membership.protocol import EpochNode, EpochOrder
from trainfabric_node.store import Store
from trainfabric_plan.errors import Refused, Unreachable

JOB = spec(2, plan=small_plan(2))


def address(incarnation: str = "c-1") -> ControllerAddress:
    return ControllerAddress(
        host="10.0.0.1",
        port=29401,
        rendezvous_port=29400,
        incarnation=incarnation,
        instance_id="i-1",
        announced=now(),
    )


def epochs(store: Store, incarnation: str = "c-1", job: JobSpec = JOB) -> Epochs:
    return Epochs(JobLedger(store), job, address(incarnation))


def form(*numbers: int, detail: str = "2 nodes are there") -> Form:
    nodes = [EpochNode(instance_id=f"i-{n}", address=f"10.0.0.{n}", incarnation=f"s-{n}") for n in numbers or (1, 2)]
    return Form(nodes=tuple(nodes), plan=JOB.plan, detail=detail)


def commit(store: Store, order: EpochOrder, step: int) -> None:
    """As the ranks of an epoch do."""
    checkpoints, nonce = JobLedger(store).checkpoints(JOB.job), order.record.nonce
    checkpoints.commit(manifest(step, nonce, write_part(checkpoints, step, nonce)))


class Failing:
    """A store whose answers are lost: the n-th request to write has happened, and nobody knows."""

    def __init__(self, store: Store, lose: int) -> None:
        self._store = store
        self._left = lose

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        done = self._store.put_if_absent(key, data)
        self._left -= 1
        if self._left == 0:
            raise Unreachable("the bucket does not answer")
        return done


def test_a_run_without_epochs_has_none_to_adopt(store: Store) -> None:
    assert epochs(store).adopt() is None


def test_numbers_are_claimed_in_order(store: Store) -> None:
    ours = epochs(store)

    orders = [ours.claim(form()), ours.claim(form(1)), ours.claim(form())]

    assert [order.record.number for order in orders] == [1, 2, 3]
    assert [(order.rendezvous_host, order.rendezvous_port, order.resume) for order in orders] == 3 * [
        ("10.0.0.1", 29400, False)
    ]
    assert store.list("jobs/first/epochs/") == [f"jobs/first/epochs/0000000{n}.json" for n in (1, 2, 3)]


def test_an_epoch_is_claimed_in_the_log_with_its_number(store: Store) -> None:
    order = epochs(store).claim(form())
    claims = JobLedger(store).checkpoints("first").claims()

    assert [(entry.nonce, entry.epoch) for entry in claims] == [(order.record.nonce, 1)]


def test_an_earlier_epoch_commits_no_more_once_the_next_is_claimed(store: Store) -> None:
    ours = epochs(store)
    first = ours.claim(form())
    commit(store, first, 10)
    second = ours.claim(form(1))

    with pytest.raises(Refused, match="the other one goes on"):
        commit(store, first, 20)
    commit(store, second, 20)

    assert [entry.step for entry in ours.commits()] == [10, 20]


def test_an_epoch_goes_on_from_what_is_committed(store: Store) -> None:
    ours = epochs(store)
    commit(store, ours.claim(form()), 10)
    order = ours.claim(form())

    assert (order.resume, order.from_step) == (True, None)


def test_a_run_from_an_older_step_goes_back_to_it_until_it_has_committed_itself(store: Store) -> None:
    first = epochs(store)
    order = first.claim(form())
    for step in (10, 20):
        commit(store, order, step)
    again = epochs(store, "c-2", JOB.model_copy(update={"run": 2, "resume": True, "from_step": 10}))
    again.adopt()

    orders = [again.claim(form()), again.claim(form())]
    commit(store, orders[-1], 15)
    orders.append(again.claim(form()))

    assert [(one.record.number, one.resume, one.from_step) for one in orders] == [
        (2, True, 10),
        (3, True, 10),
        (4, True, None),
    ]


def test_a_later_controller_adopts_the_newest_epoch(store: Store) -> None:
    ours = epochs(store)
    ours.claim(form())
    order = ours.claim(form(1))
    later = epochs(store, "c-2")

    assert later.adopt() == order
    assert later.claim(form()).record.number == 3


def test_a_later_controller_claims_in_the_log_what_its_predecessor_could_not(store: Store) -> None:
    with pytest.raises(Unreachable):
        epochs(Failing(store, lose=1)).claim(form())
    checkpoints = JobLedger(store).checkpoints("first")
    assert checkpoints.claims() == []

    order = epochs(store, "c-2").adopt()

    assert order is not None
    assert [(entry.nonce, entry.epoch) for entry in checkpoints.claims()] == [(order.record.nonce, 1)]


def test_a_run_adopts_no_epoch_of_the_run_before(store: Store) -> None:
    epochs(store).claim(form())
    next_run = epochs(store, "c-2", JOB.model_copy(update={"run": 2}))

    assert next_run.adopt() is None
    assert next_run.claim(form()).record.number == 2


def test_a_controller_of_a_run_that_is_over_is_refused(store: Store) -> None:
    ours = epochs(store)
    ours.adopt()
    epochs(store, "c-2", JOB.model_copy(update={"run": 2})).claim(form())

    with pytest.raises(Refused) as late:
        ours.claim(form())
    assert str(late.value) == (
        f"{store.uri}: controller must be the one of job first, got epoch 1 of run 2 by c-2 beside c-1; "
        "the other one goes on"
    )
    with pytest.raises(Refused):
        epochs(store, "c-3").adopt()


def test_a_controller_that_another_has_followed_is_refused(store: Store) -> None:
    ours = epochs(store)
    ours.claim(form())
    later = epochs(store, "c-2")
    later.adopt()
    later.claim(form(1))

    with pytest.raises(Refused, match="got epoch 2 of run 1 by c-2 beside c-1; the other one goes on"):
        ours.claim(form())


@pytest.mark.parametrize("lost", [1, 2])
def test_a_claim_whose_answer_was_lost_is_taken_up_again(store: Store, lost: int) -> None:
    ours = epochs(Failing(store, lost))
    with pytest.raises(Unreachable):
        ours.claim(form())

    order = ours.claim(form())

    assert order.record.number == 1
    assert [entry.epoch for entry in JobLedger(store).checkpoints("first").claims()] == [1]


@pytest.mark.parametrize("lost", [1, 2])
def test_when_other_nodes_are_wanted_after_a_lost_answer_the_next_number_is_claimed(store: Store, lost: int) -> None:
    ours = epochs(Failing(store, lost))
    with pytest.raises(Unreachable):
        ours.claim(form())

    order = ours.claim(form(1))

    assert (order.record.number, len(order.record.nodes)) == (2, 1)
    assert epochs(store, "c-2").adopt() == order


@pytest.mark.parametrize("trial", range(5))
def test_of_controllers_that_race_for_a_number_one_wins_and_the_others_are_refused(store: Store, trial: int) -> None:
    racers = [epochs(store, f"c-{number}") for number in range(4)]
    for racer in racers:
        racer.adopt()
    start = threading.Barrier(len(racers))

    def race(racer: Epochs) -> EpochOrder | None:
        start.wait()
        try:
            return racer.claim(form())
        except Refused:
            return None

    with ThreadPoolExecutor(len(racers)) as pool:
        won = [order for order in pool.map(race, racers) if order]

    assert len(won) == 1
    assert epochs(store, "c-9").adopt() == won[0]
    assert [entry.nonce for entry in JobLedger(store).checkpoints("first").claims()] == [won[0].record.nonce]
