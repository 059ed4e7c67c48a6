"""For tests of apps with these constructs: templates for snapshots, what holds data, the rules of the linter."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from aws_cdk import Stack, Stage
from aws_cdk.assertions import Template
from constructs import IConstruct

from trainfabric_plan.lint import Finding, Severity, chosen_rules, lint, read_cloud_assembly

_ASSET_HASH = re.compile(r"\b[0-9a-f]{64}\b")

STATEFUL_TYPES = frozenset(
    {
        "AWS::EC2::Volume",
        "AWS::EFS::FileSystem",
        "AWS::FSx::FileSystem",
        "AWS::FSx::Volume",
        "AWS::KMS::Key",
        "AWS::S3::Bucket",
    }
)
"""Types of resources whose loss is a loss of data; a key's loss is that of everything encrypted with it."""


def normalised_template(stack: Stack) -> dict[str, Any]:
    """The template of a stack with every asset hash replaced, so that code on the nodes may change without notice."""
    text = json.dumps(Template.from_stack(stack).to_json())
    template: dict[str, Any] = json.loads(_ASSET_HASH.sub("ASSET", text))
    return template


def stateful_resources(template: Mapping[str, Any]) -> dict[str, str]:
    """Logical ids and types of the resources of a template that hold data.

    A changed logical id is a new resource, and the old one with its data is left behind or deleted: assert that the ids
    of deployed stacks stay.
    """
    resources: Mapping[str, Mapping[str, Any]] = template.get("Resources", {})
    return {name: body["Type"] for name, body in sorted(resources.items()) if body["Type"] in STATEFUL_TYPES}


class LintFindings(AssertionError):
    """Rules that templates break.

    Attributes:
        findings: What was found, each with rule, place and remedy.
    """

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = tuple(findings)
        super().__init__("\n".join(f"{one.severity} {one.rule}: {one.message}" for one in self.findings))


def assert_lints(scope: Stack | Stage, *, ignore: Iterable[str] = (), warnings: bool = True) -> None:
    """Assert that no rule of `trainfabric lint` finds anything in a stack, or in all stacks of an app or stage.

    The templates are looked at together, as CDK writes them, so that references between stacks are followed.

    Args:
        scope: A stack, a stage or an app.
        ignore: Ids of rules to leave out (`docs/lint-rules.md`).
        warnings: Whether warnings count.

    Raises:
        LintFindings: With every finding.
        InvalidInput: If no rule has an id of `ignore`.
    """
    rules = chosen_rules(ignore=tuple(ignore))
    stage = scope if Stage.is_stage(scope) else Stage.of(scope)  # of a stage, `of` is the one around it
    directory = Path(cast(Stage, stage).synth().directory)
    files = {str(directory / name) for name in _template_files(scope)}
    found = lint(read_cloud_assembly(directory), rules)
    if not Stage.is_stage(scope):
        found = [one for one in found if one.template in files]
    kept = [_told(one, directory) for one in found if warnings or one.severity is Severity.ERROR]
    if kept:
        raise LintFindings(kept)


def _template_files(scope: IConstruct) -> list[str]:
    return [cast(Stack, one).template_file for one in scope.node.find_all() if Stack.is_stack(one)]


def _told(finding: Finding, directory: Path) -> Finding:
    """The finding with the template's name, not the path of a temporary directory."""
    return replace(finding, template=str(Path(finding.template).relative_to(directory)))
