"""Small checkpoints that tests commit."""

from __future__ import annotations

import struct

from trainfabric_node.checkpoint import CheckpointStore, Counters, Geometry, Manifest, Part, RankState
from trainfabric_node.store import Store
from trainfabric_plan.layout import Layout
from trainfabric_plan.recipes import recipe


def write_part(checkpoints: CheckpointStore, step: int, nonce: str) -> list[Part]:
    writer = checkpoints.writer(step, nonce, rank=0)
    for start in (0, 3):
        data = memoryview(struct.pack("<3f", *(float(start + i) for i in range(3))))
        writer.add(parameter="weight", kind="master", geometry=Geometry(local_shape=(6,)), start=start, data=data)
    return writer.finish()


def manifest(step: int, nonce: str, parts: list[Part]) -> Manifest:
    return Manifest(
        job="test",
        step=step,
        nonce=nonce,
        created="2026-01-01T00:00:00+00:00",
        code_version="0.1.0",
        layout=Layout(),
        recipe=recipe("tiny_cpu"),
        counters=Counters(
            optimizer_step=step, samples=16 * step, engine={}, scheduler={"last": 0.5}, learning_rates=(1e-3,)
        ),
        ranks=(RankState(rank=0, random={"cpu": "AAAA"}),),
        parts=tuple(parts),
    )


def commit(store: Store, step: int, nonce: str = "run-1") -> CheckpointStore:
    checkpoints = CheckpointStore(store)
    checkpoints.claim(nonce)
    checkpoints.commit(manifest(step, nonce, write_part(checkpoints, step, nonce)))
    return checkpoints
