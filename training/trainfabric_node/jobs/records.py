"""What is written about a job in the checkpoint bucket, each a JSON object of its own."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import AwareDatetime, BaseModel, Field, model_validator

from trainfabric_plan.contract import Role
from trainfabric_plan.deployed import NodeGroup, group_sizes, trains
from trainfabric_plan.model import Strict
from trainfabric_plan.own_command import CodePin, OwnCommand
from trainfabric_plan.planning import AnyPlan, Plan
from trainfabric_plan.policy import FaultTolerance
from trainfabric_plan.recipes import Recipe

JobName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")]
REPORT_S = 60.0
"""The controller writes anew what it says about each node at least this often, so that its silence is noticed."""

JOB_NAME_RULE = "1 to 63 lower-case letters, digits and hyphens, the first no hyphen"


def now() -> datetime:
    """The time, in UTC, to the millisecond."""
    time = datetime.now(UTC)
    return time.replace(microsecond=time.microsecond // 1000 * 1000)


class GroupPins(Strict):
    """What all nodes of one Auto Scaling group are launched with while a job runs, whatever is deployed meanwhile."""

    launch_template_id: str
    launch_template_version: str
    image_id: str
    capacity_reservation: str | None = None
    """Reservation or Capacity Block that its nodes are launched into, if one is named."""


class JobPins(Strict):
    """What a run was started with. Replacements use it, and nodes with anything else are not taken in."""

    groups: dict[str, GroupPins]
    """By the name of the Auto Scaling group."""
    asset_key: str
    """Key of the training asset; also below `contract.code_key`, which outlives a deploy."""


class JobCommand(OwnCommand):
    """A command with the code that it was started with."""

    code: CodePin | None = None


class JobSpec(Strict):
    """One run of a job, from start to stop or end: `jobs/current.json` while it runs, then `jobs/<job>/job.json`."""

    job: JobName
    environment: str
    run: Annotated[int, Field(ge=1)]
    """1 for a new job, one more for each time that it is resumed."""
    resume: bool
    """Whether this run goes on from a committed checkpoint."""
    from_step: Annotated[int, Field(ge=1)] | None = None
    """The step of that checkpoint; that of the newest if `None`."""
    data: str
    """Address of the corpus, without suffix; of a command, whatever it is given."""
    recipe: Recipe | None = None
    """What is trained; `None` if somebody else's command runs."""
    command: JobCommand | None = None
    """That command."""
    plan: AnyPlan
    groups: tuple[NodeGroup, ...]
    """The Auto Scaling groups that it runs on, whatever is deployed meanwhile; the coordinator's first."""
    policy: FaultTolerance = FaultTolerance()
    spares: Annotated[int, Field(ge=0)] = 0
    """Nodes beyond the plan's that are up and warm."""
    pins: JobPins | None = None
    """`None` for a fleet without launch templates of ours."""
    created: AwareDatetime
    nonce: str
    """Tells two starts apart that race for the environment."""

    @model_validator(mode="after")
    def _is_one_of_both(self) -> Self:
        if (self.recipe is None) == (self.command is None) or (self.recipe is None) == isinstance(self.plan, Plan):
            raise ValueError("a recipe with its plan, or a command with its")
        return self

    @property
    def coordinator_trains(self) -> bool:
        """Whether the coordinator is one of the plan's nodes; else it only controls, and comes on top of them."""
        return trains(self.groups[0])

    @property
    def instances(self) -> int:
        """How many nodes the fleet is asked for: those of the plan, spares, and a coordinator that only controls."""
        return sum(group_sizes(self.groups, self.plan.nodes, self.spares).values())

    @property
    def shares(self) -> dict[int, int]:
        """How many of the plan's nodes stand in each placement group, by its number."""
        sizes, found = group_sizes(self.groups, self.plan.nodes, 0), dict[int, int]()
        for group in self.groups:
            nodes = sizes[group.name] if group.nodes else 0
            found[group.placement] = found.get(group.placement, 0) + nodes
        return found

    @property
    def resume_options(self) -> list[str]:
        """Options of the trainer that say what the run goes on from; none for a new job."""
        from_step = [] if self.from_step is None else ["--from-step", str(self.from_step)]
        return ["--resume", *from_step] if self.resume else []


class NodeState(StrEnum):
    """How far a node is in a run."""

    JOINING = "joining"
    """It boots, or imports the engine."""
    SPARE = "spare"
    """Up and warm, and no member of the current epoch."""
    CONTROLLING = "controlling"
    """The coordinator, where it only controls."""
    RUNNING = "running"
    """A member of the current epoch."""
    LEAVING = "leaving"
    """EC2 takes it back."""
    LOST = "lost"
    """Silent for so long that it is counted out."""
    STOPPED = "stopped"
    DONE = "done"
    FAILED = "failed"

    @property
    def ended(self) -> bool:
        """Whether the node's trainer is gone for good."""
        return self in (NodeState.LOST, NodeState.STOPPED, NodeState.DONE, NodeState.FAILED)


class NodeStatus(Strict):
    """How far a node is, as the controller of the run last heard it."""

    instance_id: str
    role: Role
    state: NodeState
    detail: str = ""
    updated: AwareDatetime


class ControllerAddress(Strict):
    """Where the controller of a run listens, and the rendezvous store beside it."""

    host: str
    port: Annotated[int, Field(ge=1, le=65535)]
    rendezvous_port: Annotated[int, Field(ge=1, le=65535)]
    incarnation: str
    """A controller that reads another's here is not the run's any more."""
    instance_id: str
    announced: AwareDatetime


class StopRequest(Strict):
    """Asks the controller of a run to end it with a checkpoint."""

    reason: Literal["asked"] = "asked"
    detail: str = ""
    requested: AwareDatetime


class Outcome(Strict):
    """How a run ended; written once its nodes are released."""

    state: Literal["done", "stopped", "failed"]
    step: int | None = None
    detail: str = ""
    ended: AwareDatetime


class TrainerResult(BaseModel):
    """What rank 0 of the trainer leaves behind when it ends in order (`contract.RESULT_FILE`)."""

    status: Literal["done", "stopped"]
    step: int


class RunPointer(Strict):
    """Names a run, such as the last one of an environment."""

    job: JobName
    run: int
