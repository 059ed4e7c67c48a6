"""What an error says about its rank: whose fault it is, and whether trying again can help."""

from __future__ import annotations

import re
import signal

import torch.distributed as dist

from trainfabric_plan.errors import TrainfabricError, Unreachable
from trainfabric_training.parallel import Agreed
from trainfabric_training.telemetry import End

_LONGEST_DETAIL = 2000
_CPP_FRAMES = "\nException raised from "

_LOST = re.compile(
    r"Connection (?:reset|closed|refused|aborted)|Connection was likely closed|Broken pipe|remote process exited"
    r"|Socket (?:closed|Timeout)|failed to recv|connectFullMesh failed|[Tt]imed out waiting|[Ww]ait timeout"
    r"|ncclRemoteError|[Ww]atchdog caught collective operation timeout"
)
"""What ranks say when others are gone, or wait for one that does not move (torch 2.13 with gloo and NCCL)."""


class NodeFault(TrainfabricError):
    """Something is wrong with this node and not with what was asked for: on another node it may go well."""


class NoStore(Unreachable):
    """The store in which the ranks of all nodes meet does not answer."""


def end_by(error: BaseException, *, rank: int, step: int) -> End:
    """The last word of a rank that failed.

    Args:
        error: What it failed with.
        rank: Which it is.
        step: The last step that it finished; what is wrong in the input shows before the first.
    """
    return End(
        status="failed",
        detail=_detail(error),
        of_others=_of_others(error, rank),
        hopeless=step == 0 and _in_the_input(error),
        step=step,
    )


def end_without_word(rank: int, process: int, status: int | None, *, first: int, printed: str) -> End:
    """The last word for a rank that left none.

    The agent ends those that are left with SIGTERM: any other end came first. NCCL's watchdog ends its process with
    SIGABRT, which other things do as well: that others are the reason is believed where the rank has printed so.

    Args:
        rank: Which it is.
        process: Its process id.
        status: Its exit status, negative if a signal ended it; `None` if it is not known.
        first: The rank of this node whose end the agent saw first.
        printed: What the ranks of this node have printed.
    """
    if status in (None, -signal.SIGTERM) and rank != first:
        return End(status="failed", detail=f"ended because rank {first} of this node failed", of_others=True)
    how = f"left with status {status}"
    if status is not None and status < 0:
        how = f"was ended by {signal.Signals(-status).name}"
    lost = _lost_others(rank, printed) if status == -signal.SIGABRT else ""
    detail = f"rank {rank} (process {process}) {how}{f': {lost}' if lost else ''}"
    return End(status="failed", detail=detail[:_LONGEST_DETAIL], of_others=bool(lost))


def _lost_others(rank: int, printed: str) -> str:
    """The line in which NCCL's watchdog of this rank says that others are gone or do not answer; empty if none."""
    own = re.compile(rf"\bRank {rank}\]")
    lines = (line.strip() for line in printed.splitlines() if own.search(line) and _LOST.search(line))
    return next(lines, "")


def _detail(error: BaseException) -> str:
    if isinstance(error, TrainfabricError):
        return str(error)[:_LONGEST_DETAIL]
    return f"{type(error).__name__}: {str(error).partition(_CPP_FRAMES)[0]}"[:_LONGEST_DETAIL]


def _of_others(error: BaseException, rank: int) -> bool:
    if isinstance(error, Agreed):
        return error.rank != rank
    if isinstance(error, TrainfabricError):
        return isinstance(error, NoStore)
    return isinstance(error, dist.DistNetworkError | dist.DistStoreError) or bool(_LOST.search(str(error)))


def _in_the_input(error: BaseException) -> bool:
    if isinstance(error, Agreed):
        return not error.passing
    return isinstance(error, TrainfabricError) and not isinstance(error, NodeFault | Unreachable)
