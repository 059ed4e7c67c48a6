from __future__ import annotations

from typing import Any

import pytest

from trainfabric_node.agent.files import RankBeat, RankEnd
from trainfabric_node.agent.ranks import RankSight
from trainfabric_node.agent.verdict import Verdict, first_lost, judge

DONE, RESUME = RankEnd(status="done"), RankEnd(status="resume")
OF_OTHERS = RankEnd(status="failed", detail="Connection reset by peer", of_others=True)
OWN = RankEnd(status="failed", detail="loss must be finite, got nan")


def alive(rank: int) -> RankSight:
    return RankSight(rank=rank, beat=RankBeat(rank=rank, pid=1, step=3, phase="train", beat=0.0), process="S")


def lost(rank: int) -> RankSight:
    return RankSight(rank=rank, beat=RankBeat(rank=rank, pid=1, step=3, phase="train", beat=0.0), process="Z")


def ended(rank: int, end: RankEnd) -> RankSight:
    return RankSight(rank=rank, beat=RankBeat(rank=rank, pid=1, step=3, phase="done", beat=0.0), process="X", end=end)


def judged(*sights: RankSight, **more: Any) -> Verdict | None:
    given: dict[str, Any] = {"first": first_lost(sights), "status": None, "printed": "", "alone": False}
    return judge(sights, **{**given, **more})


def test_ranks_that_run_or_have_said_nothing_yet_have_not_ended() -> None:
    assert judged(alive(0), alive(1)) is None
    assert judged(RankSight(rank=0), alive(1)) is None


@pytest.mark.parametrize(("end", "state"), [(DONE, "done"), (RESUME, "resume")])
def test_ranks_that_all_leave_in_order_end_the_epoch_so(end: RankEnd, state: str) -> None:
    assert judged(ended(0, end), alive(1)) is None
    assert judged(ended(0, end), ended(1, end)) == Verdict(state=state)  # type: ignore[arg-type]


def test_a_rank_that_left_with_others_but_could_not_say_so_left_in_order() -> None:
    assert judged(ended(0, RESUME), lost(1)) == Verdict(state="resume")
    assert judged(ended(0, RESUME), RankSight(rank=1), status=75) == Verdict(state="resume")


def test_a_rank_that_failed_fails_the_node_whatever_the_others_do() -> None:
    assert judged(alive(0), ended(1, OWN)) == Verdict(state="failed", detail="rank 1: loss must be finite, got nan")
    assert judged(ended(0, RESUME), ended(1, OWN)) is not None


def test_the_reasons_of_all_ranks_that_have_their_own_are_told() -> None:
    hopeless = RankEnd(status="failed", detail="part 3 must exist", hopeless=True)

    assert judged(ended(0, OF_OTHERS), ended(1, OWN), ended(2, hopeless)) == Verdict(
        state="failed", detail="rank 1: loss must be finite, got nan\nrank 2: part 3 must exist", hopeless=True
    )


def test_a_node_whose_ranks_only_lost_others_has_no_reason_of_its_own() -> None:
    assert judged(ended(0, OF_OTHERS), alive(1)) == Verdict(
        state="failed", detail="rank 0: Connection reset by peer", of_others=True
    )


def test_a_rank_that_is_gone_without_a_word_is_told_of_at_once() -> None:
    assert judged(alive(0), lost(1)) == Verdict(state="failed", detail="rank 1 is gone without a word")
    assert judged(lost(0), lost(1), lost(2)) == Verdict(
        state="failed", detail="rank 0 is gone without a word, and 2 more with it"
    )


def test_a_rank_that_is_gone_is_the_reason_of_those_that_lost_it() -> None:
    sights = [lost(0), alive(1)]
    first = first_lost(sights)

    assert first == [0]
    assert judged(lost(0), ended(1, OF_OTHERS), first=first) == Verdict(
        state="failed", detail="rank 0 is gone without a word"
    )


def test_a_rank_that_is_gone_after_another_had_failed_was_ended_because_of_it() -> None:
    assert first_lost([ended(0, OF_OTHERS), lost(1)]) == []
    assert judged(ended(0, OF_OTHERS), lost(1)) == Verdict(
        state="failed", detail="rank 0: Connection reset by peer", of_others=True
    )


def test_what_the_agent_says_of_a_rank_that_could_not_is_not_said_twice() -> None:
    told = RankEnd(status="failed", detail="rank 1 (process 77) was ended by SIGKILL")

    assert judged(ended(0, OF_OTHERS), ended(1, told), first=[1]) == Verdict(
        state="failed", detail="rank 1 (process 77) was ended by SIGKILL"
    )


def test_a_rank_that_gave_no_reason_is_named_all_the_same() -> None:
    assert judged(ended(1, RankEnd(status="failed"))) == Verdict(state="failed", detail="rank 1: gave no reason")


@pytest.mark.parametrize(
    ("status", "printed", "verdict"),
    [
        (-9, "", Verdict(state="failed", detail="the agent of the ranks was ended by SIGKILL")),
        (
            1,
            "ImportError: no module named x\n",
            Verdict(state="failed", detail="the agent of the ranks left with status 1: ImportError: no module named x"),
        ),
        (
            2,
            "--data must exist\n",
            Verdict(
                state="failed",
                detail="the agent of the ranks left with status 2: --data must exist",
                hopeless=True,
            ),
        ),
        (0, "", Verdict(state="failed", detail="the agent of the ranks left with status 0")),
        (
            1,
            "E1130 18:18:40.619000 14867 torch/distributed/elastic/x.py:1] Connection reset by peer\n",
            Verdict(state="failed", detail="the agent of the ranks left with status 1", of_others=True),
        ),
    ],
)
def test_an_agent_that_ends_before_any_rank_has_said_anything_is_the_reason(
    status: int, printed: str, verdict: Verdict
) -> None:
    assert judged(lost(0), lost(1), status=status, printed=printed) == verdict


def test_nobody_else_is_the_reason_on_a_fleet_of_one_node() -> None:
    verdict = judged(lost(0), status=1, printed="torch/distributed/elastic/ Connection reset by peer", alone=True)

    assert verdict is not None
    assert not verdict.of_others
