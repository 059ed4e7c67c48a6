"""What a fleet refuses before anything is deployed, and what it warns of."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2

from trainfabric_cdk import PropertyError, SharedHomeMount, SpotTrainingFleet, TrainingVpc

Properties = Callable[[str], list[dict[str, Any]]]
Resources = Callable[[str], dict[str, Any]]
MakeFleet = Callable[..., SpotTrainingFleet]

GROUP, TEMPLATE = "AWS::AutoScaling::AutoScalingGroup", "AWS::EC2::LaunchTemplate"


HOME = SharedHomeMount(server="10.0.0.9", path="/")


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
            "Demo/Fleet: workers must be a Capacity, got 'spot'; use Capacity.spot(), .on_demand(), .block(), "
            ".reservation() or .interruptible_reservation()",
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
            {"lustre_mount_point": "/shared", "shared_home": HOME},
            "Demo/Fleet: lustre_mount_point must be outside of /shared, where the nodes mount the shared home, "
            "got '/shared'; use /fsx, or have no shared home",
        ),
        (
            {"lustre_mount_point": "/shared/fsx", "shared_home": HOME},
            "Demo/Fleet: lustre_mount_point must be outside of /shared, where the nodes mount the shared home, "
            "got '/shared/fsx'; use /fsx, or have no shared home",
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


@pytest.mark.parametrize(
    "given",
    [
        {"lustre_mount_point": "/shared"},
        {"lustre_mount_point": "/shared2", "shared_home": HOME},
        {"lustre_mount_point": cdk.Fn.ref("MountPoint"), "shared_home": HOME},
    ],
    ids=["no home", "a directory beside it", "a token"],
)
def test_lustre_is_mounted_wherever_no_shared_home_is(
    make_fleet: Callable[..., SpotTrainingFleet], given: dict[str, Any]
) -> None:
    assert make_fleet(**given).groups
