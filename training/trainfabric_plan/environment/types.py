"""The types of the environment file. Their docstrings become the descriptions in its JSON Schema."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

from trainfabric_plan.capacity import PLACEMENT_GROUP_PATTERN
from trainfabric_plan.contract import DATA_PREFIX
from trainfabric_plan.environment.bucket_names import checked_bucket_name
from trainfabric_plan.layout import Layout
from trainfabric_plan.lustre.facts import MAINTENANCE_PATTERN, MOST_LINKS, Deployment
from trainfabric_plan.lustre.wish import LustreWish
from trainfabric_plan.model import Strict
from trainfabric_plan.mount_points import MOUNT_POINT_PATTERN
from trainfabric_plan.policy import FaultTolerance

Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{1,29}$")]
BucketName = Annotated[
    str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$"), AfterValidator(checked_bucket_name)
]
Region = Annotated[str, StringConstraints(pattern=r"^[a-z]{2,4}(-[a-z]+)+-\d$")]


def _one_instance_type(value: Any) -> Any:
    if isinstance(value, list):
        raise ValueError(f"one instance type: EFA and the ranks need equal nodes, got {', '.join(map(str, value))}")
    return value


ROOT_DEVICE = "/dev/sda1"
"""Root device of the default image, as of all Ubuntu images of Canonical and AWS."""


class Network(Strict):
    """The network: made by trainfabric, or one that exists, given by its ids."""

    cidr: Annotated[str, StringConstraints(pattern=r"^\d{1,3}(\.\d{1,3}){3}/(1[6-9]|2[0-4])$")] | None = None
    """Address range of the VPC that trainfabric makes; 10.20.0.0/16 if not given."""
    vpc_id: Annotated[str, StringConstraints(pattern=r"^vpc-[0-9a-f]{8,17}$")] | None = None
    """An existing VPC; needs subnet_id."""
    subnet_id: Annotated[str, StringConstraints(pattern=r"^subnet-[0-9a-f]{8,17}$")] | None = None
    """An existing private subnet with a route out (NAT), in availability_zone; all nodes and Lustre live in it."""
    route_table_id: Annotated[str, StringConstraints(pattern=r"^rtb-[0-9a-f]{8,17}$")] | None = None
    """Route table of the existing subnet: an S3 gateway endpoint is added to it. Leave out if it has one."""
    assign_public_ips: bool = False
    """Public addresses on the nodes. EC2 refuses them for nodes with several interfaces, as EFA nodes are."""
    egress: Literal["nat", "endpoints"] = "nat"
    """How nodes of a network made here reach the rest: a NAT gateway, or VPC endpoints of the services that they call
    and nothing else. Without NAT nothing can be installed at boot: it needs fleet.prepared_image."""
    has_s3_endpoint: bool = False
    """Of an existing network: its route table has an S3 gateway endpoint already, so that none is added."""


KeyArn = Annotated[str, StringConstraints(pattern=r"^arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/[A-Za-z0-9-]+$")]


class Bucket(Strict):
    """A bucket that exists already."""

    name: BucketName
    """Name of the bucket, in the environment's region and account."""
    kms_key_arn: KeyArn | None = None
    """ARN of the KMS key that encrypts the bucket, if one does: the nodes may then use it. The key's own policy must
    let FSx use it as well (docs/how-to/use-existing-resources.md)."""


FileEvent = Literal["new", "changed", "deleted"]


class LustreLink(Strict):
    """A directory of the file system that is a prefix of a bucket: a data repository association."""

    path: Annotated[str, StringConstraints(pattern=r"^/[A-Za-z0-9._/-]+$")]
    """Directory below the mount point, such as /data."""
    bucket: Bucket | None = None
    """An existing bucket in the environment's region; the data bucket if not given."""
    prefix: str
    """Key prefix, such as data/. No two links overlap, and none lies in the checkpoint bucket."""
    imports: list[FileEvent] = ["new", "changed", "deleted"]
    """What happens in the bucket and shows in the directory."""
    exports: list[FileEvent] = ["new", "changed", "deleted"]
    """What happens in the directory and is written to the bucket."""


class Lustre(Strict):
    """The FSx for Lustre file system, linked to the data bucket."""

    file_system_id: Annotated[str, StringConstraints(pattern=r"^fs-[0-9a-f]{17}$")] | None = None
    """An existing file system in the subnet's zone; needs mount_name, and excludes every size below."""
    mount_name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,8}$")] | None = None
    """Mount name of the existing file system (aws fsx describe-file-systems shows it)."""
    security_group_id: Annotated[str, StringConstraints(pattern=r"^sg-[0-9a-f]{8,17}$")] | None = None
    """Security group of the existing file system: gets the rules that let the nodes in. Yours to open if not given."""
    deployment: Deployment = "persistent_2"
    """PERSISTENT_2 on SSD; PERSISTENT_2 that tiers to object storage and grows by itself, which FSx links to no bucket;
    SCRATCH_2, which is not replicated and loses files when a file server fails."""
    capacity_gib: int | None = None
    """1200, or a multiple of 2400; more with efa. Not for intelligent_tiering. The smallest there is if neither it nor
    required_throughput_mbps is given."""
    required_throughput_mbps: Annotated[int, Field(ge=1)] | None = None
    """What the nodes read together, in MB/s, instead of capacity_gib: the smallest size that gives it is chosen."""
    throughput_mbps_per_tib: int | None = None
    """125 (if not given), 250, 500 or 1000 MB/s per TiB. Only for persistent_2."""
    throughput_mbps: int | None = None
    """1000, 2000 or a multiple of 4000 MB/s. Only for intelligent_tiering, which needs it."""
    read_cache_gib: int | None = None
    """SSD read cache of intelligent_tiering; in proportion to its throughput if not given."""
    metadata_iops: int | None = None
    """Metadata operations per second: 1500, 3000, 6000, or a multiple of 12000 up to 192000; with the storage if not
    given. At least 6000 for intelligent_tiering, which gets that if not given. None for scratch_2."""
    efa: bool = False
    """Lustre over EFA, with GPUDirect Storage; only when created, and in larger steps of capacity. Of an existing file
    system: whether it is EFA-enabled, which needs all traffic between both security groups."""
    maintenance_window: Annotated[str, StringConstraints(pattern=MAINTENANCE_PATTERN)] | None = None
    """When FSx may restart file servers, weekly, UTC: day (1 is Monday), hour and minute, such as 7:03:00."""
    links: Annotated[list[LustreLink], Field(min_length=1, max_length=MOST_LINKS)] | None = None
    """Directories that are prefixes of buckets; /data as data/ of the data bucket if not given."""
    compression: Literal["lz4", "none"] = "lz4"
    """Compression of the data on disk."""
    mount_point: Annotated[str, StringConstraints(pattern=MOUNT_POINT_PATTERN)] = "/fsx"
    """Where the nodes mount it: no directory of the system."""

    @property
    def wish(self) -> LustreWish:
        """What is asked of a file system that is made here."""
        return LustreWish(**{field.name: getattr(self, field.name) for field in fields(LustreWish)})

    @property
    def is_made(self) -> bool:
        """Whether the file system is made here; `False` for one that exists."""
        return self.file_system_id is None and self.mount_name is None


class Storage(Strict):
    """Buckets and the file system."""

    data_bucket: Bucket | None = None
    """An existing bucket for the training data; one is made if not given."""
    checkpoint_bucket: Bucket | None = None
    """An existing bucket for checkpoints and job records; one is made if not given."""
    lustre: Lustre = Lustre()
    """The file system that caches the data bucket for the nodes."""
    kms_key_arn: KeyArn | None = None
    """A customer key for everything that is made here: buckets, file system and the nodes' volumes. Its policy must let
    the account's Auto Scaling and Spot service roles use it (docs/how-to/use-existing-resources.md)."""
    shared_home: Literal["efs", "openzfs"] | None = None
    """A small file system for people and their code that all nodes mount at /shared, made here; none if not given. With
    parallelcluster it is on efs."""
    retain: bool = True
    """Keep buckets and file system when the environment is destroyed. `false` deletes empty buckets; a file system goes
    with its data, so it needs the context `trainfabric:deleteContents` with the environment's name as well."""

    @property
    def links(self) -> list[LustreLink]:
        """The links of a file system that is made here: those given, or the data bucket's; none where FSx has none."""
        if not self.lustre.is_made or self.lustre.deployment == "intelligent_tiering":
            return []
        return self.lustre.links or [LustreLink(path=f"/{DATA_PREFIX.rstrip('/')}", prefix=DATA_PREFIX)]


class Fleet(Strict):
    """The nodes."""

    instance_type: Annotated[str, BeforeValidator(_one_instance_type)]
    """One EC2 instance type for every node, such as p5.48xlarge."""
    nodes: Annotated[int, Field(ge=1)]
    """Number of nodes, the coordinator among them."""
    spares: Annotated[int, Field(ge=0, le=64)] = 0
    """Workers beyond nodes that a job keeps up and warm, billed like the others, to take the place of a lost node at
    once."""
    workers: Literal["on_demand", "spot", "capacity_block", "reservation", "interruptible_reservation"] = "spot"
    """How the workers are bought. The coordinator is on demand beside on_demand, spot and interruptible_reservation,
    and of the same reservation as the workers otherwise, if it trains."""
    reservation: str | None = None
    """Of workers capacity_block, reservation and interruptible_reservation: cr-…, or the ARN of a resource group of
    reservations (not for a block)."""
    placement_group_name: Annotated[str, StringConstraints(pattern=PLACEMENT_GROUP_PATTERN)] | None = None
    """The cluster placement group that the reservation was made in, if it was made in one."""
    max_nodes_per_group: Annotated[int, Field(ge=1)] | None = None
    """Split the nodes over several placement groups of at most so many; one group if not given."""
    coordinator: Literal["training", "control"] = "training"
    """Whether the coordinator trains, or is a small node beside fleet.nodes that only controls."""
    control_instance_type: str = "m7i.large"
    """Instance type of a coordinator that only controls."""
    interfaces: Literal["addresses", "bandwidth"] = "addresses"
    """Of EFA types that offer both: one IP address per node, or all of the node's IP bandwidth with an address for each
    ENA interface."""
    prepared_image: bool = False
    """Whether ami_id holds all that boot would install: Python environment of the lock file and Lustre client."""
    max_spot_price: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Most US dollars per hour for a spot node; the on-demand price if not given. Only for spot workers."""
    efa: bool = True
    """Elastic Fabric Adapter between the nodes."""
    ami_id: Annotated[str, StringConstraints(pattern=r"^ami-[0-9a-f]{8,17}$")] | None = None
    """Image of the nodes; the newest Deep Learning base image (Ubuntu 24.04) if not given."""
    root_device: Annotated[str, StringConstraints(pattern=r"^/dev/[a-z0-9]+$")] = ROOT_DEVICE
    """Root device of ami_id: /dev/sda1 for Ubuntu, /dev/xvda for Amazon Linux. A wrong one adds a second disk and
    leaves the root disk small and unencrypted (aws ec2 describe-images shows it as RootDeviceName)."""


class Training(Strict):
    """What runs on the nodes: a recipe of ours, or a command of yours."""

    recipe: str | None = None
    """Name of a recipe, such as tiny_cpu; either it or command is given."""
    command: str | None = None
    """A shell command of your own, which every node runs once per epoch instead of a recipe
    (docs/own-training-code.md)."""
    code: str | None = None
    """Folder with the code of command, relative to the environment file; `job start` uploads it."""
    image: str | None = None
    """Container image in which command runs, with its tag or digest, such as
    123456789012.dkr.ecr.us-east-1.amazonaws.com/megatron:2026-11."""
    leave_by: Literal["signal", "file"] = "signal"
    """How command is asked to save and to leave. signal: SIGTERM, beside the stop file. file: the stop file alone, for
    commands that look at it after every step."""
    layout: Layout | None = None
    """Degrees of parallelism of a recipe; the planner chooses if not given."""
    ranks_per_node: Annotated[int, Field(ge=1)] | None = None
    """Ranks on each node, to a command its NPROC_PER_NODE; one per accelerator if not given."""


class ParallelCluster(Strict):
    """Settings of the Slurm cluster when orchestrator is parallelcluster."""

    version: Annotated[str, StringConstraints(pattern=r"^3\.\d+\.\d+$")] = "3.16.1"
    """AWS ParallelCluster release. To be given with fleet.ami_id: the release that the image was built for."""
    head_node_instance_type: str = "m7i.2xlarge"
    """Instance type of the head node: one of the catalog, of the nodes' architecture."""
    static_nodes: Annotated[int, Field(ge=0)] = 0
    """Nodes that are up from the start and stay, billed, whether jobs run or not. All nodes of a block are. With spot
    workers the cluster is not made while EC2 has no capacity for them."""
    gpu_health_checks: bool = False
    """Whether every job begins with a check of its nodes' GPUs. It may take longer on nodes of eight GPUs than Slurm
    waits for it (aws-parallelcluster issue 6777)."""
    exclusive_jobs: bool = False
    """Whether a node has one job at a time, whatever the job asks for."""
    ssh_from: str | None = None
    """Range of addresses, such as 10.20.0.0/16, or prefix list (pl-…) from which SSH reaches the head node; nowhere if
    not given: Session Manager opens a shell."""
    permissions_boundary: (
        Annotated[str, StringConstraints(pattern=r"^arn:aws[a-z-]*:iam::\d{12}:policy/\S+$")] | None
    ) = None
    """ARN of the policy that bounds every role that ParallelCluster makes."""


class Environment(Strict):
    """A training environment: network, storage, nodes and what they train."""

    name: Name
    """Short name; prefixes every stack."""
    region: Region
    """AWS region."""
    availability_zone: str
    """The one zone of all nodes and the file system: EFA and Lustre do not cross zones."""
    account: Annotated[str, StringConstraints(pattern=r"^\d{12}$")] | None = None
    """AWS account; taken from the credentials of the deploy if not given."""
    network: Network = Network()
    """The network."""
    storage: Storage = Storage()
    """Buckets and the file system."""
    fleet: Fleet
    """The nodes."""
    training: Training
    """What runs on the nodes."""
    orchestrator: Literal["fleet", "parallelcluster"] = "fleet"
    """What starts the ranks: a SpotTrainingFleet, or Slurm through AWS ParallelCluster."""
    parallelcluster: ParallelCluster = ParallelCluster()
    """Settings of the Slurm cluster when orchestrator is parallelcluster."""
    fault_tolerance: FaultTolerance = FaultTolerance()
    """What a job does when nodes are lost or come late; for orchestrator fleet."""
    tags: dict[str, str] = {}
    """Tags on every resource, at most 48; keys do not start with aws:, parallelcluster: or trainfabric:."""
