"""DeepSpeed 0.19.8: pipeline, ZeRO-1 and data parallelism around our own tensor-parallel layers."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from trainfabric_plan.layout import accumulation
from trainfabric_plan.recipes import Recipe
from trainfabric_training.engine.optimizer import Schedule, adamw
from trainfabric_training.engine.protocol import StepOutcome
from trainfabric_training.engine.slices import LocalSlice, ensure_moments, local_slices, self_test
from trainfabric_training.feed import MicroBatch
from trainfabric_training.model import Layer, gpt_layers, gpt_loss
from trainfabric_training.parallel import Mesh, Ranks

with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import deepspeed
    from deepspeed.pipe import LayerSpec, PipelineModule, TiedLayerSpec
    from deepspeed.runtime.pipe.topology import PipeModelDataParallelTopology

_COUNTERS = ("global_steps", "global_samples", "skipped_steps", "micro_steps")
_NEVER = 10**9
_SHARED_MEMORY_OP = "deepspeed_shm_comm"


class DeepSpeedEngine:
    """One rank's part of the model, its optimizer partition and its schedule."""

    def __init__(self, recipe: Recipe, mesh: Mesh, ranks: Ranks, device: torch.device) -> None:
        self.mesh = mesh
        self.recipe = recipe
        self._device = device
        torch.manual_seed(recipe.seed + mesh.rank)
        with _quiet():
            _initialise_communication(device)
            module = _pipeline_module(recipe, mesh)
            optimizer = adamw(module.parameters(), recipe)
            self.schedule = Schedule(optimizer, recipe)
            self._engine, *_ = deepspeed.initialize(
                model=module,
                optimizer=optimizer,
                lr_scheduler=self.schedule,
                config=configuration(recipe, mesh.layout.data),
            )
        self_test(self._engine.optimizer, self._engine.module, mesh, ranks)

    @property
    def module(self) -> nn.Module:
        """The layers of this stage."""
        module: nn.Module = self._engine.module
        return module

    def train_step(self, micro_batches: Iterator[MicroBatch]) -> StepOutcome:
        """One step; pulls micro-batches on the first and the last stage only."""
        rate = self.schedule.rate
        with warnings.catch_warnings():
            _ignore_known_warnings()
            loss = self._engine.train_batch(data_iter=micro_batches)
        return StepOutcome(loss=float(loss), grad_norm=float(self._engine.get_global_grad_norm()), learning_rate=rate)

    def slices(self) -> Iterator[LocalSlice]:
        """What this rank keeps of weights and moments; moments exist after the first step or `begin_restore`."""
        return local_slices(self._engine.optimizer, self.mesh)

    def counters(self) -> dict[str, int]:
        """DeepSpeed's own counters."""
        return {name: int(getattr(self._engine, name)) for name in _COUNTERS}

    def begin_restore(self, steps: int) -> None:
        """Makes room for moments and sets the optimizer's step count."""
        ensure_moments(self._engine.optimizer, steps)

    def end_restore(self, counters: dict[str, int]) -> None:
        """Takes the counters, and rounds the restored fp32 weights into the model's own; every rank calls it."""
        for name in _COUNTERS:
            setattr(self._engine, name, counters[name])
        with warnings.catch_warnings():
            _ignore_known_warnings()
            self._engine.optimizer.update_lp_params()


def configuration(recipe: Recipe, data: int) -> dict[str, Any]:
    """DeepSpeed's configuration; it ignores unknown keys, so that every one here stands in its documentation.

    bf16 accumulates gradients in fp32, which makes DeepSpeed choose `BF16_Optimizer`.
    """
    precision: dict[str, Any] = {}
    if recipe.precision == "bf16":
        precision = {"bf16": {"enabled": True}, "data_types": {"grad_accum_dtype": "fp32"}}
    return {
        "train_batch_size": recipe.global_batch,
        "train_micro_batch_size_per_gpu": recipe.micro_batch,
        "gradient_accumulation_steps": accumulation(recipe, data),
        "gradient_clipping": recipe.gradient_clipping,
        "zero_optimization": {"stage": 1},
        "steps_per_print": _NEVER,
        **precision,
    }


def spare_operators() -> None:
    """On CPUs DeepSpeed would compile an operator for minutes that it can miss.

    The first call asks of every operator whether it could be compiled, which runs the C compiler; forks inherit what
    it found. Not to be called where there is CUDA: some of them ask the device.
    """
    deepspeed.ops.__compatible_ops__[_SHARED_MEMORY_OP] = False


def _initialise_communication(device: torch.device) -> None:
    """Over the process group that exists."""
    logging.getLogger("DeepSpeed").setLevel(logging.ERROR)
    if device.type == "cpu":
        spare_operators()
    deepspeed.init_distributed(dist_backend="nccl" if device.type == "cuda" else "gloo", verbose=False)


def _pipeline_module(recipe: Recipe, mesh: Mesh) -> Any:
    """The layers cut into stages with equal numbers of blocks, as far as they divide."""
    layout = mesh.layout
    return PipelineModule(
        layers=[_spec(layer) for layer in gpt_layers(recipe.model, mesh, recipe.seed)],
        topology=PipeModelDataParallelTopology(num_pp=layout.pipeline, num_mp=layout.tensor, num_dp=layout.data),
        loss_fn=gpt_loss(recipe.model, mesh),
        partition_method="type:Block",
    )


def _spec(layer: Layer) -> Any:
    if layer.tied is None:
        return LayerSpec(layer.module, *layer.arguments)
    return TiedLayerSpec(layer.tied, layer.module, *layer.arguments, forward_fn=layer.forward)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """DeepSpeed prints how it cuts the layers; our events say what matters."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        _ignore_known_warnings()
        yield


def _ignore_known_warnings() -> None:
    """Of DeepSpeed 0.19.8 under torch 2.13, about its own calls."""
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"deepspeed\.")
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"torch\.")
    warnings.filterwarnings("ignore", message=".*an autograd kernel was not registered.*", category=UserWarning)
