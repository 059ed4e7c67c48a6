from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from tests.cli.account.aws import Answer, Aws, refused

REGIONS = ("us-east-1", "us-east-2", "ap-south-2")


def at(day: int, hour: int = 0) -> datetime:
    return datetime(2026, 11, day, hour, tzinfo=UTC)


def offerings(region: str, question: dict[str, Any]) -> dict[str, Any]:
    (instance_type,) = question["Filters"][0]["Values"]
    zones = {"us-east-1": ["us-east-1a"], "us-east-2": ["us-east-2a", "us-east-2b"]}.get(region, [])
    if instance_type not in ("p5.48xlarge", "p6-b200.48xlarge"):
        zones = []
    return {
        "InstanceTypeOfferings": [
            {"InstanceType": instance_type, "LocationType": "availability-zone", "Location": zone} for zone in zones
        ]
    }


def zones(_: str, question: dict[str, Any]) -> dict[str, Any]:
    return {
        "AvailabilityZones": [
            {"ZoneName": name, "ZoneId": name.replace("us-east-", "use").replace("a", "-az1").replace("b", "-az2")}
            for name in question["ZoneNames"]
        ]
    }


def quota(_: str, question: dict[str, Any]) -> dict[str, Any]:
    return {"Quota": {"Value": {"L-417A185B": 384.0, "L-C4BD4855": 1536.0}[question["QuotaCode"]]}}


def spot(region: str, _: dict[str, Any]) -> dict[str, Any]:
    prices = [(f"{region}a", "30.5000", at(29)), (f"{region}a", "21.2500", at(30)), (f"{region}b", "19.0000", at(30))]
    return {
        "SpotPriceHistory": [
            {
                "AvailabilityZone": zone,
                "InstanceType": "p5.48xlarge",
                "ProductDescription": "Linux/UNIX",
                "SpotPrice": price,
                "Timestamp": when,
            }
            for zone, price, when in prices
        ]
    }


def blocks(region: str, question: dict[str, Any]) -> dict[str, Any]:
    if region != "us-east-2":
        return {"CapacityBlockOfferings": []}
    return {
        "CapacityBlockOfferings": [
            {
                "CapacityBlockOfferingId": f"cb-{hours}",
                "InstanceType": question["InstanceType"],
                "AvailabilityZone": "us-east-2b",
                "InstanceCount": question["InstanceCount"],
                "StartDate": at(30, 11),
                "EndDate": at(30, 23),
                "CapacityBlockDurationHours": hours,
                "UpfrontFee": fee,
                "CurrencyCode": "USD",
                "Tenancy": "default",
            }
            for hours, fee in ((47, "2900.0"), (72, "4400.0"))
        ]
    }


ANSWERS: dict[str, Answer] = {
    "GetCallerIdentity": {"Account": "123456789012", "Arn": "arn:aws:iam::123456789012:user/ada", "UserId": "AIDA"},
    "DescribeRegions": {
        "Regions": [
            {"RegionName": one, "OptInStatus": "not-opted-in" if one == "ap-south-2" else "opt-in-not-required"}
            for one in REGIONS
        ]
    },
    "DescribeInstanceTypeOfferings": offerings,
    "DescribeAvailabilityZones": zones,
    "GetServiceQuota": quota,
    "GetSpotPlacementScores": {
        "SpotPlacementScores": [
            {"Region": "us-east-1", "AvailabilityZoneId": "use1-az1", "Score": 3},
            {"Region": "us-east-2", "AvailabilityZoneId": "use2-az1", "Score": 2},
            {"Region": "us-east-2", "AvailabilityZoneId": "use2-az2", "Score": 1},
        ]
    },
    "DescribeSpotPriceHistory": spot,
    "DescribeCapacityBlockOfferings": blocks,
}

Put = Callable[[dict[str, Answer]], Aws]

WANTED = ("capacity", "find", "--instance-type", "p5.48xlarge", "--nodes", "4", "--hours", "48")


def rows(found: Any) -> list[tuple[Any, ...]]:
    return [
        (one["kind"], one["zone"], one["feasible"], one["usd_per_run"], one["reasons"]) for one in found.json["offers"]
    ]


def test_offers_of_all_enabled_regions_are_ranked_feasible_first_then_by_the_price_of_the_run(
    trainfabric: Any, fake_aws: Put
) -> None:
    aws = fake_aws(ANSWERS)

    ended = trainfabric(*WANTED, "--json")

    assert (ended.status, ended.err) == (0, "")
    assert ended.json["regions"] == ["us-east-1", "us-east-2"]
    short = "quota lacks 384 vCPUs"
    assert rows(ended) == [
        ("spot", "us-east-2b", "yes", 19.0 * 4 * 48, []),
        ("spot", "us-east-1a", "yes", 21.25 * 4 * 48, []),
        ("spot", "us-east-2a", "yes", 21.25 * 4 * 48, []),
        ("capacity_block", "us-east-2b", "yes", 4400.0, []),
        ("capacity_block", "us-east-2b", "no", 2900.0, ["ends after 47 h"]),
        ("on_demand", "us-east-1a", "no", 55.04 * 4 * 48, [short]),
        ("on_demand", "us-east-2a", "no", "unknown (no source for the price in us-east-2)", [short]),
        ("on_demand", "us-east-2b", "no", "unknown (no source for the price in us-east-2)", [short]),
    ]
    asked = {
        question["CapacityDurationHours"] for _, one, question in aws.asked if "Offerings" in one and "Capacity" in one
    }
    assert asked == {48}


def test_people_get_one_table_and_what_it_is_ranked_by(trainfabric: Any, fake_aws: Put) -> None:
    fake_aws(ANSWERS)

    lines = [" ".join(line.split()) for line in trainfabric(*WANTED, "--regions", "us-east-2").out.splitlines()]

    assert lines[0].startswith("4 × p5.48xlarge for 48 h, asked 2")
    assert lines[0].endswith(" UTC in us-east-2")
    assert [line for line in lines if line[:1].isdigit() and line[1] == " " and "×" not in line] == [
        "1 spot us-east-2b yes 768/1,536 1 19 3,648 19.00 to 19.00 in 7 days",
        "2 spot us-east-2a yes 768/1,536 2 21.25 4,080 21.25 to 30.50 in 7 days",
        "3 block us-east-2b yes 15.28 4,400 72 h from 11-30 11:00",
        "4 block us-east-2b no 15.43 2,900 ends after 47 h; 47 h from 11-30 11:00",
        "5 on demand us-east-2a no 768/384 unknown unknown quota lacks 384 vCPUs",
        "6 on demand us-east-2b no 768/384 unknown unknown quota lacks 384 vCPUs",
    ]
    assert " ".join(lines[-7:]).strip() == " ".join(
        [
            "Ranked: what fits first, then what is unknown; among equals the cheapest run, then the higher spot score.",
            "vCPUs/quota: needed, of all that the account may run of the family; what runs takes from it.",
            "Score: 1 to 10. EC2 scores one type alone low: compare zones with it, not against 10.",
            "USD/h is per node. Spot: the price now; a block: its whole price, asked for 48 h;",
            "on demand: the catalog's list price of us-east-1.",
            "Blocks to purchase: 3 is cb-72, 4 is cb-47.",
            "• price: unknown (no source for the price in us-east-2)",
        ]
    )


def test_what_may_not_be_asked_or_does_not_answer_is_unknown_and_the_rest_is_shown(
    trainfabric: Any, fake_aws: Put
) -> None:
    fake_aws(
        ANSWERS
        | {
            "GetServiceQuota": refused("AccessDeniedException"),
            "GetSpotPlacementScores": refused("UnauthorizedOperation"),
            "DescribeSpotPriceHistory": ReadTimeoutError(endpoint_url="https://ec2.us-east-1.amazonaws.com"),
            "DescribeCapacityBlockOfferings": refused("InvalidParameterValue"),
        }
    )

    ended = trainfabric(*WANTED, "--regions", "us-east-1", "--json")

    assert (ended.status, ended.err) == (0, "")
    no_quota = "quota: no permission for servicequotas:GetServiceQuota"
    assert rows(ended) == [
        ("on_demand", "us-east-1a", "unknown", 55.04 * 4 * 48, [no_quota]),
        (
            "capacity_block",
            "us-east-1",
            "unknown",
            None,
            ["blocks: ec2:DescribeCapacityBlockOfferings: InvalidParameterValue"],
        ),
        (
            "spot",
            "us-east-1a",
            "unknown",
            "unknown (no answer to ec2:DescribeSpotPriceHistory: ReadTimeoutError)",
            [no_quota],
        ),
    ]
    assert ended.json["offers"][2]["spot_placement_score"] == "unknown (no permission for ec2:GetSpotPlacementScores)"
    assert ended.json["offers"][2]["vcpu_quota"] == "unknown (no permission for servicequotas:GetServiceQuota)"


def test_a_region_that_does_not_say_what_it_offers_is_a_row_and_not_an_error(trainfabric: Any, fake_aws: Put) -> None:
    fake_aws(ANSWERS | {"DescribeInstanceTypeOfferings": refused("UnauthorizedOperation")})

    ended = trainfabric(*WANTED, "--regions", "us-east-1", "--json")

    why = "offered: no permission for ec2:DescribeInstanceTypeOfferings"
    assert (ended.status, ended.json["offers"][0]["reasons"]) == (0, [why])


def test_the_default_of_a_quota_stands_where_the_account_never_asked_for_more(trainfabric: Any, fake_aws: Put) -> None:
    fake_aws(
        ANSWERS
        | {
            "GetServiceQuota": refused("NoSuchResourceException"),
            "GetAWSDefaultServiceQuota": {"Quota": {"Value": 0.0}},
        }
    )

    offers = trainfabric(*WANTED, "--regions", "us-east-1", "--json").json["offers"]

    assert {one["vcpu_quota"] for one in offers} == {0.0}
    assert {tuple(one["reasons"]) for one in offers} == {("quota lacks 768 vCPUs",)}


def test_no_source_names_the_spot_quota_of_p6_so_it_is_unknown(trainfabric: Any, fake_aws: Put) -> None:
    fake_aws(ANSWERS)

    found = trainfabric(
        "capacity", "find", "-t", "p6-b200.48xlarge", "-n", "1", "--hours", "8", "--regions", "us-east-1", "--json"
    )

    spot_offer = next(one for one in found.json["offers"] if one["kind"] == "spot")
    assert spot_offer["vcpu_quota"] == "unknown (no source names the quota of this family)"


def test_a_type_that_is_not_sold_in_blocks_is_not_asked_for(trainfabric: Any, fake_aws: Put) -> None:
    def everywhere(_: str, question: dict[str, Any]) -> dict[str, Any]:
        return offerings("us-east-1", {"Filters": [{"Values": ["p5.48xlarge"]}]})

    aws = fake_aws(
        ANSWERS | {"DescribeInstanceTypeOfferings": everywhere, "GetServiceQuota": {"Quota": {"Value": 1.0}}}
    )

    asked = ("capacity", "find", "-t", "g6e.48xlarge", "-n", "1", "--hours", "8", "--regions", "us-east-1", "--json")
    kinds = {one["kind"] for one in trainfabric(*asked).json["offers"]}

    assert kinds == {"on_demand", "spot"}
    assert "DescribeCapacityBlockOfferings" not in {operation for _, operation, _ in aws.asked}


def test_more_nodes_than_a_block_has_leave_the_other_kinds(trainfabric: Any, fake_aws: Put) -> None:
    fake_aws(ANSWERS)

    found = trainfabric(
        "capacity", "find", "-t", "p5.48xlarge", "-n", "65", "--hours", "8", "--regions", "us-east-1", "--json"
    )

    (block,) = (one for one in found.json["offers"] if one["kind"] == "capacity_block")
    assert block["reasons"] == ["blocks: one block has at most 64 instances"]


def test_what_no_account_could_have_is_refused_together_before_aws_is_asked(trainfabric: Any, no_aws: None) -> None:
    ended = trainfabric(
        "capacity", "find", "-t", "P5.48XLARGE", "-n", "0", "--hours", "4369", "--regions", "us-east-1,useast1"
    )

    assert (ended.status, ended.out) == (2, "")
    assert ended.err == (
        "capacity: --instance-type must be the name of an instance type such as p5.48xlarge, got P5.48XLARGE; did you "
        "mean p5.48xlarge or p5e.48xlarge?\n"
        "capacity: --regions must be the name of an AWS region such as us-east-1, got useast1\n"
        "capacity: --nodes must be from 1 to 10000, got 0\n"
        "capacity: --hours must be more than 0 and at most 4368 (182 days, the longest Capacity Block), got 4369\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("-t", "nope"),
            "--instance-type must be the name of an instance type such as p5.48xlarge, got nope; trainfabric catalog "
            "lists types",
        ),
        (
            ("-t", "p5.48xlarge", "--regions", ","),
            "--regions must be names separated by commas, got none; leave it out to ask all regions of the account",
        ),
    ],
)
def test_arguments_are_looked_at_before_credentials(
    trainfabric: Any, no_aws: None, arguments: tuple[str, ...], message: str
) -> None:
    ended = trainfabric("capacity", "find", "-n", "1", "--hours", "8", *arguments)

    assert (ended.status, ended.out, ended.err) == (2, "", f"capacity: {message}\n")


def test_without_credentials_the_remedy_is_said(trainfabric: Any, no_aws: None) -> None:
    ended = trainfabric(*WANTED)

    assert (ended.status, ended.out) == (2, "")
    assert ended.err == (
        "capacity: AWS credentials must be given, got none; set AWS_PROFILE or run aws configure; on a node, check its "
        "instance profile\n"
    )


def test_regions_that_are_not_enabled_or_do_not_exist_are_refused_together(trainfabric: Any, fake_aws: Put) -> None:
    fake_aws(ANSWERS)

    ended = trainfabric(*WANTED, "--regions", "ap-south-2,us-east-3,us-east-1")

    assert (ended.status, ended.out) == (2, "")
    assert ended.err == (
        "capacity: region must be enabled in the account, got ap-south-2; enable it (aws account enable-region "
        "--region-name ap-south-2), or leave it out\n"
        "capacity: region must be a region of AWS, got us-east-3; did you mean us-east-2?\n"
    )


@pytest.mark.parametrize(
    ("instance_type", "remedy"),
    [
        ("p5.48xlarg", "did you mean p5.48xlarge or p5e.48xlarge?"),
        ("trn1.32xlarge", "leave out --regions to ask all regions of the account"),
        ("zz9.huge", "trainfabric catalog lists types"),
    ],
)
def test_a_type_that_no_region_offers_is_refused(
    instance_type: str, remedy: str, trainfabric: Any, fake_aws: Put
) -> None:
    fake_aws(ANSWERS)

    ended = trainfabric("capacity", "find", "-t", instance_type, "-n", "1", "--hours", "1", "--regions", "us-east-1")

    assert (ended.status, ended.out) == (2, "")
    rule = "capacity: --instance-type must be a type that EC2 offers in us-east-1"
    assert ended.err == f"{rule}, got {instance_type}; {remedy}\n"


def test_moto_answers_the_calls_that_it_has_as_the_readers_ask_them(aws: None) -> None:
    from trainfabric_cli.account.region import RegionReader
    from trainfabric_cli.account.session import Account

    reader = RegionReader(Account("capacity"), "us-east-1")

    assert reader.zones("p5.48xlarge")["us-east-1a"] == "use1-az6"  # type: ignore[index]
    assert reader.vcpus("m5.large") == 2
    assert set(reader.spot_prices("p5.48xlarge", at(30))) == {f"us-east-1{one}" for one in "abcdef"}  # type: ignore[arg-type]
