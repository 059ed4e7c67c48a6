"""`trainfabric init`: a deployable CDK app from the installed package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trainfabric_cli.options import Json


def init(
    directory: Annotated[Path, typer.Argument(help="Where the app is written; made if it does not exist.")],
    name: Annotated[
        str | None, typer.Option(help="Name of the environment; the name of the directory if not given.")
    ] = None,
    region: Annotated[str, typer.Option(help="AWS region of the environment.")] = "us-east-2",
    as_json: Json = False,
) -> None:
    """Write app.py, cdk.json, requirements.txt and an environment: an app that `cdk deploy` deploys."""
    from trainfabric_cli import scaffold
    from trainfabric_cli.output import print_json

    chosen = directory.resolve().name if name is None else name
    written = scaffold.write(directory, chosen, region)
    if as_json:
        print_json({"directory": str(directory), "environment": chosen, "files": [str(file) for file in written]})
        return
    for file in written:
        typer.echo(f"wrote {directory / file}")
    typer.echo(f"\nnext: edit {directory / scaffold.environment_file(chosen)}, then follow {directory / 'README.md'}")
