"""`trainfabric lint`: the rules of the constructs over anybody's CloudFormation templates."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trainfabric_cli.options import Json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainfabric_plan.lint import Assembly, Finding, Rule

EXIT_FINDINGS = 1


def lint(
    templates: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="TEMPLATE…",
            help="Templates (YAML, JSON) or ParallelCluster configurations, or a cdk.out directory.",
        ),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Let warnings fail, too.")] = False,
    select: Annotated[list[str] | None, typer.Option("--select", metavar="ID", help="Only this rule (repeat).")] = None,
    ignore: Annotated[list[str] | None, typer.Option("--ignore", metavar="ID", help="Not this rule (repeat).")] = None,
    parameter: Annotated[
        list[str] | None,
        typer.Option("--parameter", "-p", metavar="NAME=VALUE", help="Value of a template's parameter (repeat)."),
    ] = None,
    explain: Annotated[str | None, typer.Option("--explain", metavar="ID", help="Print why a rule is there.")] = None,
    as_json: Json = False,
) -> None:
    """Check CloudFormation templates for what EC2, FSx, Auto Scaling, Batch and PCS would refuse.

    Leaves with 0 if nothing was found, 1 after errors (with --strict after warnings, too), 2 if a file is no template.
    """
    from trainfabric_plan.lint import Severity, chosen_rules
    from trainfabric_plan.lint import lint as run

    if explain is not None:
        _explain(chosen_rules([explain])[0], as_json)
        return
    rules = chosen_rules(select or [], ignore or [])
    found = run(_assembly(templates or [], _parameters(parameter or [])), rules)
    if as_json:
        _print_document(found)
    else:
        _print(found, len(rules))
    if any(strict or one.severity is Severity.ERROR for one in found):
        raise typer.Exit(EXIT_FINDINGS)


def _parameters(given: Sequence[str]) -> dict[str, str]:
    from trainfabric_plan.errors import InvalidInput, Mistake

    wrong = [one for one in given if "=" not in one]
    if wrong:
        raise InvalidInput(Mistake(where="lint", name="parameter", rule="NAME=VALUE", got=one) for one in wrong)
    return dict(one.split("=", 1) for one in given)


def _assembly(paths: Sequence[Path], parameters: dict[str, str]) -> Assembly:
    from trainfabric_cli.cloudformation import read_template
    from trainfabric_plan.errors import mistake
    from trainfabric_plan.lint import Assembly, read_cloud_assembly

    if not paths:
        raise mistake("lint", "TEMPLATE", "given at least once", "none", "name a template or a cdk.out directory")
    directories = [path for path in paths if path.is_dir()]
    if directories and len(paths) > 1:
        raise mistake("lint", "TEMPLATE", "one directory, or files alone", ", ".join(map(str, paths)))
    if directories:
        assembly = read_cloud_assembly(directories[0], parameters)
    else:
        assembly = Assembly(read_template(path, parameters) for path in paths)
    _refuse_unknown_parameters(assembly, parameters)
    return assembly


def _refuse_unknown_parameters(assembly: Assembly, given: dict[str, str]) -> None:
    """A value for a parameter that no template has would be lost silently; `AWS::Region` and the like all have."""
    from trainfabric_plan.errors import InvalidInput, Mistake

    known = {name for template in assembly.templates for name in template.section("Parameters")}
    rule, remedy = "a parameter of one of the templates", f"they have {', '.join(sorted(known)) or 'none'}"
    unknown = [name for name in given if name not in known and not name.startswith("AWS::")]
    if unknown:
        raise InvalidInput(
            Mistake(where="lint", name="parameter", rule=rule, got=name, remedy=remedy) for name in unknown
        )


def _print_document(found: Sequence[Finding]) -> None:
    from trainfabric_cli.output import print_json

    print_json([{**asdict(one), "message": one.message} for one in found])


def _print(found: Sequence[Finding], rules: int) -> None:
    from trainfabric_cli.output import console, print_table, table
    from trainfabric_plan.lint import Severity

    out = console()
    if found:
        made = table("rule", "finding")
        for one in found:
            style = "red" if one.severity is Severity.ERROR else "yellow"
            made.add_row(f"{one.severity}\n{one.rule}", one.message, style=style)
        print_table(out, "Findings", made)
    errors = sum(one.severity is Severity.ERROR for one in found)
    out.print(f"{errors} errors and {len(found) - errors} warnings by {rules} rules")
    if found:
        out.print("trainfabric lint --explain RULE says why a rule is there")


def _explain(rule: Rule, as_json: bool) -> None:
    from trainfabric_cli.output import console, print_json

    document: dict[str, Any] = {
        "rule": rule.id,
        "severity": rule.severity,
        "title": rule.title,
        "why": rule.why,
        "source": rule.source,
    }
    if as_json:
        print_json(document)
        return
    out = console()
    out.print(f"{rule.id} ({rule.severity})", style="bold")
    for text in (rule.title, rule.why, f"source: {rule.source}"):
        out.print(text)
