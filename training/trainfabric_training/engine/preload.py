"""What the first step would import, imported ahead: ranks that are forked after it start at once."""

from __future__ import annotations

import gc
import importlib

import torch

from trainfabric_node.store import preload_s3

MODULES = (
    "trainfabric_training.__main__",
    "trainfabric_training.engine.deepspeed_engine",
    "torch._dynamo.callback",
    "torch._inductor.compiler_bisector",
    "torch.profiler._cupti_monitor",
    "deepspeed.comm.mori",
    "deepspeed.module_inject.auto_ep_layer",
    "deepspeed.module_inject.auto_ep_presets.base",
    "deepspeed.ops.op_builder.all_ops",
    "deepspeed.runtime.zero.muon.muon_optimizer",
    "cProfile",
    "pstats",
)
"""Roots of what torch 2.13, DeepSpeed 0.19.8 and boto3 import when they are first used, of 930 modules; a test sees
that a rank imports nothing more until it has taken and saved a step."""


def cuda_is_there() -> bool:
    """Whether there is CUDA; asked of NVML if `settings.prepare_launcher` was called before torch was imported."""
    return torch.cuda.is_available()


def preload() -> None:
    """Imports all of it, and keeps it out of the garbage collector's way, whose marks would copy every forked page.

    Raises:
        RuntimeError: If CUDA was touched, which a forked process could not use any more.
    """
    for name in MODULES:
        importlib.import_module(name)
    preload_s3()
    if not cuda_is_there():
        from trainfabric_training.engine.deepspeed_engine import spare_operators

        spare_operators()
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        raise RuntimeError("CUDA must not be initialised before ranks are forked")
    gc.collect()
    gc.freeze()
