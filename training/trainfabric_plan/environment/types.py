"""The types of the environment file. Their docstrings become the descriptions in its JSON Schema."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

from trainfabric_plan.environment.bucket_names import checked_bucket_name
from trainfabric_plan.layout import Layout
from trainfabric_plan.model import Strict
from trainfabric_plan.mount_points import MOUNT_POINT_PATTERN
from trainfabric_plan.policy import FaultTolerance

Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{1,29}$")]
BucketName = Annotated[
    str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$"), AfterValidator(checked_bucket_name)
]
Region = Annotated[str, StringConstraints(pattern=r"^[a-z]{2}(-[a-z]+)+-\d$")]


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


class Bucket(Strict):
    """A bucket that exists already."""

    name: BucketName
    """Name of the bucket, in the environment's region and account."""
    kms_key_arn: (
        Annotated[str, StringConstraints(pattern=r"^arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/[A-Za-z0-9-]+$")] | None
    ) = None
    """ARN of the KMS key that encrypts the bucket, if one does: the nodes may then use it. The key's own policy must
    let FSx use it as well (docs/how-to/use-existing-resources.md)."""


class Lustre(Strict):
    """The FSx for Lustre file system (PERSISTENT_2, SSD), linked to the data bucket."""

    capacity_gib: int = 1200
    """1200, or a multiple of 2400."""
    throughput_mbps_per_tib: int = 125
    """125, 250, 500 or 1000 MB/s per TiB."""
    compression: Literal["lz4", "none"] = "lz4"
    """Compression of the data on disk."""
    mount_point: Annotated[str, StringConstraints(pattern=MOUNT_POINT_PATTERN)] = "/fsx"
    """Where the nodes mount it: no directory of the system."""


class Storage(Strict):
    """Buckets and the file system."""

    data_bucket: Bucket | None = None
    """An existing bucket for the training data; one is made if not given."""
    checkpoint_bucket: Bucket | None = None
    """An existing bucket for checkpoints and job records; one is made if not given."""
    lustre: Lustre = Lustre()
    """The file system that caches the data bucket for the nodes."""
    retain: bool = True
    """Keep buckets and file system when the environment is destroyed. `false` deletes empty buckets; a file system goes
    with its data, so it needs the context `trainfabric:deleteContents` with the environment's name as well."""


class Fleet(Strict):
    """The nodes."""

    instance_type: Annotated[str, BeforeValidator(_one_instance_type)]
    """One EC2 instance type for every node, such as p5.48xlarge."""
    nodes: Annotated[int, Field(ge=1)]
    """Number of nodes, the coordinator among them."""
    spares: Annotated[int, Field(ge=0, le=64)] = 0
    """Workers beyond nodes that a job keeps up and warm, billed like the others, to take the place of a lost node at
    once."""
    workers: Literal["spot", "on_demand"] = "spot"
    """How the workers are bought; the coordinator is always on demand."""
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
    """What runs on the nodes."""

    recipe: str
    """Name of a recipe, such as tiny_cpu."""
    layout: Layout | None = None
    """Degrees of parallelism; the planner chooses if not given."""
    ranks_per_node: Annotated[int, Field(ge=1)] | None = None
    """Ranks on each node; one per accelerator if not given."""


class ParallelCluster(Strict):
    """Settings of the Slurm cluster when orchestrator is parallelcluster."""

    version: Annotated[str, StringConstraints(pattern=r"^3\.\d+\.\d+$")] = "3.16.1"
    """AWS ParallelCluster release."""
    head_node_instance_type: str = "m7i.2xlarge"
    """Instance type of the head node: one of the catalog, x86_64."""


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
