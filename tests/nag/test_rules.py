"""cdk-nag's packs AwsSolutions and NIST 800-53 revision 5, and cfn-lint with the resource schemas of the region."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.nag.ports import open_ports

EXPLAINED = {
    "W3010": "EFA, the placement group and Lustre live in one zone, and the environment says which",
}


def lint(region: str, *templates: Path) -> list[str]:
    """Ids of cfn-lint's findings that are not explained above."""
    cfn_lint = Path(sys.executable).parent / "cfn-lint"
    options = ["--format", "json", "--regions", region, "--ignore-checks", *EXPLAINED]
    done = subprocess.run([cfn_lint, *options, "--", *templates], text=True, capture_output=True, check=False)
    assert done.stderr == ""
    return [f"{found['Rule']['Id']} {found['Message']}" for found in json.loads(done.stdout)]


def test_no_finding_of_cdk_nag_is_left_unexplained(synthesised: Any) -> None:
    assert synthesised.findings == []


def test_cfn_lint_finds_nothing(synthesised: Any) -> None:
    assert len(synthesised.templates) == 4
    assert lint(synthesised.environment.region, *synthesised.templates) == []


def test_nothing_is_let_in_from_everywhere_and_ssh_from_nowhere(synthesised: Any) -> None:
    assert [rule for file in synthesised.templates for rule in open_ports(json.loads(file.read_text()))] == []


def test_an_open_port_would_be_found() -> None:
    ssh = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "CidrIp": "10.0.0.0/8"}
    world = {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, "CidrIp": "0.0.0.0/0"}
    inside = {"IpProtocol": "-1", "SourceSecurityGroupId": "sg-1"}
    template = {
        "Resources": {
            "Group": {"Type": "AWS::EC2::SecurityGroup", "Properties": {"SecurityGroupIngress": [ssh, world]}},
            "Rule": {"Type": "AWS::EC2::SecurityGroupIngress", "Properties": inside},
        }
    }

    assert open_ports(template) == [ssh, world]


def test_cdk_nag_does_find_what_is_wrong(careless_findings: list[str]) -> None:
    solutions = [rule for rule in careless_findings if rule.startswith("AwsSolutions")]
    assert solutions == ["AwsSolutions-S1", "AwsSolutions-S10"]
    assert "NIST.800.53.R5-S3BucketVersioningEnabled" in careless_findings


def test_cfn_lint_does_find_what_is_wrong(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.template.json"
    wrong.write_text(json.dumps({"Resources": {"Vpc": {"Type": "AWS::EC2::VPC", "Properties": {"Cidr": "x"}}}}))

    assert [found.split()[0] for found in lint("us-east-1", wrong)] == ["E3002", "E3014"]
