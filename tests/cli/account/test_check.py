from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.cli.account.aws import Answer, Aws, refused

ACCOUNT = "123456789012"
KEY = f"arn:aws:kms:us-east-1:{ACCOUNT}:key/0f8e7d6c-0000-4000-8000-000000000000"

Put = Callable[[dict[str, Answer]], Aws]


def offerings(_: str, question: dict[str, Any]) -> dict[str, Any]:
    (instance_type,) = question["Filters"][0]["Values"]
    offering = {"InstanceType": instance_type, "LocationType": "availability-zone", "Location": "us-east-1a"}
    return {"InstanceTypeOfferings": [offering]}


def quotas(_: str, question: dict[str, Any]) -> dict[str, Any]:
    values = {"L-417A185B": 192.0, "L-C4BD4855": 768.0, "L-F678F1CE": 5.0, "L-0263D0A3": 5.0, "L-1216C47A": 64.0}
    return {"Quota": {"Value": values[question["QuotaCode"]]}}


def roles(_: str, question: dict[str, Any]) -> dict[str, Any]:
    name = question["RoleName"]
    made = datetime(2026, 1, 1, tzinfo=UTC)
    arn = f"arn:aws:iam::{ACCOUNT}:role/aws-reserved/{name}"
    return {"Role": {"Path": "/", "RoleName": name, "RoleId": "AROAEXAMPLEEXAMPLE", "Arn": arn, "CreateDate": made}}


def all_allowed(_: str, question: dict[str, Any]) -> dict[str, Any]:
    return {
        "EvaluationResults": [{"EvalActionName": one, "EvalDecision": "allowed"} for one in question["ActionNames"]]
    }


ANSWERS: dict[str, Answer] = {
    "GetCallerIdentity": {
        "Account": ACCOUNT,
        "Arn": f"arn:aws:sts::{ACCOUNT}:assumed-role/Deployers/ada",
        "UserId": "AROA:ada",
    },
    "DescribeRegions": {"Regions": [{"RegionName": "us-east-1", "OptInStatus": "opt-in-not-required"}]},
    "GetParameter": {"Parameter": {"Value": "30"}},
    "GetRole": roles,
    "SimulatePrincipalPolicy": all_allowed,
    "DescribeInstanceTypeOfferings": offerings,
    "DescribeAvailabilityZones": {"AvailabilityZones": [{"ZoneName": "us-east-1a", "ZoneId": "use1-az6"}]},
    "GetServiceQuota": quotas,
    "DescribeVpcs": {
        "Vpcs": [
            {"VpcId": "vpc-1"},
            {"VpcId": "vpc-2", "Tags": [{"Key": "trainfabric:environment", "Value": "demo"}]},
        ]
    },
    "DescribeAddresses": {"Addresses": []},
}


def table(checked: Any) -> list[tuple[str, str, str, str]]:
    return [(one["name"], one["found"], one["needed"], one["status"]) for one in checked.json["checks"]]


def lacking(checked: Any) -> dict[str, tuple[str, str]]:
    return {one["name"]: (one["found"], one["remedy"]) for one in checked.json["checks"] if one["status"] == "lacks"}


def test_an_account_that_has_everything_ends_with_status_0(
    trainfabric: Any, environment_file: Any, fake_aws: Put
) -> None:
    fake_aws(ANSWERS)

    ended = trainfabric("capacity", "check", environment_file(), "--json")

    assert (ended.status, ended.err) == (0, "")
    assert (ended.json["environment"], ended.json["account"]) == ("demo", ACCOUNT)
    actions = next(one["needed"] for one in ended.json["checks"] if "CloudFormation" in one["name"])
    assert table(ended) == [
        ("CDK bootstrap", "version 30", "version 6 or later", "ok"),
        ("AWSServiceRoleForAutoScaling", "there", "there, or made on first use", "ok"),
        ("AWSServiceRoleForAmazonFSx", "there", "there, or made on first use", "ok"),
        ("AWSServiceRoleForEC2Spot", "there", "there before the deploy", "ok"),
        ("permission to assume the deploy role", "all allowed", "1 action", "ok"),
        ("permissions of CloudFormation's role", "all allowed", actions, "ok"),
        ("p5.48xlarge in the zone", "us-east-1a", "us-east-1a", "ok"),
        ("Running On-Demand P instances", "192 vCPUs", "192 vCPUs (1 × p5.48xlarge)", "ok"),
        ("All P5 Spot Instance Requests", "768 vCPUs", "576 vCPUs (3 × p5.48xlarge)", "ok"),
        ("VPCs per Region", "1 of 5 in use by others", "1 more", "ok"),
        ("EC2-VPC Elastic IPs", "0 of 5 in use by others", "1 more", "ok"),
    ]


def test_what_is_lacking_is_said_with_its_remedy_and_ends_with_status_1(
    trainfabric: Any, environment_file: Any, fake_aws: Put
) -> None:
    def denied(_: str, question: dict[str, Any]) -> dict[str, Any]:
        decisions = [(one, "implicitDeny" if one.startswith("fsx:") else "allowed") for one in question["ActionNames"]]
        return {"EvaluationResults": [{"EvalActionName": one, "EvalDecision": to} for one, to in decisions]}

    fake_aws(
        ANSWERS
        | {
            "GetParameter": refused("ParameterNotFound"),
            "GetRole": refused("NoSuchEntity"),
            "SimulatePrincipalPolicy": denied,
            "DescribeInstanceTypeOfferings": {
                "InstanceTypeOfferings": [
                    {"InstanceType": "p5.48xlarge", "LocationType": "availability-zone", "Location": "us-east-1b"}
                ]
            },
            "GetServiceQuota": {"Quota": {"Value": 1.0}},
        }
    )

    ended = trainfabric(
        "capacity",
        "check",
        environment_file({"region: us-east-1": 'account: "210987654321"\nregion: us-east-1'}),
        "--json",
    )

    increase = "aws service-quotas request-service-quota-increase --region us-east-1 --service-code"
    assert ended.status == 1
    assert lacking(ended) == {
        "account": (ACCOUNT, "take credentials of that account, or correct account in the environment file"),
        "CDK bootstrap": (
            "none",
            f"cdk bootstrap aws://{ACCOUNT}/us-east-1; trainfabric policy says with which policies",
        ),
        "AWSServiceRoleForEC2Spot": (
            "none",
            "aws iam create-service-linked-role --aws-service-name spot.amazonaws.com",
        ),
        "permissions of CloudFormation's role": (
            "denied: fsx:CreateDataRepositoryAssociation, fsx:CreateFileSystem, "
            "fsx:DescribeDataRepositoryAssociations, fsx:DescribeFileSystems and 5 more",
            "trainfabric policy ENVIRONMENT_FILE writes what is needed",
        ),
        "p5.48xlarge in the zone": ("us-east-1b", "take us-east-1b"),
        "Running On-Demand P instances": ("1 vCPUs", f"{increase} ec2 --quota-code L-417A185B --desired-value 192"),
        "All P5 Spot Instance Requests": ("1 vCPUs", f"{increase} ec2 --quota-code L-C4BD4855 --desired-value 576"),
        "VPCs per Region": ("1 of 1 in use by others", f"{increase} vpc --quota-code L-F678F1CE --desired-value 2"),
    }


def test_what_may_not_be_read_is_unknown_and_does_not_fail_the_check(
    trainfabric: Any, environment_file: Any, fake_aws: Put
) -> None:
    closed = refused("AccessDenied")
    fake_aws(
        {**dict.fromkeys(ANSWERS, closed), **{one: ANSWERS[one] for one in ("GetCallerIdentity", "DescribeRegions")}}
    )

    ended = trainfabric("capacity", "check", environment_file(), "--json")

    assert ended.status == 0
    assert [(name, found, status) for name, found, _, status in table(ended)] == [
        ("CDK bootstrap", "no permission for ssm:GetParameter", "unknown"),
        ("AWSServiceRoleForAutoScaling", "no permission for iam:GetRole", "unknown"),
        ("AWSServiceRoleForAmazonFSx", "no permission for iam:GetRole", "unknown"),
        ("AWSServiceRoleForEC2Spot", "no permission for iam:GetRole", "unknown"),
        ("permission to assume the deploy role", "no permission for iam:SimulatePrincipalPolicy", "unknown"),
        ("permissions of CloudFormation's role", "no permission for iam:SimulatePrincipalPolicy", "unknown"),
        ("p5.48xlarge in the zone", "no permission for ec2:DescribeInstanceTypeOfferings", "unknown"),
        ("Running On-Demand P instances", "no permission for servicequotas:GetServiceQuota", "unknown"),
        ("All P5 Spot Instance Requests", "no permission for servicequotas:GetServiceQuota", "unknown"),
        ("VPCs per Region", "no permission for ec2:DescribeVpcs", "unknown"),
        ("EC2-VPC Elastic IPs", "no permission for ec2:DescribeAddresses", "unknown"),
    ]


def test_people_get_a_table_the_remedies_and_a_count(trainfabric: Any, environment_file: Any, fake_aws: Put) -> None:
    fake_aws(ANSWERS | {"GetParameter": refused("ParameterNotFound")})

    lines = [" ".join(line.split()) for line in trainfabric("capacity", "check", environment_file()).out.splitlines()]

    assert lines[0] == "demo: account 123456789012, us-east-1"
    assert "CDK bootstrap none version 6 or later lacks" in lines
    assert lines[-2:] == [
        "• CDK bootstrap: cdk bootstrap aws://123456789012/us-east-1; trainfabric policy says with which policies",
        "10 ok, 1 lacks",
    ]


def test_permissions_are_simulated_on_the_resources_and_conditions_of_the_policy(
    trainfabric: Any, environment_file: Any, fake_aws: Put
) -> None:
    aws = fake_aws(ANSWERS)

    trainfabric("capacity", "check", environment_file(), "--qualifier", "team")

    simulated = [question for _, operation, question in aws.asked if operation == "SimulatePrincipalPolicy"]
    assert simulated[0] == {
        "PolicySourceArn": f"arn:aws:iam::{ACCOUNT}:role/aws-reserved/Deployers",
        "ActionNames": ["sts:AssumeRole"],
        "ResourceArns": [f"arn:aws:iam::{ACCOUNT}:role/cdk-team-deploy-role-{ACCOUNT}-us-east-1"],
        "ContextEntries": [],
    }
    (launch,) = (
        one for one in simulated if one["ResourceArns"] == [f"arn:aws:ec2:us-east-1:{ACCOUNT}:instance/example"]
    )
    assert launch["PolicySourceArn"] == f"arn:aws:iam::{ACCOUNT}:role/cdk-team-cfn-exec-role-{ACCOUNT}-us-east-1"
    assert launch["ContextEntries"] == [
        {"ContextKeyName": "ec2:InstanceType", "ContextKeyValues": ["p5.48xlarge"], "ContextKeyType": "string"}
    ]


EXISTING = f"""\
region: us-east-1
network:
  vpc_id: vpc-0123456789abcdef0
  subnet_id: subnet-0123456789abcdef0
  route_table_id: rtb-0123456789abcdef0
storage:
  data_bucket:
    name: our-data
    kms_key_arn: {KEY}
"""


def test_what_the_file_names_must_exist_and_match(trainfabric: Any, environment_file: Any, fake_aws: Put) -> None:
    subnet = {
        "VpcId": "vpc-0123456789abcdef0",
        "AvailabilityZone": "us-east-1b",
        "AvailableIpAddressCount": 250,
    }
    fake_aws(
        ANSWERS
        | {
            "DescribeVpcs": {"Vpcs": [{"VpcId": "vpc-0123456789abcdef0"}]},
            "DescribeSubnets": {"Subnets": [subnet]},
            "DescribeRouteTables": refused("InvalidRouteTableID.NotFound"),
            "HeadBucket": {"BucketRegion": "eu-west-1"},
            "DescribeKey": {"KeyMetadata": {"KeyId": "0f8e7d6c", "KeyState": "PendingDeletion"}},
        }
    )

    ended = trainfabric("capacity", "check", environment_file({"region: us-east-1\n": EXISTING}), "--json")

    assert ended.status == 1
    assert table(ended)[-5:] == [
        ("VPC", "vpc-0123456789abcdef0", "vpc-0123456789abcdef0", "ok"),
        (
            "subnet",
            "vpc-0123456789abcdef0, us-east-1b, 250 addresses free",
            "subnet-0123456789abcdef0 in vpc-0123456789abcdef0 and us-east-1a, 4 addresses or more",
            "lacks",
        ),
        ("route table", "none", "rtb-0123456789abcdef0 in vpc-0123456789abcdef0", "lacks"),
        ("bucket our-data", "eu-west-1", "in us-east-1", "lacks"),
        ("key 0f8e7d6c-0000-4000-8000-000000000000", "PendingDeletion", "Enabled", "lacks"),
    ]


def test_a_region_that_is_not_enabled_is_the_users_mistake(
    trainfabric: Any, environment_file: Any, fake_aws: Put
) -> None:
    fake_aws(ANSWERS | {"DescribeRegions": {"Regions": [{"RegionName": "us-east-1", "OptInStatus": "not-opted-in"}]}})

    ended = trainfabric("capacity", "check", environment_file())

    assert (ended.status, ended.out) == (2, "")
    assert ended.err == (
        "capacity: region must be enabled in the account, got us-east-1; enable it (aws account enable-region "
        "--region-name us-east-1), or leave it out\n"
    )


BLOCK = {
    "CapacityReservationId": "cr-0123456789abcdef0",
    "InstanceType": "p5.48xlarge",
    "InstancePlatform": "Linux/UNIX",
    "AvailabilityZone": "us-east-1a",
    "TotalInstanceCount": 4,
    "AvailableInstanceCount": 4,
    "State": "scheduled",
    "StartDate": datetime(2026, 12, 1, 11, 30, tzinfo=UTC),
    "EndDate": datetime(2026, 12, 3, 11, 30, tzinfo=UTC),
    "ReservationType": "capacity-block",
}


@pytest.mark.parametrize(
    ("reservations", "found", "status"),
    [
        (
            {"CapacityReservations": [BLOCK]},
            "scheduled, 4 of 4 free, from 2026-12-01 11:30, until 2026-12-03 11:30 UTC",
            "ok",
        ),
        (
            {"CapacityReservations": [{**BLOCK, "InstanceType": "p4d.24xlarge", "TotalInstanceCount": 2}]},
            "it is of p4d.24xlarge, has 2 instances",
            "lacks",
        ),
        (
            {"CapacityReservations": [{**BLOCK, "ReservationType": "default", "State": "expired"}]},
            "it is expired, is no Capacity Block",
            "lacks",
        ),
        ({"CapacityReservations": [{**BLOCK, "AvailabilityZone": "us-east-1b"}]}, "it lies in us-east-1b", "lacks"),
        (refused("InvalidCapacityReservationId.NotFound"), "none in the region", "lacks"),
        (refused("UnauthorizedOperation"), "no permission for ec2:DescribeCapacityReservations", "unknown"),
    ],
)
def test_a_capacity_block_must_be_of_the_fleets_type_zone_and_size(
    reservations: Answer, found: str, status: str, fake_aws: Put
) -> None:
    from trainfabric_cli.account.check_capacity import capacity_checks
    from trainfabric_cli.account.session import Account
    from trainfabric_plan.environment import Environment

    fake_aws(ANSWERS | {"DescribeCapacityReservations": reservations})
    environment = Environment.model_validate(
        {
            "name": "demo",
            "region": "us-east-1",
            "availability_zone": "us-east-1a",
            "fleet": {
                "instance_type": "p5.48xlarge",
                "nodes": 4,
                "workers": "capacity_block",
                "reservation": "cr-0123456789abcdef0",
            },
            "training": {"recipe": "tiny_cpu"},
        }
    )

    checks = {one.name: one for one in capacity_checks(Account("capacity"), environment)}

    reservation = checks["reservation cr-0123456789abcdef0"]
    assert (reservation.found, reservation.status) == (found, status)
    assert reservation.needed == "4 × p5.48xlarge, Linux/UNIX, us-east-1a, capacity_block"
    assert "Running On-Demand P instances" not in checks
