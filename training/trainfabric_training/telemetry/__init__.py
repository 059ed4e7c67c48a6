"""What a run writes about itself."""

from trainfabric_training.telemetry.progress import Progress
from trainfabric_training.telemetry.records import Records, StepRecord

__all__ = ["Progress", "Records", "StepRecord"]
