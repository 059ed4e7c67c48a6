"""`trainfabric catalog refresh`: what EC2 says of instance types, shown and written down."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.account.aws import Answer, Aws, refused
from trainfabric_plan.catalog import INSTANCE_TYPES, instance_type

FakeAws = Callable[[dict[str, Answer]], Aws]
FILE = "trainfabric.catalog.json"


def entry(name: str, **changes: Any) -> dict[str, Any]:
    """EC2's description of a type with two cards, of which the second alone takes EFA."""
    plain, both = ["interface"], ["interface", "efa", "efa-only"]
    cards = [
        {"NetworkCardIndex": i, "MaximumNetworkInterfaces": 4, "InterfaceTypes": t} for i, t in ((1, both), (0, plain))
    ]
    return {
        "InstanceType": name,
        "VCpuInfo": {"DefaultVCpus": 192},
        "MemoryInfo": {"SizeInMiB": 2097152},
        "ProcessorInfo": {"SupportedArchitectures": ["x86_64"]},
        "GpuInfo": {
            "Gpus": [{"Name": "B400", "Manufacturer": "NVIDIA", "Count": 8, "MemoryInfo": {"SizeInMiB": 300000}}]
        },
        "InstanceStorageInfo": {"TotalSizeInGB": 30400},
        "NetworkInfo": {
            "NetworkPerformance": "6400 Gigabit",
            "EfaSupported": True,
            "EfaInfo": {"MaximumEfaInterfaces": 1},
            "NetworkCards": cards,
        },
        "SupportedUsageClasses": ["on-demand", "capacity-block"],
        "PlacementGroupInfo": {"SupportedStrategies": ["cluster", "spread"]},
        **changes,
    }


def pages(*entries: dict[str, Any]) -> Callable[[str, dict[str, Any]], dict[str, Any]]:
    """One type on each page."""

    def answer(_: str, question: dict[str, Any]) -> dict[str, Any]:
        at = int(question.get("NextToken", "0"))
        more = {"NextToken": str(at + 1)} if at + 1 < len(entries) else {}
        return {"InstanceTypes": [entries[at]], **more}

    return answer


def words(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def test_every_row_is_asked_for_and_only_what_ec2_says_otherwise_is_shown(trainfabric: Any, aws: None) -> None:
    done = trainfabric("catalog", "refresh", "--region", "us-east-1", "--json")

    assert (done.status, done.err) == (0, "")
    assert sorted(done.json["differences"]) == ["trn2.3xlarge", "trn2.48xlarge", "trn2u.48xlarge"]
    assert done.json["differences"]["trn2.48xlarge"] == [
        {"fact": "accelerator_memory_mib", "catalog": "98304", "ec2": "524288"}
    ]
    assert list(done.json["kept"]["trn2.48xlarge"]) == ["accelerator_memory_mib"]
    assert done.json["absent"] == ["p6e-gb200.36xlarge"]
    assert len(done.json["added"]) == len(INSTANCE_TYPES) - 1


def test_all_pages_are_read_and_the_types_asked_for_are_written(trainfabric: Any, fake_aws: FakeAws) -> None:
    asked = fake_aws({"DescribeInstanceTypes": pages(entry("t9.nano"), entry("p7.48xlarge"))}).asked

    done = trainfabric("catalog", "refresh", "-r", "us-east-2", "p7.48xlarge", "p8.48xlarge")

    assert [region for region, _, _ in asked] == ["us-east-2", "us-east-2"]
    assert words(done.out) == [
        "EC2 says what the catalog says",
        "trainfabric.catalog.json written: 1 added",
        "us-east-2 does not offer, or does not show this account: p8.48xlarge",
    ]
    assert list(json.loads(Path(FILE).read_text())["instance_types"]) == ["p7.48xlarge"]
    row = instance_type("p7.48xlarge")
    assert [card.efa for card in row.known_cards] == [False, True]
    assert (row.accelerator, row.network_gbps, row.memory_gib) == ("B400", 6400, 2048)


def test_the_rest_of_the_commands_use_what_was_written(trainfabric: Any, fake_aws: FakeAws) -> None:
    fake_aws({"DescribeInstanceTypes": pages(entry("p7.48xlarge"))})
    trainfabric("catalog", "refresh", "--region", "us-east-2", "p7.48xlarge")

    assert trainfabric("catalog", "p7.48xlarge", "--json").json[0]["accelerator"] == "B400"
    assert "p7.48xlarge 8 × B400 192 2048 6400 1 no source" in words(trainfabric("catalog").out)


def test_a_difference_is_shown_fact_by_fact_and_what_changes_in_the_file_is_said(
    trainfabric: Any, fake_aws: FakeAws
) -> None:
    fake_aws({"DescribeInstanceTypes": pages(entry("p5.48xlarge"))})
    first = trainfabric("catalog", "refresh", "--region", "us-east-2", "p5.48xlarge")
    again = trainfabric("catalog", "refresh", "--region", "us-east-2", "p5.48xlarge")
    fake_aws(
        {"DescribeInstanceTypes": pages(entry("p5.48xlarge", VCpuInfo={"DefaultVCpus": 96}), entry("p7.48xlarge"))}
    )
    trainfabric("catalog", "refresh", "--region", "us-east-2", "p7.48xlarge")
    changed = trainfabric("catalog", "refresh", "--region", "us-east-2", "p5.48xlarge")

    cards = "32 of 2 interfaces, EFA on 0…31 2 of 4 interfaces, EFA on 1"
    assert f"p5.48xlarge cards {cards} EC2's" in words(first.out)
    assert "p5.48xlarge accelerator H100 B400 EC2's" in words(first.out)
    assert "trainfabric.catalog.json written: 1 added" in words(first.out)
    assert "trainfabric.catalog.json not written, nothing changed: 1 as before" in words(again.out)
    assert words(changed.out)[-2:] == [
        "trainfabric.catalog.json written: 1 changed, 1 left alone",
        "changed: p5.48xlarge",
    ]


def test_cards_that_take_efa_and_nothing_else_get_it_before_those_that_take_both(
    trainfabric: Any, fake_aws: FakeAws
) -> None:
    kinds = [["interface"], ["efa-only"], ["interface", "efa-only"], ["efa-only"]]
    cards = [
        {"NetworkCardIndex": i, "MaximumNetworkInterfaces": 2 - i % 2, "InterfaceTypes": t} for i, t in enumerate(kinds)
    ]
    network = {**entry("x1.large")["NetworkInfo"], "NetworkCards": cards, "EfaInfo": {"MaximumEfaInterfaces": 3}}
    fake_aws({"DescribeInstanceTypes": pages(entry("p7.48xlarge", NetworkInfo=network))})

    trainfabric("catalog", "refresh", "--region", "us-east-2", "p7.48xlarge")

    assert [card.efa for card in instance_type("p7.48xlarge").known_cards] == [False, True, False, True]
    assert [card.ena for card in instance_type("p7.48xlarge").known_cards] == [True, False, True, False]


def test_a_region_without_the_type_is_refused_and_nothing_is_written(trainfabric: Any, fake_aws: FakeAws) -> None:
    fake_aws({"DescribeInstanceTypes": pages(entry("t9.nano"))})

    done = trainfabric("catalog", "refresh", "--region", "us-east-2", "p7.48xlarge")

    assert (done.status, done.out) == (2, "")
    assert done.err == (
        "catalog refresh: instance type must be one that us-east-2 offers, got p7.48xlarge; "
        "ask a region that offers the type\n"
    )
    assert not Path(FILE).exists()


def test_a_file_that_is_not_ours_is_left_as_it_is(trainfabric: Any, fake_aws: FakeAws, tmp_path: Path) -> None:
    asked = fake_aws({}).asked
    (tmp_path / "mine.json").write_text('{"mine": 1}')

    done = trainfabric("catalog", "refresh", "--region", "us-east-2", "--output", "mine.json")

    assert done.status == 2
    assert done.err.startswith("mine.json: format must be as this version writes it (field required), got ")
    assert (tmp_path / "mine.json").read_text() == '{"mine": 1}'
    assert asked == []


def test_without_credentials_it_says_so(trainfabric: Any, no_aws: None) -> None:
    done = trainfabric("catalog", "refresh", "--region", "us-east-1")

    assert (done.status, done.out) == (2, "")
    assert done.err == (
        "catalog refresh: AWS credentials must be given, got none; set AWS_PROFILE or run aws configure; on a node, "
        "check its instance profile\n"
    )


def test_without_the_permission_it_says_so(trainfabric: Any, fake_aws: FakeAws) -> None:
    fake_aws({"DescribeInstanceTypes": refused("UnauthorizedOperation")})

    done = trainfabric("catalog", "refresh", "--region", "us-east-1")

    assert (done.status, done.out) == (2, "")
    assert done.err == (
        "catalog refresh: ec2 must accept the request, got An error occurred (UnauthorizedOperation) when calling the "
        "DescribeInstanceTypes operation: UnauthorizedOperation; check the credentials and their permissions\n"
    )


@pytest.mark.parametrize("text", ["High", "Low to Moderate", "Very Low"])
def test_a_bandwidth_in_words_is_none_in_numbers(text: str, trainfabric: Any, fake_aws: FakeAws) -> None:
    network = {**entry("x1.large")["NetworkInfo"], "NetworkPerformance": text}
    fake_aws({"DescribeInstanceTypes": pages(entry("m9.large", NetworkInfo=network))})

    trainfabric("catalog", "refresh", "--region", "us-east-2", "m9.large")

    assert instance_type("m9.large").network_gbps == 0


def test_names_that_cannot_be_any_are_refused_together_before_credentials(trainfabric: Any, no_aws: None) -> None:
    ended = trainfabric("catalog", "refresh", "--region", "useast1", "p5")

    assert (ended.status, ended.out) == (2, "")
    assert ended.err == (
        "catalog refresh: --region must be the name of an AWS region such as us-east-1, got useast1\n"
        "catalog refresh: NAME must be the name of an instance type such as p5.48xlarge, got p5; did you mean "
        "p5.4xlarge or p5.48xlarge?\n"
    )


def test_a_file_that_cannot_be_written_is_said(trainfabric: Any, fake_aws: FakeAws) -> None:
    fake_aws({"DescribeInstanceTypes": pages(entry("p7.48xlarge"))})

    ended = trainfabric("catalog", "refresh", "-r", "us-east-2", "p7.48xlarge", "-o", "none/facts.json")

    assert (ended.status, ended.out) == (2, "")
    assert ended.err == "none/facts.json: the file must be one that can be written, got No such file or directory\n"
