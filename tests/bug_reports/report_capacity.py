"""Reports about ways to buy nodes, placement groups and launches."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Template

from tests.bug_reports.conftest import Leave
from tests.bug_reports.scene import Scene, found_in_case
from trainfabric_cdk import Capacity, EfaClusterPlacementGroup, ParallelClusterStack
from trainfabric_cdk.cluster.parallelcluster.configuration import Queue

reported = pytest.mark.reported

BLOCK, RESERVATION = Capacity.block("cr-0123456789abcdef0"), Capacity.reservation("cr-0123456789abcdef0")


@reported(
    "terraform-aws-modules/terraform-aws-eks/pull/3730",
    "terraform-aws-modules/terraform-aws-eks/issues/3661",
    "aws/aws-parallelcluster/pull/6311",
    met="InsufficientInstanceCapacity, although it is reserved: EFA forced a placement group of its own on the nodes",
    does="Nodes of a block stand in no group, those of a reservation in the one that it was made in, or in none:",
)
def test_reserved_nodes_are_forced_into_no_placement_group(evidence: Leave) -> None:
    for workers in (BLOCK, RESERVATION):
        scene = Scene()
        scene.fleet(workers=workers)

        assert scene.of_type("AWS::EC2::PlacementGroup") == {}
        assert [launch.get("Placement") for launch in scene.launches()] == [None, None]
    evidence("AWS::EC2::PlacementGroup: none, Placement: none")
    named = Capacity.reservation("cr-0123456789abcdef0", placement_group_name="ours")
    scene = Scene()
    scene.fleet(workers=named)
    assert {launch["Placement"]["GroupName"] for launch in scene.launches()} == {"ours"}
    evidence({"Placement": scene.launches()[0]["Placement"]})


@reported(
    "awslabs/awsome-distributed-ai/issues/353",
    met="A Capacity Block launched into a placement group",
    does="Refused at synth, and found by `trainfabric lint`:",
)
def test_a_capacity_block_in_a_placement_group_is_refused(evidence: Leave, tmp_path: Path) -> None:
    scene = Scene()
    evidence(scene.refusal(workers=BLOCK, placement_group=EfaClusterPlacementGroup(scene.stack, "Placement")))
    evidence(found_in_case("capacity-block-placement-group", tmp_path))


@reported(
    "awslabs/awsome-distributed-ai/issues/1171",
    "awslabs/awsome-distributed-ai/issues/1263",
    "aws/aws-cdk/pull/35453",
    met="A targeted On-Demand Capacity Reservation cannot be used: the template always says MarketType capacity-block",
    does="A reservation has a target and no market options, a block has both; mixtures are found by the linter:",
)
def test_a_reservation_has_a_target_and_no_market(evidence: Leave, tmp_path: Path) -> None:
    scene = Scene()

    scene.fleet(workers=RESERVATION)

    for launch in scene.launches():
        assert "InstanceMarketOptions" not in launch
        target = launch["CapacityReservationSpecification"]["CapacityReservationTarget"]
        assert target == {"CapacityReservationId": "cr-0123456789abcdef0"}
    evidence({"CapacityReservationTarget": target})
    evidence(found_in_case("reservation-market-type", tmp_path))


@reported(
    "aws/aws-parallelcluster/issues/3809",
    met="Spot nodes that stop or hibernate instead of terminating keep their place, and jobs wait",
    does="Interrupted nodes terminate; anything else in a placement group is found by `trainfabric lint`:",
)
def test_interrupted_nodes_terminate(evidence: Leave, tmp_path: Path) -> None:
    scene = Scene()

    scene.fleet()

    options = [launch["InstanceMarketOptions"] for launch in scene.launches() if "InstanceMarketOptions" in launch]
    assert [one["SpotOptions"]["InstanceInterruptionBehavior"] for one in options] == ["terminate"]
    evidence(options[0])
    evidence(found_in_case("spot-stop-in-placement-group", tmp_path))


@reported(
    "kirodotdev/KiroCrew/issues/2647",
    "kirodotdev/KiroCrew/issues/2730",
    "github-aws-runners/terraform-aws-github-runner/issues/3700",
    "aws-samples/sample-OpenClaw-on-AWS-with-Bedrock/issues/51",
    met="“User data is limited to 16384 bytes”, at launch, once references had been filled in",
    does="Measured at synth with every reference at its longest:",
)
def test_user_data_that_could_grow_too_large_is_refused(evidence: Leave) -> None:
    evidence(Scene().refusal(boot_commands=["# " + "x" * 16_000]))


@reported(
    "awslabs/awsome-distributed-ai/issues/647",
    met="Libfabric -12: 64 KB of locked memory, since limits.d does not apply to services",
    does="The units that start ranks lift the limit:",
)
def test_services_that_start_ranks_may_lock_all_memory(evidence: Leave) -> None:
    boot = Path(__file__).parents[2] / "training/trainfabric_node/boot"
    for name in ("launcher", "command"):
        assert "LimitMEMLOCK=infinity" in (boot / f"trainfabric-{name}.service").read_text().splitlines()
        evidence(f"trainfabric-{name}.service: LimitMEMLOCK=infinity")


@reported(
    "aws/aws-ofi-nccl/issues/982",
    "aws/aws-ofi-nccl/issues/76",
    "aws/aws-ofi-nccl/pull/986",
    "awslabs/awsome-distributed-ai/issues/86",
    met="NCCL_ALGO or NCCL_PROTO set by hand: NCCL does not start, or the plugin's tuner is off",
    does="We never set them; `trainfabric lint` warns of user data that does:",
)
def test_forced_algorithms_of_nccl_are_warned_of(evidence: Leave, tmp_path: Path) -> None:
    training = Path(__file__).parents[2] / "training"
    ours = [path for path in training.rglob("*.sh") if "NCCL_ALGO" in path.read_text()]
    assert ours == []
    evidence(found_in_case("nccl-forced", tmp_path))


@reported(
    "aws/aws-parallelcluster/issues/7287",
    "aws/aws-parallelcluster/issues/6903",
    "aws/aws-parallelcluster/issues/7239",
    met="ParallelCluster before 3.14.1 makes Lambdas of Python 3.9, which AWS has blocked since August 2026",
    does="Refused, and found by `trainfabric lint` in any template:",
)
def test_releases_of_parallelcluster_that_cannot_deploy_are_found(evidence: Leave, tmp_path: Path) -> None:
    evidence(found_in_case("parallelcluster-version", tmp_path))


@reported(
    "aws/aws-parallelcluster/issues/3373",
    met="The head node times out: “Waiting for static fleet capacity”, for nodes that EC2 does not have",
    does="Nodes are asked for by jobs; only a Capacity Block, which is there, is launched at once:",
)
def test_a_cluster_does_not_wait_for_nodes_that_ec2_may_not_have(evidence: Leave) -> None:
    cases: tuple[tuple[Literal["SPOT", "ONDEMAND", "CAPACITY_BLOCK"], int], ...]
    cases = (("SPOT", 0), ("ONDEMAND", 0), ("CAPACITY_BLOCK", 4))
    for capacity, least in cases:
        queue = Queue(
            name="q",
            capacity=capacity,
            instance_type="p5.48xlarge",
            most_nodes=4,
            efa=True,
            reservation_id="cr-0123456789abcdef0" if least else None,
        )
        resource = queue.compute_resource()
        assert (resource["MinCount"], resource["MaxCount"]) == (least, 4)
        evidence(f"{capacity}: MinCount {resource['MinCount']}, MaxCount {resource['MaxCount']}")


@reported(
    "aws/aws-parallelcluster/issues/3514",
    "aws/aws-parallelcluster/issues/6904",
    met="A cluster cannot be moved to another release of ParallelCluster in place",
    does="Another release is another cluster, by its logical id and its name, which carry the release:",
)
def test_another_release_is_another_cluster(evidence: Leave) -> None:
    for version in ("3.15.0", "3.16.1"):
        scene = Scene()
        cluster = ParallelClusterStack(
            scene.app,
            "Cluster",
            environment="demo",
            version=version,
            vpc=scene.network.vpc,
            subnet=scene.network.private_subnet,
            security_group=scene.nodes,
            instance_type="p5.48xlarge",
            nodes=4,
            data_bucket=scene.data,
            checkpoint_bucket=scene.checkpoints,
            file_system_id="fs-0123456789abcdef0",
            env=cdk.Environment(account="123456789012", region="us-east-1"),
        )
        ids = list(Template.from_stack(cluster).find_resources("Custom::PclusterCluster"))
        assert ids == [f"Cluster{version.replace('.', '')}"]
        evidence(f"{ids[0]}: {cluster.cluster_name}")


@reported(
    "aws/aws-parallelcluster/issues/6329",
    "aws/aws-parallelcluster/pull/6373",
    met="Deleting fails: the placement group is in use, by instances that are still shutting down",
    does="Groups of nodes refer to templates and these to the placement group, so CloudFormation deletes it last, when "
    "the Auto Scaling groups have ended their instances:",
)
def test_the_placement_group_goes_after_the_nodes(evidence: Leave) -> None:
    scene = Scene()

    scene.fleet()

    (placement,) = scene.of_type("AWS::EC2::PlacementGroup")
    templates = scene.of_type("AWS::EC2::LaunchTemplate")
    for name, template in templates.items():
        assert template["Properties"]["LaunchTemplateData"]["Placement"]["GroupName"] == {
            "Fn::GetAtt": [placement, "GroupName"]
        }
        users = [
            group
            for group, one in scene.of_type("AWS::AutoScaling::AutoScalingGroup").items()
            if one["Properties"]["LaunchTemplate"]["LaunchTemplateId"] == {"Ref": name}
        ]
        assert len(users) == 1
        evidence(f"{users[0]} → {name} → {placement}")


@reported(
    "buildkite/elastic-ci-stack-for-aws/pull/858",
    "aws/amazon-cloudwatch-agent-test/pull/145",
    met="Containers do not reach the instance metadata: with IMDSv2 the answer may make one hop by default",
    does="Two hops and tokens alone; one hop is found by `trainfabric lint`:",
)
def test_containers_reach_the_metadata(evidence: Leave, tmp_path: Path) -> None:
    scene = Scene()

    scene.fleet()

    for launch in scene.launches():
        options = {name: launch["MetadataOptions"][name] for name in ("HttpTokens", "HttpPutResponseHopLimit")}
        assert options == {"HttpTokens": "required", "HttpPutResponseHopLimit": 2}
    evidence({"MetadataOptions": options})
    evidence(found_in_case("metadata-one-hop", tmp_path))
