"""How an epoch has ended on a node: from what its ranks said, or did not, and how their processes ended."""

from __future__ import annotations

import signal
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from trainfabric_node.agent.failure import is_of_others, why_it_failed
from trainfabric_node.agent.files import RankEnd
from trainfabric_node.agent.ranks import RankSight
from trainfabric_plan.contract import ExitStatus


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """How an epoch has ended on a node.

    Attributes:
        state: See `protocol.EpochState`.
        detail: Why, if it failed.
        hopeless: Whether trying again cannot help.
        of_others: Whether ranks elsewhere are the reason.
    """

    state: Literal["resume", "done", "failed"]
    detail: str = ""
    hopeless: bool = False
    of_others: bool = False


def first_lost(sights: Sequence[RankSight]) -> list[int]:
    """Ranks that are gone without a word while no other has failed: torch elastic ends the others after a failure."""
    failed = any(one.end and one.end.status == "failed" for one in sights)
    return [] if failed else [one.rank for one in sights if one.lost]


def judge(
    sights: Sequence[RankSight], first: Collection[int], status: int | None, printed: str, *, alone: bool
) -> Verdict | None:
    """How the epoch has ended on this node; `None` while it has not.

    What is judged from processes alone is preliminary: the agent of the epoch writes the last word of ranks that could
    not, and tells by it which of them began.

    Args:
        sights: Its ranks.
        first: Those that were gone without a word before any other failed.
        status: Exit status of the epoch's agent, negative if by a signal; `None` while it is there.
        printed: What the ranks and the agent have printed, once that has ended.
        alone: Whether it is the only node, so that no other can be the reason.
    """
    failed = {one.rank: one.end for one in sights if one.end and one.end.status == "failed"}
    left = {one.end.status for one in sights if one.end}
    lost = [one.rank for one in sights if one.lost]
    if failed:
        return _of_last_words(failed, [rank for rank in lost if rank in first])
    if left:
        # all ranks agree before any leaves, and the checkpoint is committed: a rank without a last word left as well
        over = status is not None or all(one.end or one.lost for one in sights)
        return Verdict(state="resume" if "resume" in left else "done") if over else None
    if status is not None:
        return _of_agent(status, printed, alone=alone)
    return Verdict(state="failed", detail=_gone(lost)) if lost else None


def _of_last_words(failed: dict[int, RankEnd], lost: Sequence[int]) -> Verdict:
    own = {rank: end for rank, end in failed.items() if not end.of_others}
    if not own and not lost:
        rank, end = next(iter(failed.items()))
        return Verdict(state="failed", detail=_said(rank, end), of_others=True)
    parts = [*([_gone(lost)] if lost else []), *(_said(rank, end) for rank, end in own.items())]
    return Verdict(state="failed", detail="\n".join(parts), hopeless=any(end.hopeless for end in own.values()))


def _said(rank: int, end: RankEnd) -> str:
    detail = end.detail or "gave no reason"
    return detail if detail.startswith(f"rank {rank} ") else f"rank {rank}: {detail}"


def _gone(lost: Sequence[int]) -> str:
    more = f", and {len(lost) - 1} more with it" if len(lost) > 1 else ""
    return f"rank {lost[0]} is gone without a word{more}"


def _of_agent(status: int, printed: str, *, alone: bool) -> Verdict:
    reason = why_it_failed(printed)
    return Verdict(
        state="failed",
        detail=f"the agent of the ranks {_how(status)}{f': {reason}' if reason else ''}",
        hopeless=status == ExitStatus.USER_ERROR,
        of_others=status >= 0 and not alone and is_of_others(printed),
    )


def _how(status: int) -> str:
    return f"was ended by {signal.Signals(-status).name}" if status < 0 else f"left with status {status}"
