"""What an error says about its rank: whose fault it is, and whether trying again can help."""

from __future__ import annotations

import re

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


def _detail(error: BaseException) -> str:
    if isinstance(error, TrainfabricError):
        return str(error)[:_LONGEST_DETAIL]
    return f"{type(error).__name__}: {str(error).partition(_CPP_FRAMES)[0]}"[:_LONGEST_DETAIL]


def _of_others(error: BaseException, rank: int) -> bool:
    if isinstance(error, Agreed):
        return error.rank != rank
    if isinstance(error, TrainfabricError):
        return False
    return isinstance(error, dist.DistNetworkError | dist.DistStoreError) or bool(_LOST.search(str(error)))


def _in_the_input(error: BaseException) -> bool:
    if isinstance(error, Agreed):
        return not error.passing
    return isinstance(error, TrainfabricError) and not isinstance(error, Unreachable)
