"""Names that both sides of the house use: what the stacks write and what the nodes read.

A name stands here once; nobody spells it again. Environment variables are read in one file per package, by these names.
"""

from __future__ import annotations

from enum import StrEnum

PREFIX = "trainfabric"

# --- deployed resources ------------------------------------------------------------------------------------------


def environment_parameter(environment: str) -> str:
    """Name of the SSM parameter that describes a deployed environment (JSON of `DeployedEnvironment`)."""
    return f"/{PREFIX}/{environment}/environment"


def plan_parameter(environment: str) -> str:
    """Name of the SSM parameter that holds the plan (JSON of `Plan`)."""
    return f"/{PREFIX}/{environment}/plan"


def group_name(environment: str, role: Role, number: int = 1) -> str:
    """Name of an Auto Scaling group of the nodes of one role; the groups of workers are numbered from 1.

    A name of our own lets dashboards and policies name the group without importing it from its stack, which would keep
    CloudFormation from removing it. It costs nothing: no other property that we set makes CloudFormation replace one.
    """
    suffix = "" if number == 1 else f"-{number}"
    return f"{PREFIX}-{environment}-{role.value}{suffix}"


class Tag:
    """Tags on resources and instances. IMDS shows instance tags only if their keys have no slash or space."""

    ENVIRONMENT = "trainfabric:environment"
    ROLE = "trainfabric:role"


class Role(StrEnum):
    """What a node of a fleet is."""

    COORDINATOR = "coordinator"
    WORKER = "worker"


# --- on the node -------------------------------------------------------------------------------------------------


class NodeVariable:
    """Variables of `/etc/trainfabric/node.env`, written by the user data and read by boot and by the agent."""

    ENVIRONMENT = "TRAINFABRIC_ENVIRONMENT"
    ROLE = "TRAINFABRIC_ROLE"
    REGION = "TRAINFABRIC_REGION"
    ASSET_BUCKET = "TRAINFABRIC_ASSET_BUCKET"
    ASSET_KEY = "TRAINFABRIC_ASSET_KEY"
    CHECKPOINT_BUCKET = "TRAINFABRIC_CHECKPOINT_BUCKET"
    DATA_BUCKET = "TRAINFABRIC_DATA_BUCKET"
    LUSTRE_DNS_NAME = "TRAINFABRIC_LUSTRE_DNS_NAME"
    LUSTRE_MOUNT_NAME = "TRAINFABRIC_LUSTRE_MOUNT_NAME"
    LUSTRE_MOUNT_POINT = "TRAINFABRIC_LUSTRE_MOUNT_POINT"
    HOME_SERVER = "TRAINFABRIC_HOME_SERVER"
    """Optional: NFS server of the shared home; without it none is mounted."""
    HOME_PATH = "TRAINFABRIC_HOME_PATH"
    """What the server exports, beside the former."""
    EFA_DEVICES = "TRAINFABRIC_EFA_DEVICES"
    """Optional: how many EFA devices boot must find; without it boot does not look."""
    RENDEZVOUS_PORT = "TRAINFABRIC_RENDEZVOUS_PORT"
    CONTROL_PORT = "TRAINFABRIC_CONTROL_PORT"
    PLACEMENT = "TRAINFABRIC_PLACEMENT"
    """Number of the node's placement group, from 0: nodes of one number are near each other."""
    TRAINS = "TRAINFABRIC_TRAINS"
    """Optional: `0` on a coordinator that only controls; every other node trains."""
    EVENTS_QUEUE = "TRAINFABRIC_EVENTS_QUEUE"
    """Optional, of the coordinator: URL of the queue of what EC2 announces about nodes."""
    STATE_DIRECTORY = "TRAINFABRIC_STATE_DIRECTORY"
    TRAINING = "TRAINFABRIC_TRAINING"
    """Optional: `command` where somebody else's command runs, for which boot makes no environment with torch."""
    ROOT = "TRAINFABRIC_ROOT"
    """Optional: a directory that stands for `/` in the user data and in boot.sh; empty on a real node."""


OWN_COMMAND = "command"
"""Value of `NodeVariable.TRAINING`."""


class CommandVariable(StrEnum):
    """Variables of somebody else's command (docs/own-training-code.md), once per node and epoch."""

    MASTER_ADDR = "MASTER_ADDR"
    """Address of the node with rank 0."""
    MASTER_PORT = "MASTER_PORT"
    """A free port on it, the same for all nodes: that of the fleet's rendezvous store, which a command does not use."""
    NNODES = "NNODES"
    """Nodes of this epoch."""
    NODE_RANK = "NODE_RANK"
    """Which of them this is, from 0."""
    NPROC_PER_NODE = "NPROC_PER_NODE"
    """Processes that the command is to start on each node."""
    WORLD_SIZE = "WORLD_SIZE"
    """Nodes × processes."""
    JOB = "TRAINFABRIC_JOB"
    """Name of the job."""
    RUN = "TRAINFABRIC_RUN"
    """Number of the run, from 1; resuming makes the next one."""
    EPOCH = "TRAINFABRIC_EPOCH"
    """Number of the epoch, from 1, over all runs of the job."""
    CHECKPOINT_URI = "TRAINFABRIC_CHECKPOINT_URI"
    """S3 address that belongs to this job alone, with a slash at its end."""
    DATA_URI = "TRAINFABRIC_DATA_URI"
    """S3 address of the data: what `job start --data` says, or the part of the data bucket that Lustre shows."""
    LUSTRE = "TRAINFABRIC_LUSTRE"
    """Where Lustre is mounted: the same files on every node."""
    STOP_FILE = "TRAINFABRIC_STOP_FILE"
    """A file that appears when the command is to save and to leave; its text is `now` or `checkpoint`."""
    PROGRESS_FILE = "TRAINFABRIC_PROGRESS_FILE"
    """Optional to write: lines of JSON with the finished `step`, and if you like `loss`, `tokens`, `seconds`."""
    HOSTS = "TRAINFABRIC_HOSTS"
    """Addresses of all nodes, with commas between them, by rank."""
    PLACEMENT = "TRAINFABRIC_PLACEMENT"
    """Placement group of this node, where nodes stand in several; else absent."""


class Paths:
    """Where things lie on a real node."""

    NODE_ENVIRONMENT = "/etc/trainfabric/node.env"
    INSTALL = "/opt/trainfabric"
    STATE = "/var/lib/trainfabric"
    LUSTRE = "/fsx"
    SHARED_HOME = "/shared"
    """Mount point of the shared home. Not /home: the image's own user lives there."""


RENDEZVOUS_PORT = 29400
"""TCP port of the rendezvous store on the coordinator; open inside the EFA security group only."""

CONTROL_PORT = 29401
"""TCP port of the controller on the coordinator; open inside the EFA security group only."""

SYSTEMD_UNIT = "trainfabric-agent.service"
"""Of every node: the supervisor. The other units of a node are named beside it."""

LAUNCHER_UNIT = "trainfabric-launcher.service"
"""Of every node: imports the engine once and forks the ranks of every epoch."""

CONTROLLER_UNIT = "trainfabric-controller.service"
"""Of the coordinator: says which nodes train, and when."""

RENDEZVOUS_UNIT = "trainfabric-rendezvous.service"
"""Of the coordinator: the store in which the ranks of an epoch find each other."""

COMMAND_UNIT = "trainfabric-command.service"
"""Of every node of a fleet that runs somebody else's command, in place of the launcher."""

LAUNCHER_SOCKET = "launcher.sock"
"""In the state directory: the unix socket on which the launcher listens once it is warm."""

# --- in the checkpoint bucket ------------------------------------------------------------------------------------

JOBS_PREFIX = "jobs/"
"""All records and checkpoints of jobs, which nodes write, lie below this key prefix."""

CODE_PREFIX = "code/"
"""Training assets that jobs were started with, which nodes read, lie below this key prefix."""

CURRENT_JOB_KEY = f"{JOBS_PREFIX}current.json"
"""The one job of an environment; created with If-None-Match so that a second one is refused."""

LAST_JOB_KEY = f"{JOBS_PREFIX}last.json"
"""Names the job that was started last, so that its status can be asked when it has ended."""


def job_prefix(job: str) -> str:
    """Everything a job writes lies below this key prefix (ends with a slash)."""
    return f"{JOBS_PREFIX}{job}/"


def checkpoint_prefix(job: str) -> str:
    """The job's checkpoints and their log lie below this key prefix (ends with a slash)."""
    return f"{job_prefix(job)}checkpoints/"


def own_files_prefix(job: str) -> str:
    """What somebody else's command writes lies below this key prefix (ends with a slash); nothing of ours does."""
    return f"{job_prefix(job)}files/"


def own_code_key(job: str, sha256: str) -> str:
    """The code folder of a command as a job was started with it."""
    return f"{job_prefix(job)}code/{sha256}.zip"


def run_prefix(job: str, run: int) -> str:
    """What one run (start to stop or end) of a job writes besides checkpoints lies below this key prefix."""
    return f"{job_prefix(job)}runs/{run:04d}/"


def epoch_key(job: str, number: int) -> str:
    """The record of one epoch of a job; created with If-None-Match, so that each number is claimed once."""
    return f"{job_prefix(job)}epochs/{number:08d}.json"


def code_key(asset_key: str) -> str:
    """Where a job keeps the training asset it was started with, for nodes that come when a deploy has replaced it."""
    return f"{CODE_PREFIX}{asset_key}"


# --- in the data bucket ------------------------------------------------------------------------------------------

DATA_PREFIX = "data/"
"""Key prefix that the Lustre data repository association links, and where `data prepare` writes."""

# --- telemetry ---------------------------------------------------------------------------------------------------

METRIC_NAMESPACE = "Trainfabric"


class Metric(StrEnum):
    """CloudWatch metrics, dimension `Environment`: published from the coordinator, shown by the dashboard."""

    LOSS = "Loss"
    GRADIENT_NORM = "GradientNorm"
    TOKENS_PER_SECOND = "TokensPerSecond"
    STEP_SECONDS = "StepSeconds"
    CHECKPOINT_STEP = "CheckpointStep"


METRIC_DIMENSION = "Environment"

STEPS_FILE = "steps.jsonl"
"""One line per optimizer step: `step` (1-based), `loss`, `grad_norm`, `tokens`, `seconds`, and `time` at its end."""

EVENTS_FILE = "events.jsonl"
"""One line per event: `event` (one of `Event`), `time` (ISO 8601, UTC), and what belongs to it."""


class Event(StrEnum):
    """What happens to a run, as `events.jsonl` tells it. `node` is an instance id wherever it stands."""

    # by the controller
    NODE_JOINED = "node_joined"
    """A node is up and warm: `node`, `address`, `role`, and `detail` if its supervisor has started anew."""
    NODE_LOST = "node_lost"
    """A member has gone silent or has left: `node`, `detail`."""
    NODE_REFUSED = "node_refused"
    """A node came up with other code or another image than the job's, and is given back: `node`, `detail`."""
    NODE_REPLACED = "node_replaced"
    """A node was given back by its id so that the fleet launches another: `node`, `detail`."""
    SPOT_NOTICE = "spot_notice"
    """EC2 takes a node back: `node`, `detail` with action and time."""
    REBALANCE = "rebalance"
    """EC2 says that a node is likelier to be taken back: `node`, `detail`."""
    DRAIN = "drain"
    """All ranks are asked to save and to leave: `epoch`, `at` (now or checkpoint), `detail`, `node` if for one."""
    EPOCH = "epoch"
    """A membership is claimed and trains: `epoch`, `nodes`, `layout`, `ranks`, `detail` (why)."""
    EPOCH_ENDED = "epoch_ended"
    """Its ranks are gone: `epoch`, `state` (resume, failed or done), `detail`."""
    RANK_STALLED = "rank_stalled"
    """A rank has stopped moving: `epoch`, `node`, `host`, `rank`, `detail`, `stack`."""
    WAIT = "wait"
    """Too few nodes: `detail`, `until` (ISO 8601, or null)."""
    CONTROLLER = "controller"
    """A controller has taken the run over, the first or a later one: `node`, `detail`."""
    RELEASE = "release"
    """The fleet is given back: `detail`. Told once more, with the reason, if that does not succeed at once."""
    # by rank 0 of an epoch
    START = "start"
    """Training begins: `recipe`, `layout`, `ranks`, `device`, `engine`."""
    RESUME = "resume"
    """From a committed checkpoint: `step`, `checkpoint`."""
    COMMIT = "commit"
    """A checkpoint is committed: `step`, `checkpoint`, `seconds`, `bytes`."""
    STOP = "stop"
    """All ranks left at the same step, with a committed checkpoint: `step`."""
    DONE = "done"
    """The last step is committed: `step`."""


PROGRESS_MARK = "trainer: "
"""How the lines begin that rank 0 of the trainer prints about its progress, to tell them from errors in a log."""


RESULT_FILE = "result.json"
"""Written by rank 0 when the trainer ends in order: `status` ("done" or "stopped") and the last `step`."""


OUTCOME_FILE = "outcome.json"
"""In a run's folder of the checkpoint bucket once its nodes are released: how the run ended."""


class ExitStatus:
    """Exit statuses of the trainer and of the commands."""

    DONE = 0
    """Finished."""
    FAILED = 1
    """Something failed; trying again may help."""
    USER_ERROR = 2
    """Something in the input is wrong; the message says what. Trying again cannot help."""
    RESUME = 75
    """Asked to leave: all ranks stopped at the same step with a committed checkpoint, to go on with `--resume`."""
