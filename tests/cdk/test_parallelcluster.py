from __future__ import annotations

from dataclasses import replace
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Annotations, Match, Template

from tests.cdk.clusters import CONFIGURATION, QUEUE, MakeCluster, cluster_of
from trainfabric_cdk import Capacity, PropertyError
from trainfabric_cdk.cluster.parallelcluster import ClusterConfiguration


def test_the_cluster_is_made_by_parallelclusters_own_provider_of_that_release(make_cluster: MakeCluster) -> None:
    stack = make_cluster(version="3.14.1")

    ((provider, nested),) = Template.from_stack(stack).find_resources("AWS::CloudFormation::Stack").items()
    assert nested["Properties"]["TemplateURL"] == {
        "Fn::Sub": "https://${AWS::Region}-aws-parallelcluster.s3.${AWS::Region}.${AWS::URLSuffix}"
        "/parallelcluster/3.14.1/templates/custom_resource/cluster.yaml"
    }
    _, cluster = cluster_of(stack)
    assert cluster["ServiceToken"] == {"Fn::GetAtt": [provider, "Outputs.ServiceToken"]}


def test_nothing_is_handed_to_the_provider_that_it_would_not_know(make_cluster: MakeCluster) -> None:
    _, cluster = cluster_of(make_cluster())

    assert set(cluster) == {"ServiceToken", "ClusterName", "ClusterConfiguration"}


def test_a_new_release_is_a_new_cluster(make_cluster: MakeCluster) -> None:
    id, cluster = cluster_of(make_cluster(version="3.15.0"))

    assert (id, cluster["ClusterName"]) == ("Cluster3150", "demo-3-15-0")


def test_the_cluster_waits_for_network_and_storage(make_cluster: MakeCluster, stack: cdk.Stack) -> None:
    storage = cdk.Stack(cdk.App.of(stack), "Storage", env=cdk.Environment(account="123456789012", region="us-east-1"))
    link = cdk.CfnResource(storage, "Link", type="AWS::FSx::DataRepositoryAssociation")

    slurm = make_cluster(depends_on=[link])
    cdk.App.of(stack).synth()

    assert [s.stack_name for s in slurm.dependencies] == ["Demo", "Storage"]


def test_queue_and_head_node_are_in_the_private_subnet_with_efa_and_a_placement_group(
    make_cluster: MakeCluster,
) -> None:
    _, cluster = cluster_of(make_cluster())

    configuration = cluster["ClusterConfiguration"]
    (queue,) = configuration["Scheduling"]["SlurmQueues"]
    assert queue["CapacityType"] == "SPOT"
    assert queue["Networking"]["PlacementGroup"] == {"Enabled": True}
    assert queue["ComputeResources"] == [
        {
            "Name": "train-nodes",
            "InstanceType": "p4d.24xlarge",
            "MinCount": 0,
            "MaxCount": 8,
            "Efa": {"Enabled": True},
        }
    ]
    assert queue["Networking"]["SubnetIds"] == [configuration["HeadNode"]["Networking"]["SubnetId"]]
    assert "AllocationStrategy" not in queue
    assert "AssignPublicIp" not in queue["Networking"]


def test_the_existing_file_system_is_mounted_and_nothing_else_said_about_it(make_cluster: MakeCluster) -> None:
    _, cluster = cluster_of(make_cluster(mount_point="/lustre"))

    assert cluster["ClusterConfiguration"]["SharedStorage"] == [
        {
            "Name": "lustre",
            "MountDir": "/lustre",
            "StorageType": "FsxLustre",
            "FsxLustreSettings": {"FileSystemId": "fs-0123456789abcdef0"},
        }
    ]


def test_queues_drain_on_an_update_because_the_provider_does_not_stop_the_fleet() -> None:
    assert CONFIGURATION.as_dict()["Scheduling"]["SlurmSettings"]["QueueUpdateStrategy"] == "DRAIN"


def test_nodes_read_the_data_and_write_checkpoints() -> None:
    expected = [
        {"BucketName": "data", "EnableWriteAccess": False},
        {"BucketName": "checkpoints", "EnableWriteAccess": True},
    ]
    configuration = CONFIGURATION.as_dict()
    (queue,) = configuration["Scheduling"]["SlurmQueues"]
    assert configuration["HeadNode"]["Iam"]["S3Access"] == expected
    assert queue["Iam"]["S3Access"] == expected


def test_on_demand_nodes_and_a_bounded_spot_price_are_said_so(make_cluster: MakeCluster) -> None:
    on_demand, bounded = replace(QUEUE, capacity="ONDEMAND"), replace(QUEUE, max_spot_price=9.5)

    assert "SpotPrice" not in on_demand.compute_resource()
    assert bounded.compute_resource()["SpotPrice"] == 9.5
    _, cluster = cluster_of(make_cluster(workers=Capacity.on_demand()))
    assert cluster["ClusterConfiguration"]["Scheduling"]["SlurmQueues"][0]["CapacityType"] == "ONDEMAND"


def test_a_custom_image_stands_beside_the_operating_system() -> None:
    assert CONFIGURATION.as_dict()["Image"] == {"Os": "ubuntu2404"}
    assert replace(CONFIGURATION, custom_ami="ami-12345678").as_dict()["Image"] == {
        "Os": "ubuntu2404",
        "CustomAmi": "ami-12345678",
    }


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"version": "3.14.0"},
            "Slurm: version must be a release 3.x.y from 3.14.1 on: Lambda refuses the Python of earlier ones, "
            "got 3.14.0; use 3.16.1",
        ),
        (
            {"version": "4"},
            "Slurm: version must be a release 3.x.y from 3.14.1 on: Lambda refuses the Python of earlier ones, "
            "got 4; use 3.16.1",
        ),
        (
            {"custom_ami": "ami-12345678"},
            "Slurm: version must be given with custom_ami: the release that the image was built for, got nothing; such "
            "as version='3.16.1'",
        ),
        ({"nodes": 0}, "Slurm: nodes must be at least 1, got 0"),
        ({"nodes": "8"}, "Slurm: nodes must be a whole number, got '8'"),
        (
            {"workers": "spot"},
            "Slurm: workers must be a Capacity, got 'spot'; use Capacity.spot(), .on_demand(), .block(), "
            ".reservation() or .interruptible_reservation()",
        ),
        (
            {"head_node_instance_type": "m7i.2xlrage"},
            "Slurm: catalog: instance type must be a known one, got m7i.2xlrage; did you mean m7i.2xlarge or "
            "m7i.24xlarge? (docs/how-to/add-an-instance-type.md says how to add one)",
        ),
        (
            {"mount_point": "/opt/slurm"},
            "Slurm: mount_point must be a directory that nothing else uses: mounting there hides files of the system, "
            "got '/opt/slurm'; use /fsx, or a directory below /mnt",
        ),
        (
            {"environment": "e" * 60},
            "Slurm: environment must be such that environment and version make at most 60 letters, digits and "
            f"hyphens, a letter first, got {'e' * 60}-3-16-1",
        ),
        (
            {"instance_type": "m7i.large"},
            "Slurm: instance_type must be a type with EFA while efa is on, got m7i.large; "
            "choose a type with EFA or set efa=False",
        ),
        (
            {"subnet": lambda network: network.public_subnet},
            "Slurm: subnet must be a private subnet for a node with 5 interfaces: EC2 gives it no public address "
            "and the launch fails, got public subnet Demo/Network/Public; use a private subnet with a NAT gateway, "
            "as TrainingVpc has, and no public address",
        ),
    ],
)
def test_what_parallelcluster_would_refuse_only_while_creating_is_refused_now(
    make_cluster: MakeCluster, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(PropertyError) as refused:
        make_cluster(**given)

    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("configuration", "message"),
    [
        (replace(CONFIGURATION, queues=()), "here: queues must be at least one, got none"),
        (
            replace(CONFIGURATION, queues=(QUEUE, QUEUE)),
            "here: queues must be of different names, got train, train",
        ),
        (
            replace(CONFIGURATION, queues=(replace(QUEUE, most_nodes=0),)),
            "here: queue.most_nodes must be at least 1, got 0",
        ),
        (
            replace(CONFIGURATION, queues=(replace(QUEUE, name="Train_1"),)),
            "here: queue.name must be 1 to 25 lower-case letters, digits and hyphens, a letter first, and not "
            "default, got 'Train_1'",
        ),
        (
            replace(CONFIGURATION, queues=(replace(QUEUE, capacity="ONDEMAND", max_spot_price=1.0),)),
            "here: queue.max_spot_price must be given only for capacity SPOT, got 1.0 with ONDEMAND; "
            "leave it out, or use capacity SPOT",
        ),
    ],
)
def test_a_configuration_says_what_is_wrong_with_it(configuration: ClusterConfiguration, message: str) -> None:
    assert [str(found) for found in configuration.mistakes("here")] == [message]


def test_a_sound_configuration_has_no_mistakes() -> None:
    assert list(CONFIGURATION.mistakes("here")) == []


@pytest.mark.parametrize(
    ("nodes", "head", "rule"),
    [
        (
            "p4d.24xlarge",
            "m7g.2xlarge",
            "x86_64, as p4d.24xlarge is: a cluster has one, got m7g.2xlarge, which is arm64",
        ),
        (
            "hpc7g.16xlarge",
            "m7i.2xlarge",
            "arm64, as hpc7g.16xlarge is: a cluster has one, got m7i.2xlarge, which is x86_64",
        ),
    ],
)
def test_a_head_node_of_another_architecture_than_the_nodes_is_refused(
    make_cluster: MakeCluster, nodes: str, head: str, rule: str
) -> None:
    with pytest.raises(PropertyError) as refused:
        make_cluster(instance_type=nodes, workers=Capacity.on_demand(), head_node_instance_type=head)

    other = {"m7g.2xlarge": "m7i.2xlarge", "m7i.2xlarge": "m7g.2xlarge"}[head]
    wanted = rule.format(nodes, head)
    assert str(refused.value) == f"Slurm: head_node_instance_type must be of architecture {wanted}; use {other}"


def test_a_cluster_of_arm64_has_a_head_node_of_arm64(make_cluster: MakeCluster) -> None:
    _, cluster = cluster_of(
        make_cluster(
            instance_type="hpc7g.16xlarge", workers=Capacity.on_demand(), head_node_instance_type="m7g.2xlarge"
        )
    )

    assert cluster["ClusterConfiguration"]["HeadNode"]["InstanceType"] == "m7g.2xlarge"


def test_values_of_the_cluster_that_are_settled_at_deploy_time_are_not_judged(make_cluster: MakeCluster) -> None:
    _, cluster = cluster_of(
        make_cluster(mount_point=cdk.Fn.import_value("mount"), head_node_instance_type=cdk.Fn.import_value("type"))
    )

    configuration = cluster["ClusterConfiguration"]
    assert configuration["SharedStorage"][0]["MountDir"] == {"Fn::ImportValue": "mount"}
    assert configuration["HeadNode"]["InstanceType"] == {"Fn::ImportValue": "type"}


def test_a_group_of_reservations_of_another_region_is_refused(make_cluster: MakeCluster) -> None:
    group = "arn:aws:resource-groups:eu-west-1:123456789012:group/ours"
    with pytest.raises(PropertyError) as refused:
        make_cluster(workers=Capacity.reservation(group))

    assert str(refused.value) == (f"Slurm: workers must be a resource group in us-east-1 of partition aws, got {group}")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"instance_type": "hpc7a.96xlarge"},
            "Slurm: workers must be bought in a way in which EC2 sells hpc7a.96xlarge: on-demand, got spot; choose one "
            "of these, or another instance type",
        ),
        (
            {
                "instance_type": "p6e-gb200.36xlarge",
                "workers": Capacity.on_demand(),
                "head_node_instance_type": "m7g.2xlarge",
            },
            "Slurm: placement_group must be absent for p6e-gb200.36xlarge: whether it starts in a cluster placement "
            "group is not known (no source says whether it starts in a cluster placement group; the nodes of an "
            "UltraServer stand together anyway), got one of ParallelCluster, for EFA; buy it with Capacity.block, "
            "or run `trainfabric catalog refresh --region R` where the type is offered",
        ),
    ],
)
def test_nodes_that_cannot_be_had_so_are_refused(
    make_cluster: MakeCluster, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(PropertyError) as refused:
        make_cluster(**given)

    assert str(refused.value) == message


def test_a_queue_that_does_not_fill_its_ultraservers_is_warned_of(make_cluster: MakeCluster) -> None:
    stack = make_cluster(
        instance_type="p6e-gb200.36xlarge",
        nodes=10,
        workers=Capacity.block("cr-0123456789abcdef0"),
        head_node_instance_type="m7g.2xlarge",
    )

    (warning,) = Annotations.from_stack(stack).find_warning("*", Match.string_like_regexp("UltraServer"))
    assert str(warning.entry.data) == (
        "p6e-gb200.36xlarge comes in UltraServers of 9 or 18 nodes, and 10 nodes leave 8 of them idle, which are paid "
        "for: use 18 nodes or spares, if the block has them [ack: trainfabric:partialUltraServer]"
    )
