from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.node.supervisor.processes import until
from trainfabric_node.agent.lease import Lease, LeaseKeeper


@contextmanager
def _running(keeper: LeaseKeeper) -> Iterator[None]:
    thread = threading.Thread(target=keeper.run)
    thread.start()
    try:
        yield
    finally:
        keeper.stop()
        thread.join(5)
        assert not thread.is_alive()


def test_a_lease_lasts_from_when_the_beat_was_said_not_from_its_answer() -> None:
    lease = Lease(6.0)

    lease.renew(said=100.0)

    assert (lease.left(101.0), lease.left(106.0), lease.left(107.0)) == (5.0, 0.0, -1.0)


def test_an_answer_that_was_overtaken_takes_nothing_away() -> None:
    lease = Lease(6.0)
    lease.renew(said=100.0)

    lease.renew(said=99.0)

    assert lease.left(100.0) == 6.0


def test_there_is_no_lease_before_the_first_answer() -> None:
    assert Lease(6.0).left(0.0) == float("-inf")


def test_what_was_never_held_is_not_lost() -> None:
    lost: list[float] = []

    with _running(LeaseKeeper(0.05, lambda: lost.append(time.monotonic()))):
        time.sleep(0.2)

    assert lost == []


def test_a_lease_is_lost_once_for_each_time_that_it_was_held() -> None:
    lost: list[float] = []
    keeper = LeaseKeeper(0.1, lambda: lost.append(time.monotonic()))

    with _running(keeper):
        first = time.monotonic()
        keeper.renew(first)
        until(lambda: len(lost) == 1)
        time.sleep(0.2)
        second = time.monotonic()
        keeper.renew(second)
        until(lambda: len(lost) == 2)

    assert lost[0] - first >= 0.1
    assert lost[1] - second >= 0.1
    assert len(lost) == 2


def test_a_lease_that_is_renewed_is_not_lost() -> None:
    lost: list[float] = []
    keeper = LeaseKeeper(0.5, lambda: lost.append(time.monotonic()))

    with _running(keeper):
        for _ in range(10):
            keeper.renew(time.monotonic())
            time.sleep(0.1)

    assert lost == []


def test_an_answer_to_a_beat_of_long_ago_gives_no_lease() -> None:
    lost: list[float] = []
    keeper = LeaseKeeper(1.0, lambda: lost.append(time.monotonic()))

    with _running(keeper):
        keeper.renew(time.monotonic() - 5.0)
        time.sleep(0.1)

    assert lost == []
