"""The `trainfabric` command and how it ends: 0 done, 1 a job failed, 2 something the user can mend."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from trainfabric_cli.commands import capacity, catalog, checkpoint, init, job, lint, plan, policy, retained
from trainfabric_plan.errors import EXIT_USER_ERROR, TrainfabricError


class ErrorsAsText(TyperGroup):
    """Prints a `TrainfabricError` on standard error, without a traceback, and leaves with exit status 2."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except TrainfabricError as error:
            typer.echo(str(error), err=True)
            raise typer.Exit(EXIT_USER_ERROR) from error


app = typer.Typer(
    name="trainfabric",
    cls=ErrorsAsText,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Plan, deploy and run the training of large models on AWS.",
)
app.add_typer(plan.app, name="plan")
app.add_typer(catalog.app, name="catalog")
app.add_typer(capacity.app, name="capacity")
app.add_typer(job.app, name="job")
app.add_typer(checkpoint.app, name="checkpoint")
app.command(name="init")(init.init)
app.command(name="retained")(retained.retained)
app.command(name="policy")(policy.policy)
app.command(name="lint")(lint.lint)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"trainfabric {version('trainfabric')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Plan, deploy and run the training of large models on AWS."""


def run() -> None:
    """Entry point of the `trainfabric` script."""
    app()
