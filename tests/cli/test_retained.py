"""`trainfabric retained` says what `cdk destroy` keeps and what it costs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from trainfabric_cli.main import app

DEMO = Path(__file__).parents[2] / "environments" / "demo.yaml"


@pytest.fixture
def kept(tmp_path: Path) -> Any:
    def of(storage: str = "", network: str = "") -> list[dict[str, Any]]:
        text = DEMO.read_text(encoding="utf-8")
        start, end = text.index("storage:"), text.index("fleet:")
        file = tmp_path / "lab.yaml"
        file.write_text(text[:start] + network + storage + text[end:], encoding="utf-8")
        done = CliRunner().invoke(app, ["retained", str(file), "--json"])
        assert done.exit_code == 0, done.output
        found: list[dict[str, Any]] = json.loads(done.stdout)
        return found

    return of


def test_what_stays_is_told_with_its_cost_and_its_source(kept: Any) -> None:
    file_system, group, network, data, checkpoints = kept()

    assert file_system == {
        "what": "FSx for Lustre 1200 GiB at 125 MB/s per TiB",
        "why": "storage.retain",
        "usd_per_month": 174.0,
        "basis": "c3x.dev aws_fsx_lustre_file_system, undated, read 2026-11",
    }
    assert group["usd_per_month"] == 0
    assert network == {
        "what": "stack demo-Network, until Lustre is deleted",
        "why": "an interface of the file system stands in its subnet",
        "usd_per_month": 32.85,
        "basis": "NAT gateway, cloudburn.io/blog/aws-nat-gateway-pricing, us-east-1, 2026-02",
    }
    assert [one["what"] for one in (data, checkpoints)] == ["data bucket", "checkpoint bucket"]
    assert data["basis"].startswith("0.023 US dollars per GB that lies in it")


def test_a_price_that_nobody_confirmed_is_unknown(kept: Any) -> None:
    file_system = kept("storage: {lustre: {deployment: intelligent_tiering, throughput_mbps: 4000}}\n")[0]

    assert file_system["what"] == "FSx for Lustre Intelligent-Tiering at 4000 MB/s"
    assert file_system["usd_per_month"] is None


def test_a_file_system_stays_without_the_second_key_and_what_exists_stays_anyway(kept: Any) -> None:
    assert kept("storage: {retain: false}\n")[0]["why"].startswith("the second key")
    existing = "storage: {lustre: {file_system_id: fs-0123456789abcdef0, mount_name: abcdefgh}}\n"

    assert [one["what"] for one in kept(existing)] == [
        "file system fs-0123456789abcdef0",
        "data bucket",
        "checkpoint bucket",
    ]


EXISTING_LUSTRE = "lustre: {file_system_id: fs-0123456789abcdef0, mount_name: abcdefgh}"


@pytest.mark.parametrize(
    ("storage", "until"),
    [
        ("", "Lustre is deleted"),
        ("storage: {shared_home: efs}\n", "Lustre is deleted"),
        ("storage: {shared_home: openzfs}\n", "Lustre and the shared home are deleted"),
        (f"storage: {{shared_home: openzfs, {EXISTING_LUSTRE}}}\n", "the shared home is deleted"),
        (f"storage: {{retain: false, shared_home: openzfs, {EXISTING_LUSTRE}}}\n", "the shared home is deleted"),
    ],
)
def test_the_network_stays_as_long_as_a_file_system_made_here_stands_in_it(kept: Any, storage: str, until: str) -> None:
    (network,) = (one for one in kept(storage) if one["what"].startswith("stack"))

    assert network["what"] == f"stack demo-Network, until {until}"


def test_the_network_goes_if_what_stays_has_no_interface_in_it(kept: Any) -> None:
    kept_things = kept(f"storage: {{shared_home: efs, {EXISTING_LUSTRE}}}\n")

    assert [one["what"] for one in kept_things] == [
        "file system fs-0123456789abcdef0",
        "shared home on EFS",
        "data bucket",
        "checkpoint bucket",
    ]


def test_a_network_that_was_there_before_is_none_of_ours_to_keep(kept: Any) -> None:
    theirs = "network: {vpc_id: vpc-12345678, subnet_id: subnet-12345678, has_s3_endpoint: true}\n"

    assert [one["what"] for one in kept("storage: {shared_home: openzfs}\n", theirs)] == [
        "FSx for Lustre 1200 GiB at 125 MB/s per TiB",
        "its security group and rules",
        "shared home on FSx for OpenZFS, with its security group",
        "data bucket",
        "checkpoint bucket",
    ]


def test_people_get_a_table() -> None:
    done = CliRunner().invoke(app, ["retained", str(DEMO)])

    assert done.exit_code == 0
    assert "what cdk destroy keeps (list prices of us-east-1)" in done.stdout
    assert "174.00" in done.stdout


def test_the_table_ends_with_the_sum_of_what_is_known_and_says_what_is_not_in_it() -> None:
    done = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["retained", str(DEMO)])

    (total,) = (" ".join(line.replace("│", " ").split()) for line in done.stdout.splitlines() if "together" in line)
    assert total == "together at least 206.85 2 of 5 unknown, not in it"
