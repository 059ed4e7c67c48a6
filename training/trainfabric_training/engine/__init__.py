"""What runs the optimizer steps. The only package that imports DeepSpeed, and only when it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainfabric_training.engine.protocol import Engine, StatefulEngine, StepOutcome

if TYPE_CHECKING:
    import torch

    from trainfabric_plan.recipes import Recipe
    from trainfabric_training.engine.deepspeed_engine import DeepSpeedEngine
    from trainfabric_training.engine.reference import ReferenceEngine
    from trainfabric_training.parallel import Mesh, Ranks

__all__ = ["Engine", "StatefulEngine", "StepOutcome", "distributed_engine", "reference_engine"]


def distributed_engine(recipe: Recipe, mesh: Mesh, ranks: Ranks, device: torch.device) -> DeepSpeedEngine:
    """DeepSpeed over all ranks. Imported here, because the import takes seconds that the reference need not wait."""
    from trainfabric_training.engine.deepspeed_engine import DeepSpeedEngine

    return DeepSpeedEngine(recipe, mesh, ranks, device)


def reference_engine(recipe: Recipe, device: torch.device) -> ReferenceEngine:
    """Plain PyTorch in this process: what every layout is held against."""
    from trainfabric_training.engine.reference import ReferenceEngine

    return ReferenceEngine(recipe, device)
