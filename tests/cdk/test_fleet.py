from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_autoscaling as autoscaling

from trainfabric_cdk import Capacity, SpotTrainingFleet
from trainfabric_cdk.fleet.launch_template import _InWords
from trainfabric_plan.contract import Role

Properties = Callable[[str], list[dict[str, Any]]]
Resources = Callable[[str], dict[str, Any]]
MakeFleet = Callable[..., SpotTrainingFleet]

GROUP, TEMPLATE = "AWS::AutoScaling::AutoScalingGroup", "AWS::EC2::LaunchTemplate"


def launch_data(stack: cdk.Stack, fleet: SpotTrainingFleet, resources: Resources, role: Role) -> dict[str, Any]:
    """Launch template data of a role in the synthesised template."""
    id = stack.resolve(fleet.launch_templates[role].ref)["Ref"]
    data: dict[str, Any] = resources(TEMPLATE)[id]["Properties"]["LaunchTemplateData"]
    return data


def test_a_deploy_starts_no_node_and_stops_none(make_fleet: MakeFleet, properties: Properties) -> None:
    make_fleet()

    assert [group["MinSize"] for group in properties(GROUP)] == ["0", "0"]
    assert all("DesiredCapacity" not in group for group in properties(GROUP))


@pytest.mark.parametrize(("nodes", "sizes"), [(1, ["1"]), (2, ["1", "1"]), (16, ["1", "15"])])
def test_one_node_is_the_coordinator_and_all_others_are_workers(
    make_fleet: MakeFleet, properties: Properties, nodes: int, sizes: list[str]
) -> None:
    make_fleet(nodes=nodes)

    assert [group["MaxSize"] for group in properties(GROUP)] == sizes


def test_groups_have_names_that_others_can_know_without_importing_them(
    make_fleet: MakeFleet, properties: Properties
) -> None:
    make_fleet()

    names = [group["AutoScalingGroupName"] for group in properties(GROUP)]
    assert names == ["trainfabric-demo-coordinator", "trainfabric-demo-worker"]


def test_all_nodes_are_of_one_type_in_one_subnet(make_fleet: MakeFleet, properties: Properties) -> None:
    make_fleet()

    assert [t["LaunchTemplateData"]["InstanceType"] for t in properties(TEMPLATE)] == ["p5.48xlarge"] * 2
    first, second = (group["VPCZoneIdentifier"] for group in properties(GROUP))
    assert first == second
    assert len(first) == 1


def test_the_coordinator_is_on_demand_and_workers_are_spot_that_terminates(
    stack: cdk.Stack, make_fleet: MakeFleet, resources: Resources
) -> None:
    fleet = make_fleet()

    assert "InstanceMarketOptions" not in launch_data(stack, fleet, resources, Role.COORDINATOR)
    assert launch_data(stack, fleet, resources, Role.WORKER)["InstanceMarketOptions"] == {
        "MarketType": "spot",
        "SpotOptions": {"InstanceInterruptionBehavior": "terminate", "SpotInstanceType": "one-time"},
    }


def test_the_price_of_spot_can_be_bounded(stack: cdk.Stack, make_fleet: MakeFleet, resources: Resources) -> None:
    fleet = make_fleet(workers=Capacity.spot(max_price=12.5))

    options = launch_data(stack, fleet, resources, Role.WORKER)["InstanceMarketOptions"]["SpotOptions"]
    assert options["MaxPrice"] == "12.5"


def test_workers_can_be_on_demand(stack: cdk.Stack, make_fleet: MakeFleet, resources: Resources) -> None:
    fleet = make_fleet(workers=Capacity.on_demand())

    assert "InstanceMarketOptions" not in launch_data(stack, fleet, resources, Role.WORKER)


def test_a_group_launches_the_default_version_of_its_own_template_and_tells_cloudwatch(
    stack: cdk.Stack, make_fleet: MakeFleet, resources: Resources
) -> None:
    fleet = make_fleet()

    for role in Role:
        group = resources(GROUP)[stack.resolve(fleet.groups[role].ref)["Ref"]]["Properties"]
        template = stack.resolve(fleet.launch_templates[role].ref)
        # CloudFormation never moves it: a deploy during a run leaves the group on the version that the job has made.
        assert group["LaunchTemplate"] == {
            "LaunchTemplateId": template,
            "Version": {"Fn::GetAtt": [template["Ref"], "DefaultVersionNumber"]},
        }
        assert "GroupInServiceInstances" in group["MetricsCollection"][0]["Metrics"]


def worker_template(stack: cdk.Stack, fleet: SpotTrainingFleet, resources: Resources) -> dict[str, Any]:
    """Properties of the workers' launch template in the synthesised template."""
    id = stack.resolve(fleet.launch_templates[Role.WORKER].ref)["Ref"]
    properties: dict[str, Any] = resources(TEMPLATE)[id]["Properties"]
    return properties


def _elsewhere(stack: cdk.Stack, group: autoscaling.CfnAutoScalingGroup) -> None:
    group.vpc_zone_identifier = ["subnet-other"]


def _unmeasured(stack: cdk.Stack, group: autoscaling.CfnAutoScalingGroup) -> None:
    group.metrics_collection = None


def _tagged(stack: cdk.Stack, group: autoscaling.CfnAutoScalingGroup) -> None:
    cdk.Tags.of(stack).add("team", "models")


def _larger(stack: cdk.Stack, group: autoscaling.CfnAutoScalingGroup) -> None:
    group.max_size = "9"


@pytest.mark.parametrize("change", [_elsewhere, _unmeasured, _tagged, _larger])
def test_what_changes_a_group_changes_its_template_so_that_its_version_is_looked_up_anew(
    stack: cdk.Stack,
    make_fleet: MakeFleet,
    resources: Resources,
    change: Callable[[cdk.Stack, autoscaling.CfnAutoScalingGroup], None],
) -> None:
    fleet = make_fleet()
    group = fleet.groups[Role.WORKER]
    before = _InWords(group).produce()

    change(stack, group)

    after = str(worker_template(stack, fleet, resources)["VersionDescription"])
    # The versions of jobs are described "trainfabric job ...", and a job starts from the newest that is not.
    assert re.fullmatch(r"group of at most 3, [0-9a-f]{12}", before)
    assert re.fullmatch(r"group of at most \d, [0-9a-f]{12}", after)
    assert after.rpartition(" ")[2] != before.rpartition(" ")[2]


def test_a_group_that_does_not_change_leaves_its_template_alone(
    stack: cdk.Stack, make_fleet: MakeFleet, resources: Resources
) -> None:
    fleet = make_fleet()

    described = _InWords(fleet.groups[Role.WORKER]).produce()

    assert worker_template(stack, fleet, resources)["VersionDescription"] == described


def test_spares_are_workers_beyond_those_of_the_plan(make_fleet: MakeFleet, properties: Properties) -> None:
    make_fleet(nodes=4, spares=2)

    assert [group["MaxSize"] for group in properties(GROUP)] == ["1", "5"]
    assert [group["MinSize"] for group in properties(GROUP)] == ["0", "0"]


def test_new_nodes_are_not_protected_from_scale_in_before_they_train(
    make_fleet: MakeFleet, properties: Properties
) -> None:
    make_fleet()

    assert all("NewInstancesProtectedFromScaleIn" not in group for group in properties(GROUP))


def test_nodes_reach_each_other_on_every_port_and_nobody_else_reaches_them(
    stack: cdk.Stack, make_fleet: MakeFleet, resources: Resources, properties: Properties
) -> None:
    fleet = make_fleet()

    (ingress,) = properties("AWS::EC2::SecurityGroupIngress")
    itself = ingress["SourceSecurityGroupId"]
    assert (ingress["GroupId"], ingress["IpProtocol"]) == (itself, "-1")  # the rendezvous and the controller with it
    groups = resources("AWS::EC2::SecurityGroup")
    assert [id for id, group in groups.items() if "SecurityGroupIngress" in group["Properties"]] == []
    for role in Role:
        interfaces = launch_data(stack, fleet, resources, role)["NetworkInterfaces"]
        assert all(interface["Groups"] == [itself] for interface in interfaces)


def test_nodes_are_told_the_ports_of_the_rendezvous_and_the_controller(
    stack: cdk.Stack, make_fleet: MakeFleet, resources: Resources
) -> None:
    fleet = make_fleet()

    for role in Role:
        script = str(launch_data(stack, fleet, resources, role)["UserData"])
        assert "TRAINFABRIC_RENDEZVOUS_PORT=29400" in script
        assert "TRAINFABRIC_CONTROL_PORT=29401" in script


@pytest.mark.parametrize("role", Role)
def test_groups_instances_and_volumes_carry_environment_and_role(
    stack: cdk.Stack, make_fleet: MakeFleet, resources: Resources, role: Role
) -> None:
    fleet = make_fleet()

    expected = {"trainfabric:environment": "demo", "trainfabric:role": role.value}
    group = resources(GROUP)[stack.resolve(fleet.groups[role].ref)["Ref"]]["Properties"]
    assert {tag["Key"]: tag["Value"] for tag in group["Tags"]} == expected
    specifications = launch_data(stack, fleet, resources, role)["TagSpecifications"]
    assert {s["ResourceType"]: {tag["Key"]: tag["Value"] for tag in s["Tags"]} for s in specifications} == {
        "instance": expected,
        "volume": expected,
        "network-interface": expected,
    }


def test_a_node_with_one_interface_may_have_a_public_address_in_a_public_subnet(
    stack: cdk.Stack, make_fleet: MakeFleet, resources: Resources
) -> None:
    fleet = make_fleet(efa=False, associate_public_ip=True, nodes=1, subnet=lambda network: network.public_subnet)

    (interface,) = launch_data(stack, fleet, resources, Role.COORDINATOR)["NetworkInterfaces"]
    assert interface["AssociatePublicIpAddress"] is True
