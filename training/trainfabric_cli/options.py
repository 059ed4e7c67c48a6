"""Options and arguments that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EnvironmentArgument = Annotated[Path, typer.Argument(metavar="ENVIRONMENT_FILE", help="Environment file (YAML).")]
EnvironmentOption = Annotated[
    Path, typer.Option("--environment", "-e", metavar="FILE", help="Environment file (YAML) of what is deployed.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on standard output.")]
Profile = Annotated[
    str | None, typer.Option("--profile", help="Profile of the AWS configuration; what AWS_PROFILE says if not given.")
]
