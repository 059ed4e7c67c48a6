"""`trainfabric catalog`: the instance types that trainfabric knows, and what EC2 says of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from trainfabric_cli.options import Json

if TYPE_CHECKING:
    from trainfabric_plan.catalog import InstanceType


class ShownByDefault(TyperGroup):
    """`catalog` and `catalog NAME` show rows; anything else is a command of its own."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put `show` before arguments that name no command."""
        if not args or (args[0] not in self.commands and args[0] not in ("-h", "--help")):
            args = ["show", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=ShownByDefault,
    no_args_is_help=False,
    help="Instance types: accelerators, network, EFA interfaces, price. `catalog [NAME] [--json]` lists them.",
)


@app.command()
def show(
    name: Annotated[str | None, typer.Argument(help="One instance type; all of them if not given.")] = None,
    as_json: Json = False,
) -> None:
    """List instance types: accelerators, network, EFA interfaces, price. `--json` is a list of rows."""
    from trainfabric_cli.catalog_views import document, print_row, print_rows
    from trainfabric_cli.output import print_json

    rows = _all_rows() if name is None else [_row(name)]
    if as_json:
        print_json([document(row) for row in rows])
    elif name is None:
        print_rows(rows)
    else:
        print_row(rows[0])


@app.command()
def refresh(
    region: Annotated[str, typer.Option("--region", "-r", help="Region to ask.")],
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Types to ask for; those of the catalog if none.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="File to write or complete.")
    ] = None,
    profile: Annotated[str | None, typer.Option("--profile", help="Profile of the AWS configuration.")] = None,
    as_json: Json = False,
) -> None:
    """Ask EC2 for instance types, show what differs, and write it down for constructs and planner.

    Needs ec2:DescribeInstanceTypes. The file is trainfabric.catalog.json of this folder, or what TRAINFABRIC_CATALOG
    names.
    """
    from trainfabric_cli.catalog_refresh import refreshed
    from trainfabric_cli.catalog_views import print_refreshed
    from trainfabric_cli.output import print_json

    done = refreshed(region=region, names=names or [], path=output, profile=profile)
    if as_json:
        print_json(done.document())
    else:
        print_refreshed(done)


def _all_rows() -> list[InstanceType]:
    from trainfabric_plan.catalog import INSTANCE_TYPES
    from trainfabric_plan.catalog.overrides import overriding_facts

    return [_row(name) for name in dict.fromkeys((*INSTANCE_TYPES, *overriding_facts()))]


def _row(name: str) -> InstanceType:
    from trainfabric_plan.catalog import instance_type

    return instance_type(name)
