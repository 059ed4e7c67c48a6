"""The command `python -m trainfabric_training`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import NoReturn

import torch

from trainfabric_plan.contract import ExitStatus
from trainfabric_plan.errors import TrainfabricError
from trainfabric_training.arguments import Request, read_request
from trainfabric_training.engine.processes import choose_device, disconnect, joined
from trainfabric_training.failure import end_by
from trainfabric_training.parallel import Agreed, Ranks
from trainfabric_training.settings import RankSettings, export, read_settings
from trainfabric_training.telemetry import End, RankFiles
from trainfabric_training.trainer import train


def run(
    arguments: Sequence[str] | None = None,
    *,
    store_prefix: str | None = None,
    on_failure: Callable[[int, Exception], object] = lambda status, error: None,
) -> int:
    """Runs the command in this rank; returns its exit status.

    Args:
        arguments: The command line; that of the process if `None`.
        store_prefix: Of this run's keys, where the store of the ranks serves several runs.
        on_failure: Called with the exit status and the error of a rank that fails, as soon as it has said so. To end
            the process there spares it to take connections down, which may wait for ranks that are gone.
    """
    settings = RankSettings()
    try:
        settings = read_settings()
        request = read_request(sys.argv[1:] if arguments is None else arguments, settings.world_size)
        device = choose_device(request.device, settings)
    except TrainfabricError as error:
        _say(error, aloud=settings.local_rank == 0)
        on_failure(ExitStatus.USER_ERROR, error)
        return ExitStatus.USER_ERROR
    export(settings, cpu=device.type == "cpu")
    settings = settings if store_prefix is None else settings.in_store(store_prefix)
    with RankFiles(request.rank_files, settings.rank, request.beat_s) as files:
        try:
            return _run(request, settings, device, files)
        except Exception as error:
            status = _failed(error, settings, files)
            on_failure(status, error)
            disconnect()
            if status == ExitStatus.FAILED:
                raise
            return status


def _run(request: Request, settings: RankSettings, device: torch.device, files: RankFiles) -> int:
    with nullcontext(Ranks()) if request.reference else joined(settings, device) as ranks:
        stopped = train(request, ranks, device, files)
    files.phase("done")
    files.end(End(status="resume" if stopped else "done", step=files.last_step))
    return ExitStatus.RESUME if stopped else ExitStatus.DONE


def _failed(error: Exception, settings: RankSettings, files: RankFiles) -> int:
    """Says why a rank fails: what all ranks know is said by rank 0, what one knows by that one."""
    files.end(end_by(error, rank=settings.rank, step=files.last_step))
    if not isinstance(error, TrainfabricError):
        sys.excepthook(type(error), error, error.__traceback__)
        return ExitStatus.FAILED
    _say(error, aloud=settings.rank == 0 or not isinstance(error, Agreed))
    return ExitStatus.USER_ERROR


def _say(error: TrainfabricError, *, aloud: bool) -> None:
    if aloud:
        print(error, file=sys.stderr, flush=True)


def leave(status: int, _: object = None) -> NoReturn:
    """End this process without tearing libraries down.

    DeepSpeed keeps references to process groups, whose threads gloo's destructors meet while the interpreter goes:
    now and then a rank whose run was done and recorded ended with "terminate called without an active exception".
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    leave(run(on_failure=leave))
