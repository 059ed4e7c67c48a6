"""Jobs: one at a time per environment, started and watched from anywhere, run by the agents of its nodes."""

from trainfabric_node.jobs.control import JobControl, connect
from trainfabric_node.jobs.ledger import JobLedger, RunRecords
from trainfabric_node.jobs.records import (
    JobSpec,
    NodeState,
    NodeStatus,
    Outcome,
    Rendezvous,
    RunPointer,
    StopRequest,
    TrainerResult,
)
from trainfabric_node.jobs.status import JobState, JobStatus

__all__ = [
    "JobControl",
    "JobLedger",
    "JobSpec",
    "JobState",
    "JobStatus",
    "NodeState",
    "NodeStatus",
    "Outcome",
    "Rendezvous",
    "RunPointer",
    "RunRecords",
    "StopRequest",
    "TrainerResult",
    "connect",
]
