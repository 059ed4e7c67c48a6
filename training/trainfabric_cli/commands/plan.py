"""`trainfabric plan`: the layout of an environment, what it needs and what it costs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from trainfabric_cli.options import EnvironmentArgument, Json

if TYPE_CHECKING:
    from rich.table import Table

    from trainfabric_plan.planning import AnyPlan, CommandPlan, CostPerHour, Plan
    from trainfabric_plan.recipes import Recipe


class _ShowByDefault(TyperGroup):
    """`trainfabric plan FILE` is `trainfabric plan show FILE`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in {*self.commands, *ctx.help_option_names}:
            args = ["show", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_ShowByDefault,
    no_args_is_help=True,
    help="Work out layout, memory and cost of an environment. `plan FILE` is `plan show FILE`.",
)


@app.callback()
def _plan() -> None:
    """Keeps this a group while it has a single command."""


@app.command()
def show(environment_file: EnvironmentArgument, as_json: Json = False) -> None:
    """Show the layout, the memory per rank and the cost per hour of an environment."""
    from trainfabric_cli.output import print_json
    from trainfabric_plan.environment.file import read_environment
    from trainfabric_plan.planning import Plan, cost_per_hour, plan_for
    from trainfabric_plan.recipes import recipe

    environment = read_environment(environment_file)
    instance_type, plan, cost = environment.fleet.instance_type, plan_for(environment), cost_per_hour(environment)
    chosen = recipe(plan.recipe) if isinstance(plan, Plan) else None
    _warn_of_missing_code(environment_file, environment.training.code)
    if as_json:
        print_json(_document(plan, cost, chosen, instance_type))
    else:
        _print(plan, cost, chosen, instance_type)


def _warn_of_missing_code(environment_file: Path, code: str | None) -> None:
    """Only `job start` needs the folder, which may be elsewhere until then."""
    if code is not None and not (environment_file.parent / code).is_dir():
        typer.echo(
            f"warning: {environment_file}: training.code must be a folder when job start uploads it, got {code}, where "
            "there is none; its path is relative to the environment file",
            err=True,
        )


@app.command()
def draw(
    environment_file: EnvironmentArgument,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE.svg", help="Where the picture goes.")],
) -> None:
    """Draw an environment as SVG: network, nodes, file system, buckets."""
    from trainfabric_cli.picture import environment_svg
    from trainfabric_plan.environment.file import read_environment
    from trainfabric_plan.errors import mistake
    from trainfabric_plan.planning import plan_for

    environment = read_environment(environment_file)
    picture = environment_svg(environment, plan_for(environment))
    try:
        output.write_text(picture, encoding="utf-8")
    except OSError as error:
        raise mistake(str(output), "output", "a file that can be written", error.strerror) from None


def _document(plan: AnyPlan, cost: CostPerHour, recipe: Recipe | None, instance_type: str) -> dict[str, Any]:
    from dataclasses import asdict

    from trainfabric_plan.planning import Plan
    from trainfabric_plan.planning.cost import NOT_INCLUDED

    return {
        **plan.model_dump(mode="json"),
        "instance_type": instance_type,
        "ranks": plan.ranks,
        **({"parameters": recipe.model.parameters} if recipe else {}),
        **({"fits": plan.fits} if isinstance(plan, Plan) else {}),
        "cost_items": [asdict(item) for item in cost.items],
        "cost_not_included": NOT_INCLUDED,
    }


def _print(plan: AnyPlan, cost: CostPerHour, recipe: Recipe | None, instance_type: str) -> None:
    from trainfabric_cli.output import console, print_table
    from trainfabric_plan.planning import Plan
    from trainfabric_plan.planning.cost import NOT_INCLUDED

    out = console()
    what = f"{recipe.name}, {recipe.model.parameters:,} parameters" if recipe else "a command of its own"
    out.print(f"{plan.environment}: {what}, on {plan.nodes} × {instance_type}\n", style="bold")
    if isinstance(plan, Plan):
        print_table(out, "Layout", _layout_table(plan))
        print_table(out, "Memory of the fullest rank (by formula, not measured)", _memory_table(plan))
    else:
        print_table(out, "Command", _command_table(plan))
    print_table(out, "Cost per hour, all nodes up", _cost_table(cost))
    out.print(f"Not included: {NOT_INCLUDED}.\n", style="dim")
    for reason in plan.reasons:
        out.print(f"• {reason}")
    if isinstance(plan, Plan) and plan.fits is False:
        out.print("The fullest rank does not fit its accelerator.", style="bold red")


def _layout_table(plan: Plan) -> Table:
    from trainfabric_cli.output import table

    made = table("what", "how many", "from", numbers=("how many",))
    layout = plan.layout
    made.add_row("ranks", str(plan.ranks), f"{plan.nodes} nodes × {plan.ranks_per_node}")
    made.add_row("data", str(layout.data), "replicas of the model")
    made.add_row("pipeline", str(layout.pipeline), "stages of each replica")
    made.add_row("tensor", str(layout.tensor), "ranks of each stage")
    batch = f"micro-batch {plan.micro_batch} × accumulation {plan.accumulation} × data {layout.data}"
    made.add_row("global batch", str(plan.global_batch), batch)
    return made


def _command_table(plan: CommandPlan) -> Table:
    from trainfabric_cli.output import table

    made = table("what", "value")
    made.add_row("every node runs", " ".join(plan.command.split()))
    made.add_row("in", plan.image or "its code folder, on the node itself")
    made.add_row("WORLD_SIZE", f"{plan.ranks} = {plan.nodes} nodes × {plan.ranks_per_node}")
    return made


def _memory_table(plan: Plan) -> Table:
    from trainfabric_cli.output import binary_size, table

    made = table("part", "size", numbers=("size",))
    for part, size in plan.memory_bytes.items():
        made.add_row(part, binary_size(size), end_section=part == "logits")
    if plan.accelerator_memory_bytes is not None:
        verdict = "fits" if plan.fits else "does not fit"
        made.add_row(f"accelerator ({verdict}, with a margin)", binary_size(plan.accelerator_memory_bytes))
    return made


def _cost_table(cost: CostPerHour) -> Table:
    from trainfabric_cli.output import table, usd
    from trainfabric_plan.planning.cost import PRICED_REGION

    made = table("item", "USD", "basis", numbers=("USD",))
    for item in cost.items:
        made.add_row(item.item, usd(item.usd_per_hour), item.basis, end_section=item is cost.items[-1])
    if cost.usd_per_hour is None:
        made.add_row("at least", usd(cost.at_least_usd_per_hour), "sum of what has a confirmed price")
    else:
        made.add_row("sum", usd(cost.usd_per_hour), f"at list prices of {PRICED_REGION}")
    return made
