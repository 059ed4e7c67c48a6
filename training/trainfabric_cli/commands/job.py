"""`trainfabric job`: start, watch and stop what trains in a deployed environment, one job at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from trainfabric_cli.options import EnvironmentOption, Json

if TYPE_CHECKING:
    from trainfabric_node.jobs import JobControl, JobStatus
    from trainfabric_plan.environment import Environment
    from trainfabric_plan.recipes import Recipe

EXIT_JOB_FAILED = 1
EXIT_INTERRUPTED = 130
STOP_TIMEOUT_S = 900.0

app = typer.Typer(no_args_is_help=True, help="Start, watch and stop the job of a deployed environment.")

JobArgument = Annotated[str | None, typer.Argument(metavar="[NAME]", help="The job; the newest if not given.")]


@app.command()
def start(
    name: Annotated[str, typer.Argument(help="Name of the job: lower-case letters, digits, hyphens.")],
    environment: EnvironmentOption,
    data: Annotated[
        str | None, typer.Option(metavar="URI", help="Corpus, without suffix; that of the data bucket if not given.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the newest committed checkpoint.")] = False,
    from_step: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="With --resume: go on from the checkpoint of this step.")
    ] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Optimizer steps; those of the recipe if not given.")] = None,
    checkpoint_every: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Steps between checkpoints; the recipe's if not given.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Show progress until the job has ended.")] = False,
    as_json: Json = False,
) -> None:
    """Start a job on the nodes of the environment. Exit status 1 if --wait sees it fail."""
    from trainfabric_cli.deployed import read_and_connect
    from trainfabric_cli.output import print_json
    from trainfabric_plan.planning import make_plan

    given, control = read_and_connect(environment)
    recipe = _recipe(given, steps=steps, checkpoint_every=checkpoint_every)
    corpus = data or _default_corpus(control.deployed.data_bucket)
    spec = control.start(
        name,
        recipe,
        make_plan(given),
        corpus,
        policy=given.fault_tolerance,
        spares=given.fleet.spares,
        resume=resume,
        from_step=from_step,
    )
    if wait:
        _follow(control, name, as_json)
    elif as_json:
        print_json(spec.model_dump(mode="json"))
    else:
        spares = f" and {spec.spares} spare" if spec.spares else ""
        typer.echo(f"started {spec.job} (run {spec.run}) on {spec.plan.nodes} nodes{spares} with {spec.data}")
        typer.echo(f"next: trainfabric job status --follow --environment {environment}")


@app.command()
def status(
    environment: EnvironmentOption,
    name: JobArgument = None,
    follow: Annotated[bool, typer.Option("--follow", help="Show progress until the job has ended.")] = False,
    as_json: Json = False,
) -> None:
    """Show the state of a job: its nodes, its last step and loss, its newest checkpoint, and what happened to it."""
    from trainfabric_cli.deployed import read_and_connect

    _, control = read_and_connect(environment)
    if follow:
        _follow(control, name, as_json)
    else:
        _print(control.status(name), as_json)


@app.command()
def logs(
    environment: EnvironmentOption,
    name: JobArgument = None,
    node: Annotated[str | None, typer.Option(metavar="INSTANCE_ID", help="One node; all if not given.")] = None,
    as_json: Json = False,
) -> None:
    """Print what the ranks of a job's newest run have written: node by node, epoch by epoch."""
    from trainfabric_cli.deployed import read_and_connect
    from trainfabric_cli.output import print_json

    _, control = read_and_connect(environment)
    shown = control.status().job if name is None and as_json else name
    text = control.logs(shown, node)
    if as_json:
        print_json({"job": shown, "node": node, "log": text})
    else:
        typer.echo(text, nl=not text.endswith("\n"))


@app.command()
def stop(
    environment: EnvironmentOption,
    wait: Annotated[bool, typer.Option("--wait", help="Return when the nodes are released.")] = False,
    timeout_s: Annotated[float, typer.Option(min=0, help="Seconds that --wait waits for the nodes.")] = STOP_TIMEOUT_S,
    force: Annotated[
        bool, typer.Option("--force", help="Release the nodes at once: steps since the last checkpoint are lost.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Ask the running job to stop: all ranks save at the same step, then the nodes are released."""
    from trainfabric_cli.deployed import read_and_connect

    _, control = read_and_connect(environment)
    _print(control.stop(timeout_s if wait else 0.0, force=force), as_json)


def _recipe(environment: Environment, **chosen: int | None) -> Recipe:
    """The environment's recipe, with what was chosen instead of what it says."""
    from trainfabric_plan.recipes import recipe

    given = {name: value for name, value in chosen.items() if value is not None}
    return recipe(str(environment.training.recipe)).model_copy(update=given)


def _default_corpus(bucket: str) -> str:
    from trainfabric_plan.contract import DATA_PREFIX

    return f"s3://{bucket}/{DATA_PREFIX}corpus"


def _follow(control: JobControl, name: str | None, as_json: bool) -> None:
    from trainfabric_cli.following import last, show, statuses
    from trainfabric_cli.output import console

    found = statuses(control, name)
    try:
        ended = last(found) if as_json else show(found, console())
    except KeyboardInterrupt:
        typer.echo("the job goes on; trainfabric job status --follow shows it again", err=True)
        raise typer.Exit(EXIT_INTERRUPTED) from None
    _print(ended, as_json)
    if ended.state == "failed":
        raise typer.Exit(EXIT_JOB_FAILED)


def _print(found: JobStatus, as_json: bool) -> None:
    from trainfabric_cli.output import console, print_json, print_table, table

    if as_json:
        print_json(found.model_dump(mode="json"))
        return
    out, made = console(), table("what", "value")
    for what, value in _facts(found).items():
        if value is not None:
            made.add_row(what, str(value))
    print_table(out, f"{found.job or found.environment}: {found.summary}", made)
    if found.nodes:
        nodes = table("node", "role", "state", "detail")
        for node in found.nodes:
            nodes.add_row(node.instance_id, str(node.role), str(node.state), node.detail)
        print_table(out, "Nodes", nodes)
    if found.story:
        out.print("What happened (UTC)", style="bold")
        for line in found.story:
            out.print(line, soft_wrap=True)


def _facts(found: JobStatus) -> dict[str, object]:
    return {
        "environment": found.environment,
        "run": found.run,
        "recipe": found.recipe,
        "data": found.data,
        "nodes": _nodes(found),
        "layout": found.layout,
        "step": None if found.step is None else f"{found.step} of {found.steps}",
        "loss": None if found.loss is None else f"{found.loss:.4f}",
        "tokens per second": None if found.tokens_per_second is None else f"{found.tokens_per_second:,.0f}",
        "newest checkpoint": found.checkpoint_uri,
        "records": found.records_uri,
    }


def _nodes(found: JobStatus) -> str | None:
    if found.nodes_expected is None:
        return None
    spares = f", {found.spares} spare" if found.spares else ""
    return f"{found.nodes_training or 0} of {found.nodes_expected}{spares}"
