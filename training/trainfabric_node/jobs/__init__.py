"""Jobs: one at a time per environment, started and watched from anywhere, run by the nodes of its fleet."""

from trainfabric_node.jobs.control import JobControl, connect
from trainfabric_node.jobs.fleet import Fleet, Member, read_deployed
from trainfabric_node.jobs.ledger import JobLedger
from trainfabric_node.jobs.records import (
    ControllerAddress,
    GroupPins,
    JobCommand,
    JobPins,
    JobSpec,
    NodeState,
    NodeStatus,
    Outcome,
    RunPointer,
    StopRequest,
    TrainerResult,
)
from trainfabric_node.jobs.run_records import RunRecords
from trainfabric_node.jobs.status import JobState, JobStatus

__all__ = [
    "ControllerAddress",
    "Fleet",
    "GroupPins",
    "JobCommand",
    "JobControl",
    "JobLedger",
    "JobPins",
    "JobSpec",
    "JobState",
    "JobStatus",
    "Member",
    "NodeState",
    "NodeStatus",
    "Outcome",
    "RunPointer",
    "RunRecords",
    "StopRequest",
    "TrainerResult",
    "connect",
    "read_deployed",
]
