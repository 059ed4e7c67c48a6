"""Saving and restoring the whole training state, on the layout that wrote it or on another one."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from datetime import UTC, datetime

import torch
from torch import Tensor

from trainfabric_node.checkpoint import (
    ELEMENT_BYTES,
    CheckpointReader,
    CheckpointStore,
    Counters,
    LogEntry,
    Manifest,
    Part,
    RankState,
    covered,
    intersections,
    recipe_differences,
)
from trainfabric_plan.errors import Refused, mistake
from trainfabric_plan.layout import accumulation
from trainfabric_training.engine.protocol import StatefulEngine
from trainfabric_training.engine.slices import LocalSlice
from trainfabric_training.parallel import Ranks


@dataclass(frozen=True, kw_only=True)
class Run:
    """Who saves: the job, this run's nonce that claimed it, and the versions of the code."""

    job: str
    nonce: str
    code_version: str


@dataclass(frozen=True, kw_only=True)
class Saved:
    """A checkpoint that was committed: its entry in the log, and the bytes of all its parts."""

    commit: LogEntry
    size: int


def save(
    engine: StatefulEngine, checkpoints: CheckpointStore, ranks: Ranks, run: Run, step: int, lines: bytes = b""
) -> Saved:
    """Writes the state after `step` steps and commits it; every rank calls it, and returns when it is durable.

    Args:
        engine: Whose state it is.
        checkpoints: Of the job.
        ranks: All of them.
        run: Who saves.
        step: The last one that is in the state.
        lines: On rank 0, what `steps.jsonl` says of the steps since the commit before, kept with this one.

    Raises:
        Agreed: If any rank cannot write, or if another run has claimed the job.
    """
    written = ranks.everywhere(lambda: (_write_parts(engine, checkpoints, run, step, ranks.rank), _random_state()))

    def commit() -> Saved:
        parts = tuple(part for parts, _ in written for part in parts)
        if lines:
            checkpoints.keep_steps(step, run.nonce, lines)
        states = tuple(RankState(rank=rank, random=state) for rank, (_, state) in enumerate(written))
        entry = checkpoints.commit(_manifest(engine, run, step, parts, states))
        return Saved(commit=entry, size=sum(part.size for part in parts))

    return ranks.on_first(commit)


def restore(engine: StatefulEngine, checkpoints: CheckpointStore, ranks: Ranks, commit: LogEntry) -> None:
    """Sets the engine to a committed state. Every byte is verified; nothing of a damaged checkpoint is trained on.

    Random states go back to their ranks on the layout that wrote them; on another one they start from the seed.

    Raises:
        Agreed: If it is damaged, incomplete, or of a recipe that differs in what is learned.
    """
    reader = ranks.each(lambda: _open(engine, checkpoints, commit))
    counters = reader.manifest.counters
    engine.begin_restore(counters.optimizer_step)
    ranks.each(lambda: _fill_all(engine, reader, checkpoints.uri))
    engine.end_restore(_engine_counters(engine, reader.manifest))
    engine.schedule.load_state_dict(counters.scheduler)
    if reader.manifest.layout == engine.mesh.layout:
        _set_random_state(reader.manifest.ranks[ranks.rank].random)


def _write_parts(engine: StatefulEngine, checkpoints: CheckpointStore, run: Run, step: int, rank: int) -> list[Part]:
    writer = checkpoints.writer(step, run.nonce, rank)
    for one in engine.slices():
        if one.written:
            writer.add(
                parameter=one.info.name,
                kind=one.kind,
                geometry=one.info.geometry,
                start=one.start,
                data=one.values.cpu().numpy().data.cast("B"),
            )
    return writer.finish()


def _manifest(
    engine: StatefulEngine, run: Run, step: int, parts: tuple[Part, ...], states: tuple[RankState, ...]
) -> Manifest:
    return Manifest(
        job=run.job,
        step=step,
        nonce=run.nonce,
        created=datetime.now(UTC).isoformat(timespec="milliseconds"),
        code_version=run.code_version,
        layout=engine.mesh.layout,
        recipe=engine.recipe,
        counters=Counters(
            optimizer_step=step,
            samples=step * engine.recipe.global_batch,
            engine=engine.counters(),
            scheduler=engine.schedule.state_dict(),
            learning_rates=tuple(engine.schedule.get_last_lr()),
        ),
        ranks=states,
        parts=parts,
    )


def _open(engine: StatefulEngine, checkpoints: CheckpointStore, commit: LogEntry) -> CheckpointReader:
    reader = checkpoints.open(commit)
    differences = recipe_differences(reader.manifest.recipe, engine.recipe)
    if differences:
        remedy = "resume with the recipe that wrote it, or give --checkpoints of a new job"
        raise Refused(
            f"{checkpoints.uri}: recipe must be the one of the checkpoint at step {commit.step}, "
            f"got {', '.join(differences)}; {remedy}"
        )
    return reader


def _fill_all(engine: StatefulEngine, reader: CheckpointReader, uri: str) -> None:
    for one in engine.slices():
        values, filled = _values(one, reader)
        if filled != covered(one.extent):
            rule = f"complete in {one.kind} from element {one.start} on"
            got = f"{filled} of {covered(one.extent)} elements"
            raise mistake(uri, one.info.name, rule, got, "resume an older commit with --from-step")
        one.values.copy_(values)


def _values(target: LocalSlice, reader: CheckpointReader) -> tuple[Tensor, int]:
    """The elements of a slice, put together from whatever slices hold them; padding stays zero."""
    values, filled = torch.zeros(target.values.numel()), 0
    for stored in reader.slices(target.info.name, target.kind):
        blocks = list(intersections(stored.slice.extent, target.extent))
        if not blocks:
            continue
        first = min(block.source_offset for block in blocks)
        end = max(block.source_end for block in blocks)
        start, length = stored.slice.offset + first * ELEMENT_BYTES, (end - first) * ELEMENT_BYTES
        source = torch.frombuffer(bytearray(reader.read(stored.part, start, length)), dtype=torch.float32)
        for block in blocks:
            size = (block.rows, block.columns)
            piece = source.as_strided(size, (block.source_stride, 1), block.source_offset - first)
            values.as_strided(size, (block.target_stride, 1), block.target_offset).copy_(piece)
            filled += block.rows * block.columns
    return values, filled


def _engine_counters(engine: StatefulEngine, manifest: Manifest) -> dict[str, int]:
    """DeepSpeed's counters; micro-steps count per data rank, so that they change with accumulation."""
    counters = dict(manifest.counters.engine)
    before = accumulation(manifest.recipe, manifest.layout.data)
    after = accumulation(engine.recipe, engine.mesh.layout.data)
    counters["micro_steps"] = counters["micro_steps"] * after // before
    return counters


def _random_state() -> dict[str, str]:
    states = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available() and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        states["cuda"] = torch.cuda.get_rng_state()
    return {device: base64.b64encode(state.numpy().tobytes()).decode() for device, state in states.items()}


def _set_random_state(states: dict[str, str]) -> None:
    for device, text in states.items():
        state = torch.frombuffer(bytearray(base64.b64decode(text)), dtype=torch.uint8)
        if device == "cpu":
            torch.set_rng_state(state)
        elif torch.cuda.is_available():
            torch.cuda.set_rng_state(state)
