"""The ranks of a node as its supervisor sees them: who moves, who has stopped moving."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from trainfabric_node.agent.files import EpochFiles, RankBeat, RankEnd
from trainfabric_node.agent.procfs import GONE, STOPPED, process_state
from trainfabric_node.membership.timing import Timing

_LONGEST_LOOK_S = 1.0


@dataclass(frozen=True, kw_only=True)
class RankSight:
    """What is seen of one rank at one time.

    Attributes:
        rank: Global rank.
        beat: What it last said.
        process: State of its process (`procfs.process_state`), `None` before its first word.
        end: Its last word, read after the state.
    """

    rank: int
    beat: RankBeat | None = None
    process: str | None = None
    end: RankEnd | None = None

    @property
    def lost(self) -> bool:
        """Whether it has ended without a last word."""
        return self.end is None and self.process is not None and self.process in GONE

    @property
    def alive(self) -> bool:
        """Whether it is there, and has not said its last word."""
        return self.end is None and self.process is not None and not self.lost


def see(files: EpochFiles, ranks: Iterable[int]) -> list[RankSight]:
    """Looks at each rank. The last word is read last: a process that was gone before has said what it would say."""
    sights = []
    for rank in ranks:
        beat = files.beat(rank)
        process = None if beat is None else process_state(beat.pid)
        sights.append(RankSight(rank=rank, beat=beat, process=process, end=files.end(rank)))
    return sights


def steps(sights: Iterable[RankSight]) -> int:
    """The highest step that any of the ranks has finished."""
    said = (one.end.step if one.end else one.beat.step if one.beat else 0 for one in sights)
    return max(said, default=0)


@dataclass(frozen=True, kw_only=True)
class Standstill:
    """Ranks that have stopped moving.

    Attributes:
        ranks: Which, each with what is known about it.
        detail: What is wrong with them together.
    """

    ranks: dict[int, str]
    detail: str


class RankWatch:
    """Notices ranks that have stopped moving; pure, with times in seconds of one clock.

    One that is silent while others of the node are heard, or whose process is stopped, has stopped by itself. Without
    any step for long, all are stuck, for whatever reason.
    """

    def __init__(self, timing: Timing, now: float) -> None:
        self._timing = timing
        self._looked = now
        self._moved = now
        self._progress: dict[int, tuple[str, int]] = {}
        self._beats: dict[int, float] = {}
        self._heard: dict[int, float] = {}
        self._longest_look_s = max(_LONGEST_LOOK_S, 4 * timing.look_s)

    def look(self, sights: Sequence[RankSight], now: float) -> Standstill | None:
        """Takes in what is seen now; what stands still, if anything does."""
        self._forgive_own_absence(now)
        for one in sights:
            self._hear(one, now)
        stalled = {one.rank: self._silence(one, now) for one in sights if self._has_stalled(one, now)}
        if stalled:
            return Standstill(ranks=stalled, detail="; ".join(f"rank {rank} {why}" for rank, why in stalled.items()))
        return self._stuck(sights, now)

    def _forgive_own_absence(self, now: float) -> None:
        """Time in which nobody looked, because the node or the supervisor stood still, is nobody's silence."""
        absent = now - self._looked
        self._looked = now
        if absent > self._longest_look_s:
            self._moved += absent
            self._heard = {rank: heard + absent for rank, heard in self._heard.items()}

    def _hear(self, one: RankSight, now: float) -> None:
        if one.beat is None:
            return
        if self._beats.get(one.rank) != one.beat.beat:
            self._beats[one.rank], self._heard[one.rank] = one.beat.beat, now
        progress = (one.beat.phase, one.beat.step)
        if self._progress.get(one.rank) != progress:
            self._progress[one.rank], self._moved = progress, now

    def _has_stalled(self, one: RankSight, now: float) -> bool:
        limit = self._timing.rank_stalled_s
        if not one.alive or now - self._heard[one.rank] <= limit:
            return False
        others = (heard for rank, heard in self._heard.items() if rank != one.rank)
        return one.process in tuple(STOPPED) or any(now - heard < limit / 2 for heard in others)

    def _silence(self, one: RankSight, now: float) -> str:
        stopped = ", its process is stopped" if one.process in tuple(STOPPED) else ""
        return f"has not been heard for {now - self._heard[one.rank]:.1f} s{stopped}"

    def _stuck(self, sights: Sequence[RankSight], now: float) -> Standstill | None:
        limit = self._timing.step_stalled_s
        if now - self._moved <= limit or all(one.end for one in sights):
            return None
        waiting = {one.rank: self._last_seen(one) for one in sights if one.end is None}
        return Standstill(ranks=waiting, detail=f"no rank has made a step for {limit:g} s")

    def _last_seen(self, one: RankSight) -> str:
        if one.beat is None:
            return "has said nothing yet"
        return f"is in phase {one.beat.phase} after step {one.beat.step}"
