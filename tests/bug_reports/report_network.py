"""Reports about interfaces, security groups and addresses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from aws_cdk import aws_ec2 as ec2

from tests.bug_reports.conftest import Leave
from tests.bug_reports.scene import Scene, found_in_case
from trainfabric_cdk import EfaClusterPlacementGroup
from trainfabric_plan.catalog import efa_interfaces, instance_type

reported = pytest.mark.reported


@reported(
    "aws/aws-cdk/issues/38558",
    "aws/aws-cdk/issues/9740",
    "aws/aws-cdk/issues/3254",
    "aws/aws-cdk/pull/38636",
    met="The CDK drops a security group's egress rule to itself, silently but for a warning, when everything may leave",
    does="`EfaSecurityGroup` has the rule to itself beside that to 0.0.0.0/0:",
)
def test_a_group_for_efa_lets_out_to_itself_and_to_the_world(evidence: Leave) -> None:
    scene = Scene()

    (to_itself,) = scene.properties("AWS::EC2::SecurityGroupEgress")
    (group,) = (one for one in scene.properties("AWS::EC2::SecurityGroup"))

    assert to_itself["DestinationSecurityGroupId"] == to_itself["GroupId"]
    assert to_itself["IpProtocol"] == "-1"
    assert [rule["CidrIp"] for rule in group["SecurityGroupEgress"]] == ["0.0.0.0/0"]
    evidence({name: to_itself[name] for name in ("GroupId", "DestinationSecurityGroupId", "IpProtocol")})


@reported(
    "aws/aws-parallelcluster/issues/3590",
    met="EfaSecurityGroupValidator refuses a group that looks right",
    does="`EfaSecurityGroup` has the two rules that it asks for, all traffic from and to itself:",
)
def test_a_group_for_efa_takes_in_all_and_lets_out_all_of_itself(evidence: Leave) -> None:
    scene = Scene()

    for way, peer in (("Ingress", "SourceSecurityGroupId"), ("Egress", "DestinationSecurityGroupId")):
        (rule,) = scene.properties(f"AWS::EC2::SecurityGroup{way}")
        assert (rule["IpProtocol"], rule[peer]) == ("-1", rule["GroupId"])
        evidence({way: {name: rule[name] for name in ("IpProtocol", "GroupId", peer)}})


@reported(
    "ofiwg/libfabric/pull/8889",
    met="EFA does not get from one availability zone to another",
    does="A fleet has one subnet; several zones are found by `trainfabric lint`:",
)
def test_nodes_with_efa_in_several_zones_are_found(evidence: Leave, tmp_path: Path) -> None:
    evidence(found_in_case("efa-several-zones", tmp_path))


@reported(
    "gardener/gardener-extension-provider-aws/issues/1832",
    "awslabs/awsome-distributed-ai/issues/546",
    "open-mpi/ompi/issues/6795",
    "aws/aws-ofi-nccl/issues/663",
    met="NCCL hangs with libfabric's error 4126, although all egress is open: EFA is not IP",
    does="A fleet warns of a group without the rule, and `trainfabric lint` finds it in any template:",
)
def test_a_group_that_efa_does_not_get_out_of_is_found(evidence: Leave, tmp_path: Path) -> None:
    scene = Scene()
    closed = ec2.SecurityGroup(scene.stack, "Closed", vpc=scene.network.vpc)

    scene.fleet(security_group=closed)

    (warning,) = [one for one in scene.warnings() if "securityGroupWithoutSelfEgress" in one]
    evidence(warning)
    evidence(found_in_case("efa-self-egress", tmp_path))


@reported(
    "aws/aws-parallelcluster/issues/7143",
    met="p6-b300 nodes do not launch: their first network card takes no EFA interface",
    does="The layout comes from the type's data: an ENA interface on card 0, EFA on cards 1 to 16:",
)
def test_the_first_card_of_p6_b300_carries_no_efa(evidence: Leave) -> None:
    scene = Scene()

    scene.fleet(instance_type="p6-b300.48xlarge")

    for launch in scene.launches():
        interfaces = launch["NetworkInterfaces"]
        assert [one["InterfaceType"] for one in interfaces if one["NetworkCardIndex"] == 0] == ["interface"]
        assert [one["NetworkCardIndex"] for one in interfaces if one["InterfaceType"] == "efa-only"] == [*range(1, 17)]
    evidence(slots(interfaces)[:2] + slots(interfaces)[-1:])


@reported(
    "eksctl-io/eksctl/pull/8692",
    met="One EFA interface is asked of every network card, one more than the type takes",
    does="The number is that of the type, not of its cards:",
)
def test_efa_interfaces_are_as_many_as_the_type_takes(evidence: Leave) -> None:
    row = instance_type("p6-b300.48xlarge")

    efa = [one for one in efa_interfaces(row) if one.type != "interface"]

    assert row.cards is not None
    assert (len(row.cards), len(efa), row.efa_interface_count) == (17, 16, 16)
    evidence(f"{row.name}: {len(row.cards)} cards, {len(efa)} EFA interfaces")


@reported(
    "eksctl-io/eksctl/issues/7520",
    met="“device index 2 exceeds the maximum devices for this network card”: the index was counted up over the cards",
    does="Device indexes stay within the card, and `trainfabric lint` finds those that do not:",
)
def test_device_indexes_stay_within_their_card(evidence: Leave, tmp_path: Path) -> None:
    layout = efa_interfaces(instance_type("p5.48xlarge"))

    assert {one.device for one in layout} == {0, 1}
    evidence([f"card {one.card} device {one.device} {one.type}" for one in (*layout[:3], layout[-1])])
    evidence(found_in_case("efa-card-or-device-index", tmp_path))


@reported(
    "aws/karpenter-provider-aws/pull/5666",
    "dstackai/dstack/pull/3865",
    "terraform-aws-modules/terraform-aws-eks/issues/3533",
    met="Nodes with several interfaces in a public subnet: the launch fails, or they never join",
    does="Refused at synth, and nothing is said about public addresses otherwise:",
)
def test_a_public_address_beside_several_interfaces_is_refused(evidence: Leave) -> None:
    evidence(Scene().refusal(associate_public_ip=True))
    scene = Scene()
    evidence(scene.refusal(subnet=scene.network.public_subnet))


@reported(
    "aws/aws-parallelcluster/pull/7457",
    "aws/aws-parallelcluster/pull/7262",
    met="Types with a single card have two interfaces since EFA got its own, and fail in public subnets as well",
    does="Counted from the layout, not from the cards:",
)
def test_a_type_with_one_card_has_two_interfaces_and_no_public_address(evidence: Leave) -> None:
    evidence(Scene().refusal(instance_type="c5n.18xlarge", image_id="ami-0123456789abcdef0", associate_public_ip=True))


@reported(
    "aws/aws-cdk/issues/21577",
    met="AWS Batch: groups of the compute environment and interfaces of the launch template exclude each other",
    does="Found by `trainfabric lint`:",
)
def test_groups_of_batch_beside_interfaces_are_found(evidence: Leave, tmp_path: Path) -> None:
    evidence(found_in_case("batch-groups-beside-interfaces", tmp_path))


@reported(
    "aws/aws-cdk/issues/30891",
    "aws/aws-cdk/issues/7928",
    "terraform-aws-modules/terraform-aws-eks/pull/1907",
    met="The CDK's launch template has no interfaces, and an override of it keeps groups that EC2 then refuses",
    does="Groups stand at the interfaces alone:",
)
def test_groups_stand_at_the_interfaces_and_not_at_the_instance(evidence: Leave) -> None:
    scene = Scene()

    scene.fleet()

    for launch in scene.launches():
        assert {"SecurityGroupIds", "SecurityGroups"} & launch.keys() == set()
        assert all(len(one["Groups"]) == 1 for one in launch["NetworkInterfaces"])
    evidence(f"{len(launch['NetworkInterfaces'])} interfaces, the first: {json.dumps(launch['NetworkInterfaces'][0])}")


@reported(
    "skypilot-org/skypilot/issues/8391",
    "aws/aws-ofi-nccl/issues/53",
    "aws-samples/aws-efa-nccl-baseami-pipeline/issues/1",
    met="One EFA interface on p4d and a quarter of its bandwidth: of several the launch failed, or a public address",
    does="All of them, always; fewer are found by `trainfabric lint`:",
)
def test_a_node_gets_every_efa_interface_of_its_type(evidence: Leave, tmp_path: Path) -> None:
    scene = Scene()

    scene.fleet(instance_type="p4d.24xlarge")

    for launch in scene.launches():
        assert len([one for one in launch["NetworkInterfaces"] if one["InterfaceType"] == "efa-only"]) == 4
    evidence(slots(launch["NetworkInterfaces"]))
    evidence(found_in_case("efa-unused-interfaces", tmp_path))


@reported(
    "aws/aws-cdk/issues/27587",
    met="The CDK's parser of instance types throws on names with a dash, such as p6-b200.48xlarge",
    does="Types are read by our own parser, and the CDK is never asked:",
)
def test_a_type_with_a_dash_is_deployed_like_any_other(evidence: Leave) -> None:
    scene = Scene()

    scene.fleet(instance_type="p6-b200.48xlarge", placement_group=EfaClusterPlacementGroup(scene.stack, "Placement"))

    assert {launch["InstanceType"] for launch in scene.launches()} == {"p6-b200.48xlarge"}
    evidence(f"InstanceType {scene.launches()[0]['InstanceType']}")
    with pytest.raises(Exception, match=r"MalformedInstanceTypeIdentifier|Malformed instance type"):
        ec2.InstanceType("p6-b200.48xlarge").architecture  # noqa: B018


def slots(interfaces: list[dict[str, object]]) -> list[str]:
    """Interfaces in words."""
    return [f"card {one['NetworkCardIndex']} device {one['DeviceIndex']} {one['InterfaceType']}" for one in interfaces]
