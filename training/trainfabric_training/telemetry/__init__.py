"""What a run writes about itself."""

from trainfabric_training.telemetry.progress import Progress
from trainfabric_training.telemetry.rank_files import End, Phase, RankFiles, end_of, write_end
from trainfabric_training.telemetry.records import Records, StepRecord

__all__ = ["End", "Phase", "Progress", "RankFiles", "Records", "StepRecord", "end_of", "write_end"]
