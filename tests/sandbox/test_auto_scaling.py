from __future__ import annotations

import base64
from collections.abc import Callable

import pytest
from botocore.exceptions import ClientError

from tests.sandbox.conftest import Aws
from tests.sandbox.fleets import IMAGE, SmallFleet

PARAMETER = "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id"


@pytest.fixture
def fleet(aws: Aws, new_name: Callable[[str], str]) -> SmallFleet:
    """A deployed environment without instances."""
    made = SmallFleet(aws, new_name("fleet"))
    made.deploy("#!/bin/sh\necho first\n")
    return made


def protect(fleet: SmallFleet, *instance_ids: str, on: bool = True) -> None:
    fleet.aws.client("autoscaling").set_instance_protection(
        AutoScalingGroupName=fleet.group("worker"), InstanceIds=list(instance_ids), ProtectedFromScaleIn=on
    )


def leave(fleet: SmallFleet, instance_id: str, *, shrink: bool) -> None:
    fleet.aws.client("autoscaling").terminate_instance_in_auto_scaling_group(
        InstanceId=instance_id, ShouldDecrementDesiredCapacity=shrink
    )


def state(fleet: SmallFleet, instance_id: str) -> str:
    found = fleet.aws.client("ec2").describe_instances(InstanceIds=[instance_id])
    return str(found["Reservations"][0]["Instances"][0]["State"]["Name"])


def user_data(fleet: SmallFleet, instance_id: str) -> str:
    answer = fleet.aws.client("ec2").describe_instance_attribute(InstanceId=instance_id, Attribute="userData")
    return base64.b64decode(answer["UserData"]["Value"]).decode()


def test_a_terminated_instance_is_replaced(fleet: SmallFleet) -> None:
    fleet.scale(worker=2)
    first, second = fleet.members()

    fleet.aws.client("ec2").terminate_instances(InstanceIds=[first])

    assert state(fleet, first) == "terminated"
    assert second in fleet.members()
    assert len(fleet.members()) == 2
    assert first not in fleet.members()


@pytest.mark.parametrize(("shrink", "left"), [(False, 2), (True, 1)])
def test_an_instance_that_leaves_by_its_id_is_replaced_unless_the_group_is_to_shrink(
    fleet: SmallFleet, shrink: bool, left: int
) -> None:
    fleet.scale(worker=2)
    first, _ = fleet.members()
    protect(fleet, first)

    leave(fleet, first, shrink=shrink)

    assert (state(fleet, first), first in fleet.members(), len(fleet.members())) == ("terminated", False, left)


def test_an_instance_that_is_gone_cannot_leave_again(fleet: SmallFleet) -> None:
    with pytest.raises(ClientError) as failure:
        leave(fleet, "i-0123456789abcdef0", shrink=False)

    assert failure.value.response["Error"] == {
        "Type": "Sender",
        "Code": "ValidationError",
        "Message": "Instance Id not found - No managed instance found for instance ID: i-0123456789abcdef0",
    }


def test_protected_instances_outlive_a_scale_in_until_their_protection_ends(fleet: SmallFleet) -> None:
    fleet.scale(worker=2)
    first, second = fleet.members()
    protect(fleet, first)

    fleet.scale(worker=0)
    assert (list(fleet.members()), state(fleet, second)) == ([first], "terminated")
    protect(fleet, first, on=False)

    assert (fleet.members(), state(fleet, first)) == ({}, "terminated")


def test_a_protected_instance_that_dies_while_none_is_wanted_is_not_replaced(fleet: SmallFleet) -> None:
    fleet.scale(worker=1)
    (only,) = fleet.members()
    protect(fleet, only)
    fleet.scale(worker=0)

    fleet.aws.client("ec2").terminate_instances(InstanceIds=[only])

    assert fleet.members() == {}


def test_a_group_stays_within_its_bounds(fleet: SmallFleet) -> None:
    with pytest.raises(ClientError) as failure:
        fleet.scale(worker=4)

    assert failure.value.response["Error"]["Message"] == (
        "New SetDesiredCapacity value 4 is above max value 3 for the AutoScalingGroup."
    )


def test_an_instance_keeps_what_it_was_launched_with(fleet: SmallFleet) -> None:
    fleet.scale(worker=1)
    (first,) = fleet.members()
    later = base64.b64encode(b"#!/bin/sh\necho later\n").decode()
    number = fleet.launch_from(UserData=later)

    fleet.scale(worker=2)
    second = next(member for member in fleet.members() if member != first)

    versions = {name: member["LaunchTemplate"]["Version"] for name, member in fleet.members().items()}
    assert versions == {first: "1", second: number}
    assert user_data(fleet, first) == "#!/bin/sh\necho first\n"
    assert user_data(fleet, second) == "#!/bin/sh\necho later\n"


def test_a_deploy_leaves_the_group_on_the_version_that_a_job_made_the_default(fleet: SmallFleet) -> None:
    # given a job that has pinned the image, and a running node of it
    number = fleet.launch_from(ImageId="ami-0b301ce3ce3475r4f")
    fleet.scale(worker=1)
    (first,) = fleet.members()
    # when another user data is deployed, and the node is lost
    fleet.deploy("#!/bin/sh\necho deployed meanwhile\n")
    fleet.aws.client("ec2").terminate_instances(InstanceIds=[first])
    # then the replacement is the job's
    ((replacement, member),) = fleet.members().items()
    assert member["LaunchTemplate"]["Version"] == number
    assert user_data(fleet, replacement) == "#!/bin/sh\necho first\n"
    # and the deployed version waits for the next job
    described = fleet.aws.client("ec2").describe_launch_templates(LaunchTemplateIds=[fleet.template()])
    assert described["LaunchTemplates"][0]["LatestVersionNumber"] == int(number) + 1


def test_an_image_named_by_a_parameter_is_resolved_as_the_instance_is_launched(
    aws: Aws, new_name: Callable[[str], str]
) -> None:
    fleet = SmallFleet(aws, new_name("fleet"))
    fleet.deploy("#!/bin/sh\n", image=f"resolve:ssm:{PARAMETER}")

    fleet.scale(worker=1, coordinator=1)

    value = aws.client("ssm").get_parameter(Name=PARAMETER)["Parameter"]["Value"]
    (member,) = fleet.members()
    found = aws.client("ec2").describe_instances(InstanceIds=[member])["Reservations"][0]["Instances"][0]
    assert (found["ImageId"], found["InstanceLifecycle"]) == (value, "spot")
    (coordinator,) = fleet.members("coordinator")
    described = aws.client("ec2").describe_instances(InstanceIds=[coordinator])["Reservations"][0]["Instances"][0]
    assert "InstanceLifecycle" not in described
    assert value.startswith("ami-") and value != IMAGE
