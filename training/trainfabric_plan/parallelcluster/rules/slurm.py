"""Slurm's own settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trainfabric_plan.parallelcluster.broken import Broken
from trainfabric_plan.parallelcluster.rule import VALIDATORS, error, warning
from trainfabric_plan.parallelcluster.view import Cluster, Part

_OF_SLURM = frozenset(
    [
        "epilog",
        "grestypes",
        "launchparameters",
        "prolog",
        "reconfigflags",
        "resumefailprogram",
        "resumeprogram",
        "resumetimeout",
        "slurmctldhost",
        "slurmctldlogfile",
        "slurmctldparameters",
        "slurmdlogfile",
        "slurmuser",
        "suspendexcnodes",
        "suspendprogram",
        "suspendtime",
        "taskplugin",
        "treewidth",
    ]
)
_OF_ACCOUNTING = frozenset(
    [
        "accountingstoragetype",
        "accountingstoragehost",
        "accountingstorageport",
        "accountingstorageuser",
        "jobacctgathertype",
    ]
)
_OF_A_QUEUE = frozenset(["nodes", "partitionname", "resumetimeout", "state", "suspendtime", "oversubscribe"])
_OF_A_RESOURCE = frozenset(["cpus", "gres", "nodeaddr", "nodehostname", "nodename", "state", "weight"])
_REMEDY = {
    "prolog": "put the script into /opt/slurm/etc/scripts/prolog.d of the head node",
    "epilog": "put the script into /opt/slurm/etc/scripts/epilog.d of the head node",
    "suspendtime": "use SlurmSettings.ScaledownIdletime",
    "oversubscribe": "use JobExclusiveAllocation",
    "resumetimeout": "use DevSettings.Timeouts.ComputeNodeBootstrapTimeout",
}


def _settings(cluster: Cluster) -> Iterator[Broken]:
    refused = _OF_SLURM | (_OF_ACCOUNTING if cluster.slurm.has("Database") else frozenset())
    for number, one in enumerate(_maps(cluster.slurm.get("CustomSlurmSettings"))):
        if len(one) == 1:  # several keys in one mapping define nodes or partitions of the user's own
            yield from _refused(cluster.slurm.path(f"CustomSlurmSettings[{number}]"), one, refused)
    for part, names in (
        *((queue, _OF_A_QUEUE) for queue in cluster.queues),
        *((resource, _OF_A_RESOURCE) for resource in cluster.resources),
    ):
        yield from _refused(part.path("CustomSlurmSettings"), part.section("CustomSlurmSettings").raw, names)


def _refused(at: str, settings: Mapping[Any, Any], refused: frozenset[str]) -> Iterator[Broken]:
    for name in settings:
        if str(name).lower() in refused:
            remedy = _REMEDY.get(str(name).lower())
            yield Broken(at=at, rule="left to ParallelCluster, which writes it itself", got=str(name), remedy=remedy)


def _node_names(cluster: Cluster) -> Iterator[Broken]:
    for number, one in enumerate(_maps(cluster.slurm.get("CustomSlurmSettings"))):
        for name, value in one.items():
            if str(name).lower() == "nodename" and ("-st-" in str(value) or "-dy-" in str(value)):
                at = cluster.slurm.path(f"CustomSlurmSettings[{number}]", str(name))
                rule = "without -st- and -dy-, by which ParallelCluster's daemons know their own nodes"
                yield Broken(at=at, rule=rule, got=str(value))


def _one_source(cluster: Cluster) -> Iterator[Broken]:
    slurm = cluster.slurm
    if slurm.count("CustomSlurmSettings") and slurm.has("CustomSlurmSettingsIncludeFile"):
        rule = "left out beside CustomSlurmSettings"
        yield Broken(at=slurm.path("CustomSlurmSettingsIncludeFile"), rule=rule, got="both")


def _accounting(cluster: Cluster) -> Iterator[Broken]:
    slurm = cluster.slurm
    if slurm.has("Database") and slurm.has("ExternalSlurmdbd"):
        yield Broken(at=slurm.path("ExternalSlurmdbd"), rule="left out beside Database", got="both")
    if slurm.has("ExternalSlurmdbd") and not slurm.has("MungeKeySecretArn"):
        rule = "given with ExternalSlurmdbd: both sides need the same key"
        yield Broken(at=slurm.path("MungeKeySecretArn"), rule=rule, got="nothing")


def _update_strategy(cluster: Cluster) -> Iterator[Broken]:
    given = cluster.slurm.text("QueueUpdateStrategy")
    if given == "COMPUTE_FLEET_STOP" or not cluster.slurm.has("QueueUpdateStrategy"):
        rule = "DRAIN or TERMINATE: otherwise a change of a queue asks for a stopped fleet"
        remedy = "an update through CloudFormation fails then, since nothing stops the fleet before it"
        got = given or "nothing"
        yield Broken(at=cluster.slurm.path("QueueUpdateStrategy"), rule=rule, got=got, remedy=remedy)


def _requeue(cluster: Cluster) -> Iterator[Broken]:
    settings = _maps(cluster.slurm.get("CustomSlurmSettings"))
    off = any(
        str(name).lower() == "jobrequeue" and str(value) == "0" for one in settings for name, value in one.items()
    )
    spot = [queue for queue in cluster.queues if queue.capacity == "SPOT"]
    if spot and off:
        rule = "1 where queues are spot: a job whose node EC2 takes is lost otherwise"
        yield Broken(at=cluster.slurm.path("CustomSlurmSettings", "JobRequeue"), rule=rule, got="0")


def _maps(value: object) -> list[Mapping[Any, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def _scripts(cluster: Cluster) -> Iterator[Broken]:
    for part in (cluster.head, *cluster.queues, *cluster.pools):
        for at, address in _addresses(part):
            if not address.startswith(("s3://", "https://")):
                yield Broken(at=at, rule="an address of s3:// or https://", got=address)


def _readable(cluster: Cluster) -> Iterator[Broken]:
    for part in (cluster.head, *cluster.queues):
        iam = part.section("Iam")
        if iam.has("InstanceRole") or iam.has("InstanceProfile") or iam.has("AdditionalIamPolicies"):
            continue  # a role of one's own may allow anything
        buckets = [bucket for access in iam.parts("S3Access") if (bucket := access.text("BucketName"))]
        for at, address in _addresses(part):
            bucket = address.removeprefix("s3://").split("/")[0]
            if (
                address.startswith("s3://")
                and iam.count("S3Access") == len(buckets)
                and not {bucket, "*"} & set(buckets)
            ):
                rule = f"in a bucket that {part.at or 'the node'} may read"
                remedy = f"add {bucket} to {part.path('Iam', 'S3Access')}"
                yield Broken(at=at, rule=rule, got=address, remedy=remedy)


def _addresses(part: Part) -> Iterator[tuple[str, str]]:
    for event in ("OnNodeStart", "OnNodeConfigured", "OnNodeUpdated"):
        actions = part.section("CustomActions", event)
        for one in (actions, *actions.parts("Sequence")):
            if address := one.text("Script"):
                yield one.path("Script"), address


RULES = (
    error(
        "pcluster-slurm-settings",
        _settings,
        title="Settings of Slurm leave alone what ParallelCluster writes",
        why="ParallelCluster refuses settings that it writes itself.",
    ),
    error(
        "pcluster-node-names",
        _node_names,
        title="Nodes of one's own are not named as ParallelCluster's",
        why="ParallelCluster's daemons would take the nodes for theirs.",
    ),
    error(
        "pcluster-slurm-include",
        _one_source,
        title="Settings of Slurm are given in the file or included",
        why="ParallelCluster takes one of both.",
    ),
    error(
        "pcluster-accounting",
        _accounting,
        title="Accounting has one database, and the key of an outside one",
        why="ParallelCluster refuses the combination.",
    ),
    warning(
        "pcluster-update-strategy",
        _update_strategy,
        title="A change of a queue needs no stopped fleet",
        why="The default asks for a stopped fleet, and the CloudFormation provider stops none: updates fail.",
        source="https://github.com/aws/aws-parallelcluster/issues/5675, read 2026-11",
    ),
    warning(
        "pcluster-spot-requeue",
        _requeue,
        title="Jobs on spot nodes are put back into the queue",
        why="Slurm requeues a job of a lost node only with JobRequeue=1.",
        source="Slurm documentation, slurm.conf, JobRequeue, read 2026-11",
    ),
    error(
        "pcluster-script-address",
        _scripts,
        title="Scripts are fetched from S3 or over https",
        why="ParallelCluster fetches scripts from S3 or over https alone.",
    ),
    warning(
        "pcluster-script-access",
        _readable,
        title="Nodes may read their scripts",
        why="The node cannot fetch its script, fails to start, and protects the cluster by stopping the queue.",
        source=VALIDATORS,
    ),
)
