"""Every rule on a template that breaks it and on one that does not: `cases/<rule>.yaml`, the bad one first.

Lines `# finds …` of the bad template are the whole messages.
"""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from trainfabric_cli.cloudformation import read_template
from trainfabric_plan.lint import RULES, Assembly, Rule, Severity, Template, lint

CASES = Path(__file__).parent / "cases"
WITHOUT_A_FILE = {"cluster-group-type", "user-data-may-be-too-large", "user-data-too-large"}
"""Rules whose templates a test makes: those about size, and those about facts that rows of the catalog may lack."""


def halves(rule: str) -> tuple[str, str]:
    bad, good = (CASES / f"{rule}.yaml").read_text().split("---\n")
    return bad, good


def messages(text: str, name: str, *rules: str) -> list[str]:
    Path(name).write_text(text)
    chosen = [RULES[rule] for rule in rules] or RULES.values()
    return [finding.message for finding in lint(Assembly([read_template(Path(name))]), chosen)]


@pytest.fixture(autouse=True)
def in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_every_rule_has_a_bad_and_a_good_template() -> None:
    assert {path.stem for path in CASES.iterdir()} == RULES.keys() - WITHOUT_A_FILE


@pytest.mark.parametrize("rule", sorted(RULES.keys() - WITHOUT_A_FILE))
def test_a_rule_finds_what_breaks_it_and_says_where_and_what_to_do(rule: str) -> None:
    bad, _ = halves(rule)
    expected = [line.removeprefix("# finds ") for line in bad.splitlines() if line.startswith("# finds ")]

    assert expected
    assert messages(bad, "bad.yaml", rule) == expected


@pytest.mark.parametrize("rule", sorted(RULES.keys() - WITHOUT_A_FILE))
def test_no_rule_finds_anything_in_a_good_template(rule: str) -> None:
    _, good = halves(rule)

    assert messages(good, "good.yaml") == []


def user_data(value: object, parameters: dict[str, object] | None = None) -> list[str]:
    data = {"UserData": value, "MetadataOptions": {"HttpTokens": "required"}}
    resource = {"Type": "AWS::EC2::LaunchTemplate", "Properties": {"LaunchTemplateData": data}}
    body = {"Parameters": parameters or {}, "Resources": {"Nodes": resource}}
    return [finding.message for finding in lint(Assembly([Template(name="stack", body=body)]))]


def test_user_data_over_16_kib_is_refused_and_its_known_bytes_counted() -> None:
    script = "#!/bin/bash\n" + "x" * 16_373

    assert user_data({"Fn::Base64": {"Fn::Sub": script + "${AWS::StackName}"}}) == [
        "stack: Nodes.Properties.LaunchTemplateData.UserData must be at most 16384 bytes before base64, got at least "
        "16385; put the script into a bucket or the image, and fetch it from a short one"
    ]


def test_user_data_that_stands_in_base64_is_counted_decoded() -> None:
    assert user_data(base64.b64encode(b"#!/bin/bash\n" + b"x" * 16_000).decode()) == []
    assert len(user_data(base64.b64encode(b"#!/bin/bash\n" + b"x" * 16_400).decode())) == 1


def test_user_data_that_a_long_parameter_makes_too_large_is_warned_about() -> None:
    script = {"Fn::Base64": {"Fn::Join": ["\n", ["#!/bin/bash", "x" * 16_300, {"Ref": "Extra"}]]}}

    assert user_data(script, {"Extra": {"Type": "String", "MaxLength": "100"}}) == [
        "stack: Nodes.Properties.LaunchTemplateData.UserData must be at most 16384 bytes before base64, with every "
        "parameter at its longest, got 16413; put the script into a bucket or the image, and fetch it from a short one"
    ]
    assert user_data(script, {"Extra": {"Type": "String", "AllowedValues": ["a", "bc"]}}) == []


def test_a_parameter_without_a_limit_is_never_guessed() -> None:
    script = {"Fn::Base64": {"Fn::Sub": "x" * 16_300 + "${Extra}"}}

    assert user_data(script, {"Extra": {"Type": "String"}}) == []


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.id)
def test_a_rule_says_what_it_asks_for_why_and_from_where(rule: Rule) -> None:
    assert rule.title and rule.why.endswith(".") and not rule.title.endswith(".")
    assert rule.source and rule.severity in Severity
