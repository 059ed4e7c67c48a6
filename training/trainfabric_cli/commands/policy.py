"""`trainfabric policy`: the least that whoever deploys an environment must be allowed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trainfabric_cli.options import EnvironmentArgument, Json

if TYPE_CHECKING:
    from rich.table import Table

    from trainfabric_plan.environment import Environment
    from trainfabric_plan.permissions import Target

_ACCOUNT = r"^\d{12}$"
_QUALIFIER = r"^[A-Za-z0-9_-]{1,10}$"
"""Source: bootstrap template of aws-cdk 2.1148, parameter Qualifier."""
_POLICY_ARN = r"^arn:aws[a-z-]*:iam::(\d{12}|aws):policy/[\w+=,.@/-]+$"


def policy(
    environment_file: EnvironmentArgument,
    account: Annotated[
        str | None, typer.Option("--account", help="AWS account, if the environment file names none.")
    ] = None,
    qualifier: Annotated[str, typer.Option("--qualifier", help="Qualifier of `cdk bootstrap`.")] = "hnb659fds",
    boundary: Annotated[
        str | None, typer.Option("--boundary", metavar="ARN", help="Permissions boundary that every role must have.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FOLDER", help="Write the documents into this folder.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write the least-privilege IAM policies for deploying an environment. Needs no credentials.

    Two roles deploy: who calls CDK may only assume the roles of `cdk bootstrap`, and CloudFormation's execution role
    makes the resources.
    """
    from trainfabric_cli.output import print_json
    from trainfabric_plan.environment.file import read_environment
    from trainfabric_plan.permissions import caller_policy, deploy_policies

    target = _target(read_environment(environment_file), environment_file, account, boundary)
    _check("--qualifier", qualifier, _QUALIFIER, "1 to 10 letters, digits, hyphens or underscores")
    documents = {"caller": caller_policy(target, qualifier), "deploy": deploy_policies(target)}
    files = _written(output, target.environment.name, documents) if output else []
    removed = _without_older(output, target.environment.name, files) if output else []
    if as_json:
        named = {"files": [str(file) for file in files], "removed": [str(file) for file in removed]}
        print_json({**documents, "account": target.account, **named})
    else:
        _print(target, documents, qualifier, files)
        for file in removed:
            typer.echo(f"Removed {file} of an earlier run: the policies fit into fewer documents now.")


def _target(environment: Environment, file: Path, account: str | None, boundary: str | None) -> Target:
    from trainfabric_plan.errors import mistake
    from trainfabric_plan.permissions import Target

    if account and environment.account and account != environment.account:
        rule = f"the account of {file}, {environment.account}"
        raise mistake("policy", "--account", rule, account, "leave it out")
    chosen = environment.account or account
    if chosen is None:
        remedy = "name it in the environment file, or add --account"
        raise mistake("policy", "account", "known: the policies name resources in it", "none", remedy)
    _check("--account", chosen, _ACCOUNT, "12 digits")
    if boundary is not None:
        _check("--boundary", boundary, _POLICY_ARN, "the ARN of a managed policy")
    return Target(environment=environment, account=chosen, boundary=boundary)


def _check(name: str, value: str, pattern: str, rule: str) -> None:
    import re

    from trainfabric_plan.errors import mistake

    if not re.match(pattern, value):
        raise mistake("policy", name, rule, value)


def _written(folder: Path, name: str, documents: dict[str, Any]) -> list[Path]:
    from trainfabric_plan.errors import mistake

    named = {f"{name}-caller": documents["caller"]}
    named |= {f"{name}-deploy-{number}": one for number, one in enumerate(documents["deploy"], 1)}
    files = {folder / f"{one}.json": document for one, document in named.items()}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, document in files.items():
            file.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise mistake(str(folder), "output", "a folder that can be written", error.strerror) from None
    return list(files)


def _without_older(folder: Path, name: str, files: list[Path]) -> list[Path]:
    """Removes the documents that an earlier run for this environment wrote and this one did not."""
    import re

    numbered = re.compile(rf"{re.escape(name)}-deploy-\d+\.json")
    older = [file for file in folder.iterdir() if numbered.fullmatch(file.name) and file not in files]
    for file in older:
        file.unlink()
    return sorted(older)


def _print(target: Target, documents: dict[str, Any], qualifier: str, files: list[Path]) -> None:
    from trainfabric_cli.output import console, print_table

    out = console()
    name, region = target.environment.name, target.environment.region
    out.print(f"{name}: account {target.account}, {region}\n", style="bold")
    print_table(out, "Who calls CDK", _table([documents["caller"]]))
    print_table(out, "CloudFormation's execution role", _table(documents["deploy"]))
    if not files:
        out.print("--output FOLDER writes the documents and says what to do with them, --json prints them.")
        return
    for command in _commands(target, qualifier, files):
        out.print(command, soft_wrap=True)


def _table(documents: list[dict[str, Any]]) -> Table:
    from trainfabric_cli.output import table

    made = table("policy", "statement", "actions", "limited to", numbers=("policy", "actions"))
    for number, document in enumerate(documents, 1):
        for one in document["Statement"]:
            made.add_row(str(number), one["Sid"], str(len(one["Action"])), _limits(one))
    return made


def _limits(statement: dict[str, Any]) -> str:
    """In words: the resources of a statement without the parts that all ARNs share, and its conditions."""
    resources = sorted({_short(one) for one in statement["Resource"]} - {"*"})
    conditions = [
        f"{key} {' or '.join([value] if isinstance(value, str) else value)}"
        for test in statement.get("Condition", {}).values()
        for key, value in test.items()
    ]
    return "; ".join([", ".join(resources), *conditions] if resources else conditions)


def _short(arn: str) -> str:
    return arn if arn == "*" else f"{arn.split(':', 5)[2]}:{arn.split(':', 5)[5]}"


def _commands(target: Target, qualifier: str, files: list[Path]) -> list[str]:
    """What to do with the files, once for each account and region."""
    deploys = [file for file in files if "-deploy-" in file.name]
    names = [f"trainfabric-{file.stem}" for file in deploys]
    arns = ",".join(target.arn("iam", f"policy/{name}", region="") for name in names)
    own = f" --qualifier {qualifier} --toolkit-stack-name CDKToolkit-{qualifier}" if qualifier != "hnb659fds" else ""
    place = f"aws://{target.account}/{target.environment.region}"
    return [
        "Once, with administrator rights:",
        *(
            f"  aws iam create-policy --policy-name {name} --policy-document file://{file}"
            for name, file in zip(names, deploys, strict=True)
        ),
        f"  cdk bootstrap {place}{own} --cloudformation-execution-policies {arns}",
        f"Then attach {files[0]} to whoever deploys.",
    ]
