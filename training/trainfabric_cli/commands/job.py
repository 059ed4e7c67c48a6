"""`trainfabric job`: start, watch and stop what trains in a deployed environment, one job at a time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trainfabric_cli.options import EnvironmentOption, Json

if TYPE_CHECKING:
    from trainfabric_node.jobs import JobControl, JobStatus
    from trainfabric_node.jobs.code import CodeArchive
    from trainfabric_plan.environment import Environment
    from trainfabric_plan.own_command import OwnCommand
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
        str | None,
        typer.Option(
            metavar="URI",
            help="Corpus, without suffix; that of the data bucket if not given.",
        ),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the newest committed checkpoint.")] = False,
    from_step: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="With --resume: go on from the checkpoint of this step.")
    ] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Optimizer steps; those of the recipe if not given.")] = None,
    checkpoint_every: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Steps between checkpoints; the recipe's if not given.")
    ] = None,
    new_code: Annotated[
        bool, typer.Option("--new-code", help="With --resume: run the command, image and code folder as they are now.")
    ] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Show progress until the job has ended.")] = False,
    as_json: Json = False,
) -> None:
    """Start a job on the nodes of the environment. Exit status 1 if --wait sees it fail."""
    from trainfabric_cli.deployed import read_and_connect
    from trainfabric_cli.output import print_json
    from trainfabric_plan.planning import plan_for

    given, control = read_and_connect(environment)
    chosen = {"steps": steps, "checkpoint_every": checkpoint_every}
    is_own = given.training.command is not None
    work = _own_command(given, environment, chosen) if is_own else _recipe(given, **chosen)
    _check_new_code(environment, new_code, is_own=is_own, resume=resume)
    spec = control.start(
        name,
        work,
        plan_for(given),
        data or _default_data(control.deployed.data_bucket, is_own=is_own),
        code=_code(given, environment) if is_own and (new_code or not resume) else None,
        renew=new_code,
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


def _own_command(environment: Environment, file: Path, chosen: dict[str, int | None]) -> OwnCommand:
    """The environment's command, which has no steps that could be chosen."""
    from trainfabric_plan.errors import mistake
    from trainfabric_plan.own_command import OwnCommand

    for name, value in chosen.items():
        if value is not None:
            option = f"--{name.replace('_', '-')}"
            raise mistake(str(file), option, "left out for a command", value, "put it into training.command")
    training = environment.training
    return OwnCommand(command=str(training.command), image=training.image, leave_by=training.leave_by)


def _check_new_code(file: Path, new_code: bool, *, is_own: bool, resume: bool) -> None:
    from trainfabric_plan.errors import mistake

    if new_code and not (is_own and resume):
        rule = "given only to resume a command"
        raise mistake(str(file), "--new-code", rule, "it without that", "remove it: a new job has the code of now")


def _code(environment: Environment, file: Path) -> CodeArchive | None:
    """The code folder of the command, if it has one."""
    from trainfabric_node.jobs.code import pack

    code = environment.training.code
    return None if code is None else pack(file.parent / code, str(file))


def _default_data(bucket: str, *, is_own: bool) -> str:
    from trainfabric_plan.contract import DATA_PREFIX

    return f"s3://{bucket}/{DATA_PREFIX}" + ("" if is_own else "corpus")


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
        "command": found.command,
        "data": found.data,
        "nodes": _nodes(found),
        "layout": found.layout,
        "step": None if found.step is None else f"{found.step} of {found.steps}" if found.steps else found.step,
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
