"""What a `ParallelClusterStack` takes beside its queue: a home, static nodes, SSH, boundaries, images."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Annotations, Match, Template

from tests.cdk.clusters import CONFIGURATION, QUEUE, MakeCluster, cluster_of
from trainfabric_cdk import Capacity, EfaSecurityGroup, PropertyError, SharedHome, TrainingVpc

BLOCK = Capacity.block("cr-0123456789abcdef0")


def home(kind: str, *, of_others: bool = False) -> Callable[[TrainingVpc], SharedHome]:
    """A shared home in the network of the cluster, for its nodes or for those of another security group."""

    def make(network: TrainingVpc) -> SharedHome:
        stack = cdk.Stack.of(network)
        nodes = cast(EfaSecurityGroup, stack.node.find_child("Nodes"))
        group = EfaSecurityGroup(stack, "Others", vpc=network.vpc) if of_others else nodes
        return SharedHome(
            stack, "Home", kind=kind, vpc=network.vpc, subnet=network.private_subnet, client_security_group=group
        )

    return make


def test_a_shared_home_is_mounted_over_tls_beside_lustre(make_cluster: MakeCluster) -> None:
    _, cluster = cluster_of(make_cluster(shared_home=home("efs")))

    lustre, shared = cluster["ClusterConfiguration"]["SharedStorage"]
    assert lustre["Name"] == "lustre"
    assert shared.pop("EfsSettings")["EncryptionInTransit"] is True
    assert shared == {"Name": "home", "MountDir": "/shared", "StorageType": "Efs"}


def test_the_cluster_waits_for_the_home_and_for_the_rule_that_its_provider_looks_for(make_cluster: MakeCluster) -> None:
    stack = make_cluster(shared_home=home("efs"))

    ((id, rule),) = Template.from_stack(stack).find_resources("AWS::EC2::SecurityGroupEgress").items()
    assert {name: rule["Properties"][name] for name in ("IpProtocol", "FromPort", "ToPort")} == {
        "IpProtocol": "tcp",
        "FromPort": 2049,
        "ToPort": 2049,
    }
    ((_, cluster),) = Template.from_stack(stack).find_resources("Custom::PclusterCluster").items()
    assert id in cluster["DependsOn"]
    assert [one.stack_name for one in stack.dependencies] == ["Demo"]


@pytest.mark.parametrize("of_others", [False, True])
def test_a_home_that_lets_in_other_nodes_is_warned_of(make_cluster: MakeCluster, of_others: bool) -> None:
    stack = make_cluster(shared_home=home("efs", of_others=of_others))

    found = Annotations.from_stack(stack).find_warning("*", Match.string_like_regexp("shared_home lets in"))
    assert len(found) == of_others


def test_ssh_reaches_the_head_node_from_nowhere_unless_somebody_says_from_where(make_cluster: MakeCluster) -> None:
    _, closed = cluster_of(make_cluster())

    assert closed["ClusterConfiguration"]["HeadNode"]["Ssh"] == {"AllowedIps": "127.0.0.1/32"}


@pytest.mark.parametrize("source", ["10.20.0.0/16", "0.0.0.0/0", "pl-0123456789abcdef0", "pl-12345678"])
def test_ssh_comes_from_a_range_or_a_prefix_list(make_cluster: MakeCluster, source: str) -> None:
    _, cluster = cluster_of(make_cluster(ssh_from=source))

    assert cluster["ClusterConfiguration"]["HeadNode"]["Ssh"] == {"AllowedIps": source}


def test_nodes_that_stay_are_static_and_roles_are_bounded(make_cluster: MakeCluster) -> None:
    boundary = "arn:aws:iam::123456789012:policy/boundary"
    _, cluster = cluster_of(make_cluster(workers=Capacity.on_demand(), static_nodes=8, permissions_boundary=boundary))

    (queue,) = cluster["ClusterConfiguration"]["Scheduling"]["SlurmQueues"]
    (resource,) = queue["ComputeResources"]
    assert (resource["MinCount"], resource["MaxCount"]) == (8, 8)
    assert cluster["ClusterConfiguration"]["Iam"] == {"PermissionsBoundary": boundary}


def test_gpus_are_checked_before_each_job_and_nodes_kept_for_one_job_if_asked(make_cluster: MakeCluster) -> None:
    plain, asked = (
        replace(CONFIGURATION, queues=(one,)).as_dict()["Scheduling"]["SlurmQueues"][0]
        for one in (QUEUE, replace(QUEUE, gpu_health_checks=True, exclusive_jobs=True))
    )

    added = {"HealthChecks": {"Gpu": {"Enabled": True}}, "JobExclusiveAllocation": True}
    assert asked == {**plain, **added}
    _, cluster = cluster_of(make_cluster(gpu_health_checks=True, exclusive_jobs=True))
    assert added.items() <= cluster["ClusterConfiguration"]["Scheduling"]["SlurmQueues"][0].items()


@pytest.mark.parametrize(("instance_type", "warned"), [("p4d.24xlarge", True), ("g6e.12xlarge", False)])
def test_checks_that_may_outlast_the_patience_of_slurm_are_warned_of(
    make_cluster: MakeCluster, instance_type: str, warned: bool
) -> None:
    stack = make_cluster(instance_type=instance_type, gpu_health_checks=True)

    found = Annotations.from_stack(stack).find_warning("*", Match.string_like_regexp("gpu_health_checks"))
    assert [str(one.entry.data) for one in found] == [
        "Slurm: gpu_health_checks may take longer on p4d.24xlarge than Slurm waits for them: a job does not start "
        "then; leave them off, or see aws-parallelcluster issue 6777 for what to set "
        "[ack: trainfabric:gpuHealthChecks]"
    ] * warned


def test_nobody_is_bounded_unless_asked(make_cluster: MakeCluster) -> None:
    _, cluster = cluster_of(make_cluster())

    assert "Iam" not in cluster["ClusterConfiguration"]


def test_static_spot_nodes_are_warned_of(make_cluster: MakeCluster) -> None:
    stack = make_cluster(static_nodes=1)

    (warning,) = Annotations.from_stack(stack).find_warning("*", Match.string_like_regexp("MinCount"))
    assert "trainfabric:pcluster-static-spot" in str(warning.entry.data)


def test_nodes_of_a_block_are_all_static_whether_it_is_said_or_not(make_cluster: MakeCluster) -> None:
    _, cluster = cluster_of(make_cluster(workers=BLOCK, static_nodes=8))

    (queue,) = cluster["ClusterConfiguration"]["Scheduling"]["SlurmQueues"]
    assert queue["ComputeResources"][0]["MinCount"] == 8


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"gpu_health_checks": True, "instance_type": "c5n.18xlarge"},
            "gpu_health_checks must be off for c5n.18xlarge, which has no GPUs of NVIDIA, got True",
        ),
        (
            {"shared_home": home("openzfs")},
            "shared_home must be on EFS: ParallelCluster mounts OpenZFS only where the ports of NFS 3 are open as "
            "well, got one on OpenZFS; use kind='efs'",
        ),
        (
            {"shared_home": home("efs"), "mount_point": "/shared/fsx"},
            "mount_point must be outside of /shared, where the nodes mount the shared home, got /shared/fsx; use /fsx, "
            "or have no shared home",
        ),
        ({"static_nodes": 9}, "static_nodes must be at most the 8 of nodes, got 9"),
        ({"static_nodes": -1}, "static_nodes must be at least 0, got -1"),
        ({"static_nodes": 1.5}, "static_nodes must be a whole number, got 1.5"),
        (
            {"static_nodes": 4, "workers": BLOCK},
            "static_nodes must be left out for a Capacity Block, whose nodes are all static, got 4",
        ),
        *(
            (
                {"ssh_from": source},
                "ssh_from must be a range of IPv4 addresses that begins at its first, such as 10.20.0.0/16, or a "
                f"prefix list (pl-…), got {source!r}",
            )
            for source in ("10.20.0.5/16", "10.20.0.5", "10.20.0.0/33", "pl-xyz", "", "fd00::/8", "10.0.0.0/255.0.0.0")
        ),
        (
            {"permissions_boundary": "boundary"},
            "Iam.PermissionsBoundary must be the ARN of a policy, got boundary",
        ),
        ({"permissions_boundary": ""}, "Iam.PermissionsBoundary must be the ARN of a policy, got "),
        (
            {"custom_ami": "", "version": "3.16.1"},
            "Image.CustomAmi must be ami- and 8 or 17 letters and digits, got ",
        ),
    ],
)
def test_settings_that_parallelcluster_refuses_are_refused(
    make_cluster: MakeCluster, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(PropertyError) as refused:
        make_cluster(**given)

    assert str(refused.value) == f"Slurm: {message}"


def test_a_cluster_of_an_image_whose_release_is_named_is_made(make_cluster: MakeCluster) -> None:
    id, cluster = cluster_of(make_cluster(custom_ami="ami-12345678", version="3.15.0"))

    assert id == "Cluster3150"
    assert cluster["ClusterConfiguration"]["Image"]["CustomAmi"] == "ami-12345678"
