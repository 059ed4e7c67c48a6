"""The page about the rules, `docs/lint-rules.md`."""

from __future__ import annotations

import sys
from pathlib import Path

from trainfabric_plan.lint.model import Rule
from trainfabric_plan.lint.rules import RULES, SUBJECTS

_HEAD = """\
# Rules of `trainfabric lint`

`trainfabric lint TEMPLATE…` checks CloudFormation templates, whoever made them: YAML with short tags, JSON, or a whole
`cdk.out` directory with its stages and nested stacks. References between the templates at hand are followed; a value
that only a deployment tells is never judged (`-p NAME=VALUE` says what a parameter will be, and decides conditions).
Where a condition is undecided, network interfaces and volumes in both branches of an `Fn::If` are looked at one by one,
for what is wrong whatever else there is; they are not counted or held against each other, and other values with two
branches are not looked at. It needs no credentials.

It leaves with 0 if it found nothing, 1 after errors (with `--strict` after warnings, too), and 2 if a file is no
template. `--select ID` and `--ignore ID` choose rules, `--explain ID` prints what stands here, `--json` is for
programs. An *error* is what AWS refuses or what does not do what it is there for; a *warning* is what works, but
slower, less safely or at a risk. In tests of a CDK app: `assert_lints` of `trainfabric_cdk.testing`
([how-to](how-to/snapshot-test-your-app.md)).
"""


def reference_text() -> str:
    """The page as Markdown."""
    parts = [_HEAD]
    for subject, rules in SUBJECTS.items():
        parts.append(f"\n## {subject}\n")
        parts += [_entry(rule) for rule in rules]
    return "".join(parts) + f"\n{len(RULES)} rules. Generated from the code by `make generate`.\n"


def _entry(rule: Rule) -> str:
    return f"\n### {rule.id}\n*{rule.severity}* · {rule.title}.\n\n{rule.why} Source: {rule.source}.\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(reference_text(), encoding="utf-8")
