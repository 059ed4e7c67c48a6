"""The environment file: what a platform team asks for, strict and frozen.

`read_environment` reads a file and reports every mistake in it at once.
"""

from trainfabric_plan.environment.types import (
    Bucket,
    Environment,
    Fleet,
    Lustre,
    Network,
    Storage,
    Training,
)
from trainfabric_plan.environment.validate import validate_environment
from trainfabric_plan.policy import FaultTolerance

__all__ = [
    "Bucket",
    "Environment",
    "FaultTolerance",
    "Fleet",
    "Lustre",
    "Network",
    "Storage",
    "Training",
    "validate_environment",
]
