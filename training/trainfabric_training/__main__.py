"""The command `python -m trainfabric_training`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from typing import NoReturn

from trainfabric_plan.contract import ExitStatus
from trainfabric_plan.errors import TrainfabricError
from trainfabric_training.arguments import read_request
from trainfabric_training.engine.processes import choose_device, joined
from trainfabric_training.parallel import Agreed, Ranks
from trainfabric_training.settings import RankSettings, export, read_settings
from trainfabric_training.trainer import train


def run(arguments: Sequence[str] | None = None) -> int:
    """Runs the command in this rank; returns its exit status.

    What all ranks know is said by rank 0, what a node knows by its first rank, and what one rank knows by that one.
    """
    settings = RankSettings()
    try:
        settings = read_settings()
        request = read_request(sys.argv[1:] if arguments is None else arguments, settings.world_size)
        device = choose_device(request.device, settings)
    except TrainfabricError as error:
        return _refused(error, aloud=settings.local_rank == 0)
    export(settings, cpu=device.type == "cpu")
    try:
        with nullcontext(Ranks()) if request.reference else joined(settings, device) as ranks:
            train(request, ranks, device)
    except Agreed as error:
        return _refused(error, aloud=settings.rank == 0)
    except TrainfabricError as error:
        return _refused(error, aloud=True)
    return ExitStatus.DONE


def _refused(error: TrainfabricError, *, aloud: bool) -> int:
    if aloud:
        print(error, file=sys.stderr, flush=True)
    return ExitStatus.USER_ERROR


def leave(status: int) -> NoReturn:
    """End this process without tearing libraries down.

    DeepSpeed keeps references to process groups, whose threads gloo's destructors meet while the interpreter goes:
    now and then a rank whose run was done and recorded ended with "terminate called without an active exception".
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    leave(run())
