from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_ec2 as ec2

from trainfabric_cdk import Capacity, PropertyError, SpotTrainingFleet, TrainingVpc
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


def test_interruption_warnings_reach_an_encrypted_topic(
    make_fleet: MakeFleet, properties: Properties, resources: Resources
) -> None:
    make_fleet()

    ((topic_id, topic),) = resources("AWS::SNS::Topic").items()
    (rule,), (key,) = properties("AWS::Events::Rule"), properties("AWS::KMS::Key")
    assert rule["EventPattern"] == {
        "source": ["aws.ec2"],
        "detail-type": ["EC2 Spot Instance Interruption Warning", "EC2 Instance Rebalance Recommendation"],
    }
    assert [target["Arn"] for target in rule["Targets"]] == [{"Ref": topic_id}]
    assert "KmsMasterKeyId" in topic["Properties"]
    assert key["EnableKeyRotation"] is True
    publishers = [s["Principal"].get("Service") for s in key["KeyPolicy"]["Statement"]]
    assert "events.amazonaws.com" in publishers


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"instance_type": "p5.48xlarg"},
            "Demo/Fleet: catalog: instance type must be a known one, got p5.48xlarg; did you mean p5.48xlarge or "
            "p5e.48xlarge? (docs/how-to/add-an-instance-type.md says how to add one)",
        ),
        (
            {"instance_type": ["p5.48xlarge", "p4d.24xlarge"]},
            "Demo/Fleet: instance_type must be one instance type, as text: EFA and the ranks need equal nodes, "
            "got p5.48xlarge, p4d.24xlarge",
        ),
        (
            {"instance_type": cdk.Fn.import_value("type")},
            "Demo/Fleet: instance_type must be a type of the catalog, got a token; "
            "give it as text: the interfaces of a node follow from it",
        ),
        (
            {"instance_type": "m7i.large"},
            "Demo/Fleet: instance_type must be a type with EFA while efa is on, got m7i.large; "
            "choose a type with EFA or set efa=False",
        ),
        (
            {"instance_type": "trn1.32xlarge"},
            "Demo/Fleet: image_id must be given for trn1.32xlarge: the default image has drivers for NVIDIA on x86_64, "
            "not for Trainium, got nothing; give the id of an image with its drivers",
        ),
        ({"nodes": 0}, "Demo/Fleet: nodes must be at least 1, got 0"),
        ({"nodes": 2.5}, "Demo/Fleet: nodes must be a whole number, got 2.5"),
        ({"nodes": float("inf")}, "Demo/Fleet: nodes must be a whole number, got inf"),
        ({"nodes": "4"}, "Demo/Fleet: nodes must be a whole number, got '4'"),
        ({"nodes": True}, "Demo/Fleet: nodes must be a whole number, got True"),
        ({"spares": -1}, "Demo/Fleet: spares must be at least 0, got -1"),
        ({"spares": 0.5}, "Demo/Fleet: spares must be a whole number, got 0.5"),
        (
            {"spares": cdk.Token.as_number(cdk.Fn.ref("Spares"))},
            "Demo/Fleet: spares must be at least 0, got a token; give it as a number: what is launched follows from it",
        ),
        (
            {"spares": 1, "nodes": 1},
            "Demo/Fleet: spares must be 0 for one node: spares take the place of workers, got 1; add nodes",
        ),
        (
            {"workers": "spot"},
            "Demo/Fleet: workers must be a Capacity, got 'spot'; use Capacity.spot() or Capacity.on_demand()",
        ),
        (
            {"root_device": "xvda"},
            "Demo/Fleet: root_device must be the name of a device, got 'xvda'; "
            "use what aws ec2 describe-images shows as RootDeviceName",
        ),
        (
            {"lustre_mount_point": "/etc"},
            "Demo/Fleet: lustre_mount_point must be a directory that nothing else uses: mounting there hides files of "
            "the system, got '/etc'; use /fsx, or a directory below /mnt",
        ),
        (
            {"nodes": cdk.Token.as_number(cdk.Fn.ref("Nodes"))},
            "Demo/Fleet: nodes must be at least 1, got a token; give it as a number: what is launched follows from it",
        ),
        (
            {"subnet": lambda network: [network.private_subnet, network.public_subnet]},
            "Demo/Fleet: subnet must be one subnet: EFA and a cluster placement group do not cross zones, "
            "got 2 subnets",
        ),
        (
            {"environment": "My Run"},
            "Demo/Fleet: environment must be 2 to 30 lower-case letters, digits and hyphens, a letter first, "
            "got 'My Run'",
        ),
        (
            {"lustre_mount_point": "fsx; rm -r /"},
            "Demo/Fleet: lustre_mount_point must be an absolute path of names of letters, digits, _ and -, without a "
            "slash at the end, got 'fsx; rm -r /'; use /fsx",
        ),
        (
            {"associate_public_ip": True},
            "Demo/Fleet: associate_public_ip must be False for a node with 33 interfaces: EC2 gives it no public "
            "address and the launch fails, got True; use a private subnet with a NAT gateway, as TrainingVpc has, "
            "and no public address",
        ),
        (
            {"subnet": lambda network: network.public_subnet},
            "Demo/Fleet: subnet must be a private subnet for a node with 33 interfaces: EC2 gives it no public "
            "address and the launch fails, got public subnet Demo/Network/Public; use a private subnet with a NAT "
            "gateway, as TrainingVpc has, and no public address",
        ),
    ],
)
def test_a_fleet_that_would_deploy_but_not_launch_is_refused(
    make_fleet: MakeFleet, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(PropertyError) as refused:
        make_fleet(**given)

    assert str(refused.value) == message


def test_all_mistakes_of_a_fleet_are_told_at_once(make_fleet: MakeFleet) -> None:
    with pytest.raises(PropertyError) as refused:
        make_fleet(nodes=-1, environment="X")

    assert len(refused.value.mistakes) == 2


def test_the_user_data_that_would_be_too_large_is_refused_with_its_size(make_fleet: MakeFleet) -> None:
    with pytest.raises(PropertyError) as refused:
        make_fleet(boot_commands=["# " + "x" * 16_384])

    assert re.fullmatch(
        r"Demo/Fleet: boot_commands must be short enough for user data under 16384 bytes, got \d{5} bytes with every "
        r"token at its longest; put long scripts into the image or into a bucket",
        str(refused.value),
    )


def test_a_node_with_one_interface_may_have_a_public_address_in_a_public_subnet(
    stack: cdk.Stack, make_fleet: MakeFleet, resources: Resources
) -> None:
    fleet = make_fleet(efa=False, associate_public_ip=True, nodes=1, subnet=lambda network: network.public_subnet)

    (interface,) = launch_data(stack, fleet, resources, Role.COORDINATOR)["NetworkInterfaces"]
    assert interface["AssociatePublicIpAddress"] is True


def test_an_imported_subnet_is_taken_at_its_word(stack: cdk.Stack, make_fleet: MakeFleet) -> None:
    subnet = ec2.Subnet.from_subnet_attributes(stack, "Given", subnet_id="subnet-1", route_table_id="rtb-1")

    make_fleet(subnet=subnet)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, []),
        (
            {"efa": False},
            ["p5.48xlarge has EFA, but efa is off: the ranks talk over TCP [ack: trainfabric:efaOff]"],
        ),
        (
            {"placement_group": None},
            [
                "nodes with EFA stand anywhere in the zone without an EfaClusterPlacementGroup: give placement_group "
                "[ack: trainfabric:noPlacementGroup]"
            ],
        ),
        ({"efa": False, "nodes": 1, "placement_group": None}, []),
    ],
)
def test_nodes_slower_than_what_they_cost_are_warned_of(
    make_fleet: MakeFleet, warnings: Callable[[], list[str]], given: dict[str, Any], expected: list[str]
) -> None:
    make_fleet(**given)

    assert warnings() == expected


WITHOUT_SELF_EGRESS = (
    "Demo/Own has no egress rule to itself, so EFA between the nodes does not get through: use an EfaSecurityGroup "
    "[ack: trainfabric:securityGroupWithoutSelfEgress]"
)


def own_group(network: TrainingVpc) -> ec2.SecurityGroup:
    return ec2.SecurityGroup(cdk.Stack.of(network), "Own", vpc=network.vpc)


def own_group_that_names_itself(network: TrainingVpc) -> ec2.SecurityGroup:
    group = own_group(network)
    itself = group.security_group_id
    ec2.CfnSecurityGroupEgress(
        cdk.Stack.of(network), "Self", group_id=itself, destination_security_group_id=itself, ip_protocol="-1"
    )
    return group


def existing_group(network: TrainingVpc) -> ec2.ISecurityGroup:
    return ec2.SecurityGroup.from_security_group_id(cdk.Stack.of(network), "Existing", "sg-1")


@pytest.mark.parametrize(
    ("group", "given", "expected"),
    [
        (own_group, {}, [WITHOUT_SELF_EGRESS]),
        (own_group, {"nodes": 1}, []),
        (own_group, {"instance_type": "m7i.large", "efa": False}, []),
        (own_group_that_names_itself, {}, []),
        (existing_group, {}, []),
    ],
)
def test_a_security_group_that_stops_efa_is_warned_of(
    make_fleet: MakeFleet,
    warnings: Callable[[], list[str]],
    group: Callable[[TrainingVpc], ec2.ISecurityGroup],
    given: dict[str, Any],
    expected: list[str],
) -> None:
    make_fleet(security_group=group, **given)

    assert warnings() == expected
