"""What `trainfabric_cdk.testing` gives to other people's tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_s3 as s3

from trainfabric_cdk.testing import LintFindings, assert_lints, normalised_template, stateful_resources

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to" / "snapshot-test-your-app.md"


def test_the_snippet_of_the_how_to_runs() -> None:
    (snippet,) = (part.split("```")[0] for part in HOW_TO.read_text().split("```python\n")[1:])
    names: dict[str, Any] = {}
    exec(snippet, names)

    names["test_the_network_is_what_it_was"]()


def test_what_holds_data_is_listed_by_logical_id(stack: cdk.Stack) -> None:
    s3.CfnBucket(stack, "Data")
    ec2.CfnVPC(stack, "Vpc", cidr_block="10.0.0.0/16")

    assert stateful_resources(normalised_template(stack)) == {"Data": "AWS::S3::Bucket"}


def test_a_stack_that_breaks_a_rule_fails_with_place_and_remedy(stack: cdk.Stack) -> None:
    ec2.CfnVolume(stack, "Home", availability_zone="us-east-1a", size=100)

    with pytest.raises(LintFindings) as caught:
        assert_lints(stack)

    assert str(caught.value) == (
        "warning volume-not-encrypted: Demo.template.json: Home.Properties.Encrypted must be true, got none; set "
        "Encrypted to true: it costs nothing, and no speed"
    )
    assert_lints(stack, warnings=False)
    assert_lints(stack, ignore=["volume-not-encrypted"])


def test_a_stack_answers_for_itself_and_an_app_for_all(stack: cdk.Stack) -> None:
    other = cdk.Stack(cdk.App.of(stack), "Other")  # type: ignore[arg-type]
    ec2.CfnVolume(other, "Home", availability_zone="us-east-1a", size=100)

    assert_lints(stack)
    with pytest.raises(LintFindings, match=r"Other\.template\.json"):
        assert_lints(stack.node.root)  # type: ignore[arg-type]
