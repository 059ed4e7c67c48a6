"""A training run, from the request to its result; reads top to bottom."""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import IntEnum
from pathlib import Path
from typing import Any

import torch

from trainfabric_node.checkpoint import CheckpointStore, LogEntry
from trainfabric_node.store import open_store
from trainfabric_plan.errors import NotFound, Refused
from trainfabric_training.arguments import Request
from trainfabric_training.data import open_corpus, sample_index
from trainfabric_training.engine import Engine, distributed_engine, reference_engine
from trainfabric_training.engine.keeper import Keeper
from trainfabric_training.feed import Feed
from trainfabric_training.parallel import Mesh, Ranks
from trainfabric_training.telemetry import Progress, RankFiles, Records, StepRecord


def train(request: Request, ranks: Ranks, device: torch.device, files: RankFiles) -> bool:
    """Runs what was asked for; every rank calls it. Whether it was stopped before the last step, to be resumed.

    Raises:
        TrainfabricError: If something in the input is wrong; `Agreed` if all ranks know.
    """
    mesh = Mesh.of_world(request.layout, ranks.rank)
    records = Records(request.output, active=ranks.first, progress=Progress(request.recipe.steps))
    checkpoints = None if request.checkpoints is None else CheckpointStore(open_store(request.checkpoints))
    start = ranks.on_first(lambda: chosen_start(request, checkpoints, records))
    feed = ranks.each(lambda: open_feed(request, mesh))
    records.event("start", **description(request, ranks, device))

    engine: Engine
    keeper = None
    if request.reference:
        engine = reference_engine(request.recipe, device)
    else:
        engine = distributed = distributed_engine(request.recipe, mesh, ranks, device)
        if checkpoints is not None:
            keeper = Keeper(distributed, checkpoints, ranks, records, job=request.job, nonce=request.nonce)
            if request.nonce is None:
                keeper.claim()
                start = ranks.on_first(lambda: chosen_start(request, checkpoints, records))
            if start is not None:
                files.phase("restore")
                keeper.restore(start)

    first = 1 if start is None else start.step + 1
    stopped, step = take_steps(request, ranks, engine, feed, records, files, keeper, first)
    ranks.on_first(lambda: conclude(records, step, stopped=stopped))
    return stopped


def conclude(records: Records, step: int, *, stopped: bool) -> None:
    """Writes how the run ended. No rank leaves before: torchrun ends the others when one leaves with a status."""
    records.event("stop" if stopped else "done", step=step)
    records.result("stopped" if stopped else "done", step)


def take_steps(
    request: Request,
    ranks: Ranks,
    engine: Engine,
    feed: Feed,
    records: Records,
    files: RankFiles,
    keeper: Keeper | None,
    first: int,
) -> tuple[bool, int]:
    """Steps from `first` on, with checkpoints; whether it was stopped before the last, and the step reached."""
    recipe = request.recipe
    asked_to_stop = stopping(request, ranks)
    files.phase("train")
    for step in range(first, recipe.steps + 1):
        began = time.perf_counter()
        outcome = engine.train_step(feed.micro_batches(step))
        records.step(
            StepRecord(
                step=step,
                loss=outcome.loss,
                grad_norm=outcome.grad_norm,
                tokens=recipe.global_batch * recipe.model.sequence_length,
                seconds=time.perf_counter() - began,
                learning_rate=outcome.learning_rate,
            )
        )
        files.step(step)
        last, stop = step == recipe.steps, asked_to_stop(step)
        due = last or step % recipe.checkpoint_every == 0
        if keeper is not None and (due or stop is Stop.NOW):
            files.phase("save")
            keeper.save(step)
            files.phase("train")
        if not last and (stop is Stop.NOW or (due and stop is Stop.AT_CHECKPOINT)):
            return True, step
    return False, max(recipe.steps, first - 1)


class Stop(IntEnum):
    """Whether to stop, and when; of several answers the highest counts."""

    NO = 0
    AT_CHECKPOINT = 1
    NOW = 2


def stopping(request: Request, ranks: Ranks) -> Callable[[int], Stop]:
    """Whether to stop after a step; all ranks answer alike, whichever of them sees the flag first."""
    flag = request.stop_flag

    def asked_for(step: int) -> Stop:
        seen = Stop.NO if flag is None else Stop(ranks.highest(flagged(flag)))
        return Stop.NOW if step == request.stop_after_step else seen

    return asked_for


def flagged(flag: Path) -> Stop:
    """What the flag of this node says."""
    try:
        words = flag.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Stop.NO
    return Stop.AT_CHECKPOINT if words.strip() == "checkpoint" else Stop.NOW


def chosen_start(request: Request, checkpoints: CheckpointStore | None, records: Records) -> LogEntry | None:
    """The commit to go on from, with the records made ready for it."""
    start = None if checkpoints is None else starting_commit(request, checkpoints)
    if request.nonce is not None:
        records.begin_epoch()
    else:
        records.begin(None if start is None else start.step)
    return start


def starting_commit(request: Request, checkpoints: CheckpointStore) -> LogEntry | None:
    """The commit to go on from, `None` to start anew; never one silently for the other.

    Raises:
        NotFound: If there is nothing to resume.
        Refused: If a run that starts anew would write behind another's checkpoints.
    """
    newest = checkpoints.newest()
    if request.resume and newest is None:
        remedy = "correct --checkpoints, or start anew without --resume"
        raise NotFound(f"{checkpoints.uri}: --resume must find a committed checkpoint, got none; {remedy}")
    if newest is not None and not request.resume:
        remedy = "go on with --resume, or give --checkpoints of a new job"
        raise Refused(f"{checkpoints.uri}: checkpoints must be new ones, got a commit of step {newest.step}; {remedy}")
    return newest if request.from_step is None else checkpoints.at_step(request.from_step)


def open_feed(request: Request, mesh: Mesh) -> Feed:
    """The corpus, in the order that the recipe's seed gives."""
    model = request.recipe.model
    corpus = open_corpus(request.data, model.sequence_length, request.cache, model.vocabulary)
    return Feed(samples=corpus, order=sample_index, recipe=request.recipe, mesh=mesh)


def description(request: Request, ranks: Ranks, device: torch.device) -> dict[str, Any]:
    """What runs, for the record."""
    return {
        "recipe": request.recipe.name,
        "layout": request.layout.model_dump(),
        "ranks": ranks.size,
        "device": device.type,
        "engine": "reference" if request.reference else "deepspeed",
    }
