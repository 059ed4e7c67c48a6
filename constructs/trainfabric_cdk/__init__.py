"""Constructs for training environments on AWS.

The names below are the public interface; each is imported when it is first used, so that `import trainfabric_cdk` costs
nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainfabric_cdk.bundle import TrainingAsset as TrainingAsset
    from trainfabric_cdk.capacity import Capacity as Capacity
    from trainfabric_cdk.cluster.parallelcluster import ParallelClusterStack as ParallelClusterStack
    from trainfabric_cdk.errors import PropertyError as PropertyError
    from trainfabric_cdk.fleet import Coordinator as Coordinator
    from trainfabric_cdk.fleet import SpotTrainingFleet as SpotTrainingFleet
    from trainfabric_cdk.network import EfaSecurityGroup as EfaSecurityGroup
    from trainfabric_cdk.network import TrainingVpc as TrainingVpc
    from trainfabric_cdk.observability import TrainingDashboard as TrainingDashboard
    from trainfabric_cdk.placement import EfaClusterPlacementGroup as EfaClusterPlacementGroup
    from trainfabric_cdk.replacements import warn_of_replacements as warn_of_replacements
    from trainfabric_cdk.storage import CheckpointBucket as CheckpointBucket
    from trainfabric_cdk.storage import DataBucket as DataBucket
    from trainfabric_cdk.storage import ExistingLustre as ExistingLustre
    from trainfabric_cdk.storage import LustreAlarms as LustreAlarms
    from trainfabric_cdk.storage import LustreLink as LustreLink
    from trainfabric_cdk.storage import LustreLinkedToS3 as LustreLinkedToS3
    from trainfabric_cdk.storage import LustreMount as LustreMount
    from trainfabric_cdk.storage import LustreStorage as LustreStorage
    from trainfabric_cdk.storage import SharedHome as SharedHome
    from trainfabric_cdk.storage import SharedHomeMount as SharedHomeMount
    from trainfabric_cdk.storage import TrainingKey as TrainingKey

_ROOMS = {
    "Capacity": "capacity",
    "CheckpointBucket": "storage",
    "Coordinator": "fleet",
    "DataBucket": "storage",
    "EfaClusterPlacementGroup": "placement",
    "EfaSecurityGroup": "network",
    "ExistingLustre": "storage",
    "LustreAlarms": "storage",
    "LustreLink": "storage",
    "LustreLinkedToS3": "storage",
    "LustreMount": "storage",
    "LustreStorage": "storage",
    "ParallelClusterStack": "cluster.parallelcluster",
    "PropertyError": "errors",
    "SharedHome": "storage",
    "SharedHomeMount": "storage",
    "SpotTrainingFleet": "fleet",
    "TrainingAsset": "bundle",
    "TrainingDashboard": "observability",
    "TrainingKey": "storage",
    "TrainingVpc": "network",
    "warn_of_replacements": "replacements",
}

__all__ = [
    "Capacity",
    "CheckpointBucket",
    "Coordinator",
    "DataBucket",
    "EfaClusterPlacementGroup",
    "EfaSecurityGroup",
    "ExistingLustre",
    "LustreAlarms",
    "LustreLink",
    "LustreLinkedToS3",
    "LustreMount",
    "LustreStorage",
    "ParallelClusterStack",
    "PropertyError",
    "SharedHome",
    "SharedHomeMount",
    "SpotTrainingFleet",
    "TrainingAsset",
    "TrainingDashboard",
    "TrainingKey",
    "TrainingVpc",
    "warn_of_replacements",
]


def __getattr__(name: str) -> Any:
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_ROOMS[name]}"), name)
