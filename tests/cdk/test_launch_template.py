from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trainfabric_cdk import SpotTrainingFleet
from trainfabric_plan.catalog import INSTANCE_TYPES, efa_interfaces

MakeFleet = Callable[..., SpotTrainingFleet]
LaunchData = Callable[[], dict[str, Any]]


@pytest.fixture
def launch_data(properties: Callable[[str], list[dict[str, Any]]]) -> LaunchData:
    """Launch template data of the coordinator, the first template."""
    return lambda: properties("AWS::EC2::LaunchTemplate")[0]["LaunchTemplateData"]


@pytest.mark.parametrize("name", [name for name, row in INSTANCE_TYPES.items() if row.efa_interface_count])
def test_interfaces_are_those_of_the_catalog(make_fleet: MakeFleet, launch_data: LaunchData, name: str) -> None:
    row = INSTANCE_TYPES[name]
    given: dict[str, Any] = {"own_command": row.maker == "aws", "image_id": "ami-0123456789abcdef0"}
    make_fleet(instance_type=name, nodes=1, **given, **({} if row.cluster_placement else {"placement_group": None}))

    shown = [(i["NetworkCardIndex"], i["DeviceIndex"], i["InterfaceType"]) for i in launch_data()["NetworkInterfaces"]]
    assert shown == [(i.card, i.device, i.type.value) for i in efa_interfaces(row)]


def test_a_type_that_ec2_described_to_the_user_alone_gets_its_interfaces(
    make_fleet: MakeFleet, launch_data: LaunchData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {
        **{"region": "us-east-2", "date": "2026-11-30", "source": "DescribeInstanceTypes", "accelerator": "B400"},
        **{"accelerators": 8, "accelerator_memory_mib": 300000, "maker": "nvidia", "architecture": "x86_64"},
        **{"vcpus": 192, "memory_gib": 4096, "network_gbps": 6400, "cluster_placement": True},
        "usage_classes": ["on-demand", "spot"],
        "cards": [{"interfaces": 4, "efa": False}, {"interfaces": 4, "efa": True}],
    }
    file = tmp_path / "mine.json"
    file.write_text(json.dumps({"format": 1, "instance_types": {"p7.48xlarge": told}}))
    monkeypatch.setenv("TRAINFABRIC_CATALOG", str(file))

    make_fleet(instance_type="p7.48xlarge", nodes=1)

    shown = [(i["NetworkCardIndex"], i["DeviceIndex"], i["InterfaceType"]) for i in launch_data()["NetworkInterfaces"]]
    assert shown == [(0, 0, "interface"), (1, 1, "efa-only")]


def test_security_groups_stand_at_every_interface_and_not_at_the_instance(
    make_fleet: MakeFleet, launch_data: LaunchData
) -> None:
    make_fleet()

    data = launch_data()
    assert "SecurityGroupIds" not in data
    assert "SecurityGroups" not in data
    assert {len(interface["Groups"]) for interface in data["NetworkInterfaces"]} == {1}


def test_interfaces_leave_the_subnet_to_the_group_have_no_public_address_and_end_with_the_node(
    make_fleet: MakeFleet, launch_data: LaunchData
) -> None:
    make_fleet()

    interfaces = launch_data()["NetworkInterfaces"]
    assert all("SubnetId" not in interface for interface in interfaces)
    assert all("AssociatePublicIpAddress" not in interface for interface in interfaces)
    assert all(interface["DeleteOnTermination"] for interface in interfaces)


def test_metadata_needs_a_token_and_reaches_containers(make_fleet: MakeFleet, launch_data: LaunchData) -> None:
    make_fleet()

    assert launch_data()["MetadataOptions"] == {
        "HttpEndpoint": "enabled",
        "HttpPutResponseHopLimit": 2,
        "HttpTokens": "required",
    }


def test_the_root_volume_is_encrypted_gp3(make_fleet: MakeFleet, launch_data: LaunchData) -> None:
    make_fleet()

    assert launch_data()["BlockDeviceMappings"] == [
        {
            "DeviceName": "/dev/sda1",
            "Ebs": {"DeleteOnTermination": True, "Encrypted": True, "VolumeSize": 200, "VolumeType": "gp3"},
        }
    ]


def test_the_encrypted_root_volume_is_that_of_the_given_image(make_fleet: MakeFleet, launch_data: LaunchData) -> None:
    make_fleet(image_id="ami-0123456789abcdef0", root_device="/dev/xvda")

    assert [disk["DeviceName"] for disk in launch_data()["BlockDeviceMappings"]] == ["/dev/xvda"]


def test_nodes_stand_in_the_placement_group(make_fleet: MakeFleet, launch_data: LaunchData) -> None:
    make_fleet()

    (attribute,) = launch_data()["Placement"]["GroupName"].values()
    assert attribute[1] == "GroupName"


def test_the_image_is_the_newest_deep_learning_base_image_resolved_at_launch(
    make_fleet: MakeFleet, launch_data: LaunchData
) -> None:
    make_fleet()

    assert launch_data()["ImageId"] == (
        "resolve:ssm:/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id"
    )


def test_a_given_image_is_used(make_fleet: MakeFleet, launch_data: LaunchData) -> None:
    make_fleet(image_id="ami-0123456789abcdef0")

    assert launch_data()["ImageId"] == "ami-0123456789abcdef0"
