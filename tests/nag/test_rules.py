"""cdk-nag's AwsSolutions rules, and cfn-lint with the resource schemas of the region."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

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


def test_cdk_nag_does_find_what_is_wrong(careless_findings: list[str]) -> None:
    assert careless_findings == ["AwsSolutions-S1", "AwsSolutions-S10"]


def test_cfn_lint_does_find_what_is_wrong(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.template.json"
    wrong.write_text(json.dumps({"Resources": {"Vpc": {"Type": "AWS::EC2::VPC", "Properties": {"Cidr": "x"}}}}))

    assert [found.split()[0] for found in lint("us-east-1", wrong)] == ["E3002", "E3014"]
