from __future__ import annotations

import pytest

from trainfabric_node.agent.files import RankBeat, RankEnd
from trainfabric_node.agent.ranks import RankSight, RankWatch, Standstill, steps
from trainfabric_node.membership.timing import FAST, PRODUCTION, Timing


class Watched:
    """Two ranks and a watch that looks at them as often as a supervisor does."""

    def __init__(self, timing: Timing = FAST, ranks: int = 2) -> None:
        self.timing = timing
        self.now = 1000.0
        self.watch = RankWatch(timing, self.now)
        self.silent: set[int] = set()
        self.states = dict.fromkeys(range(ranks), "S")
        self.ends: dict[int, RankEnd] = {}
        self.said = dict.fromkeys(range(ranks), 0.0)
        self.step = 0

    def look(self) -> Standstill | None:
        for rank in set(self.said) - self.silent:
            self.said[rank] = self.now
        beats = {
            rank: RankBeat(rank=rank, pid=1, step=self.step, phase="train", beat=beat)
            for rank, beat in self.said.items()
        }
        sights = [
            RankSight(rank=rank, beat=beats[rank], process=self.states[rank], end=self.ends.get(rank)) for rank in beats
        ]
        return self.watch.look(sights, self.now)

    def run(self, seconds: float, *, stepping: bool = True) -> Standstill | None:
        """Looks again and again; the first standstill."""
        until = self.now + seconds
        while self.now < until:
            self.now += self.timing.look_s
            self.step += int(stepping)
            found = self.look()
            if found:
                return found
        return None


def test_ranks_that_move_are_left_alone() -> None:
    assert Watched().run(100.0) is None


def test_a_rank_that_is_silent_while_another_is_heard_has_stopped() -> None:
    watched = Watched()
    watched.run(1.0)

    watched.silent = {1}

    found = watched.run(10.0)
    assert found is not None
    assert found.detail == "rank 1 has not been heard for 3.0 s"
    assert found.ranks == {1: "has not been heard for 3.0 s"}


def test_a_silence_that_ends_in_time_is_borne() -> None:
    watched = Watched()
    watched.silent = {1}
    before = watched.run(2.5)

    watched.silent = set()

    assert (before, watched.run(10.0)) == (None, None)


def test_the_production_profile_bears_ten_seconds() -> None:
    watched = Watched(PRODUCTION)
    watched.run(5.0)

    watched.silent = {1}

    assert watched.run(30.0) is None
    assert watched.run(40.0) is not None


def test_ranks_that_are_all_silent_are_not_blamed_for_a_node_that_is_slow() -> None:
    watched = Watched()
    watched.run(1.0)

    watched.silent = {0, 1}

    assert watched.run(30.0) is None


@pytest.mark.parametrize("state", ["T", "t"])
def test_a_silent_rank_whose_process_is_stopped_has_stopped_whoever_else_is_heard(state: str) -> None:
    watched = Watched(ranks=1)
    watched.run(1.0)

    watched.silent, watched.states[0] = {0}, state

    found = watched.run(10.0)
    assert found is not None
    assert found.detail == "rank 0 has not been heard for 3.0 s, its process is stopped"


def test_a_rank_that_has_ended_or_is_gone_has_not_stopped() -> None:
    for states, ends in (({0: "S", 1: "S"}, {1: RankEnd(status="resume")}), ({0: "S", 1: "X"}, {})):
        watched = Watched()
        watched.run(1.0)
        watched.silent, watched.states, watched.ends = {1}, states, ends

        assert watched.run(10.0) is None


def test_time_in_which_the_supervisor_did_not_look_is_nobodys_silence() -> None:
    watched = Watched()
    watched.run(1.0)

    watched.now += 60.0
    watched.silent = {1}

    assert watched.run(2.5) is None
    assert watched.run(1.0) is not None


def test_ranks_that_make_no_step_for_long_are_stuck() -> None:
    watched = Watched()
    watched.run(1.0)

    found = watched.run(100.0, stepping=False)

    assert found is not None
    assert found.detail == "no rank has made a step for 60 s"
    assert found.ranks == {
        0: f"is in phase train after step {watched.step}",
        1: f"is in phase train after step {watched.step}",
    }


def test_time_in_which_the_supervisor_did_not_look_is_no_time_without_steps() -> None:
    watched = Watched()
    watched.run(50.0, stepping=False)

    watched.now += 600.0

    assert watched.run(5.0, stepping=False) is None


def test_an_epoch_whose_ranks_never_say_anything_is_stuck() -> None:
    watch = RankWatch(FAST, 0.0)
    sights = [RankSight(rank=4), RankSight(rank=5)]

    found = next(found for look in range(10_000) if (found := watch.look(sights, look * FAST.look_s)))

    assert found.ranks == {4: "has said nothing yet", 5: "has said nothing yet"}


def test_the_highest_step_of_a_node_is_that_of_its_fastest_rank() -> None:
    beat = RankBeat(rank=0, pid=1, step=7, phase="train", beat=0.0)
    end = RankEnd(status="resume", step=8)

    assert steps([]) == 0
    assert steps([RankSight(rank=0, beat=beat), RankSight(rank=1)]) == 7
    assert steps([RankSight(rank=0, beat=beat, end=end), RankSight(rank=1, beat=beat)]) == 8
