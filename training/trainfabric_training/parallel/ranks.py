"""What all processes of a run do together besides training: agree, and fail together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
import torch.distributed as dist

from trainfabric_plan.errors import TrainfabricError, Unreachable

T = TypeVar("T")


class Agreed(TrainfabricError):
    """An error of one rank that every rank raises at the same place, so that none waits for another.

    Attributes:
        rank: Which rank had it.
        passing: Whether it may go by itself, as when a service does not answer.
    """

    def __init__(self, message: str, *, rank: int, passing: bool) -> None:
        super().__init__(message)
        self.rank = rank
        self.passing = passing


@dataclass(frozen=True, kw_only=True)
class Ranks:
    """All processes of a run. Messages are small and travel on the CPU, through `group` if it is not the default."""

    rank: int = 0
    size: int = 1
    group: dist.ProcessGroup | None = None

    @property
    def first(self) -> bool:
        """Whether this is rank 0, which writes what is written once."""
        return self.rank == 0

    def everywhere(self, call: Callable[[], T]) -> list[T]:
        """Calls on every rank; the results of all, in the order of ranks.

        Raises:
            Agreed: On every rank if any of them raised a `TrainfabricError`; with the message of the first.
        """
        outcomes = self._gathered(_outcome(call))
        for rank, outcome in enumerate(outcomes):
            outcome.check(rank)
        return [outcome.value for outcome in outcomes]

    def each(self, call: Callable[[], T]) -> T:
        """Calls on every rank; its own result on each. Raises `Agreed` as `everywhere` does."""
        outcome = _outcome(call)
        for rank, one in enumerate(self._gathered(outcome.without_value())):
            one.check(rank)
        value: T = outcome.value
        return value

    def on_first(self, call: Callable[[], T]) -> T:
        """Calls on rank 0 alone; its result on every rank. Raises `Agreed` as `everywhere` does."""
        outcome = _outcome(call) if self.first else _Outcome()
        if self.size > 1:
            box = [outcome]
            dist.broadcast_object_list(box, src=0, group=self.group)
            outcome = box[0]
        outcome.check(0)
        value: T = outcome.value
        return value

    def highest(self, number: int) -> int:
        """The highest of the numbers of all ranks."""
        if self.size == 1:
            return number
        value = torch.tensor([number])
        dist.all_reduce(value, op=dist.ReduceOp.MAX, group=self.group)
        return int(value.item())

    def _gathered(self, outcome: _Outcome) -> list[_Outcome]:
        if self.size == 1:
            return [outcome]
        outcomes: list[Any] = [None] * self.size
        dist.all_gather_object(outcomes, outcome, group=self.group)
        return outcomes


@dataclass(frozen=True, kw_only=True)
class _Outcome:
    value: Any = None
    error: str | None = None
    passing: bool = False

    def check(self, rank: int) -> None:
        """Raises the error of this rank's call, if it had one."""
        if self.error is not None:
            raise Agreed(self.error, rank=rank, passing=self.passing)

    def without_value(self) -> _Outcome:
        """Whether it went well."""
        return _Outcome(error=self.error, passing=self.passing)


def _outcome(call: Callable[[], Any]) -> _Outcome:
    """Errors travel as text: exceptions whose constructors take other arguments than their text do not pickle."""
    try:
        return _Outcome(value=call())
    except TrainfabricError as error:
        return _Outcome(error=str(error), passing=isinstance(error, Unreachable))
