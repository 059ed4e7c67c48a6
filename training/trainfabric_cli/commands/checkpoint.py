"""`trainfabric checkpoint`: what a job has committed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trainfabric_cli.options import Json

if TYPE_CHECKING:
    from trainfabric_node.checkpoint import CheckpointStore

app = typer.Typer(no_args_is_help=True, help="Look at the checkpoints of a job.")


@app.callback()
def _checkpoint() -> None:
    """Keeps this a group while it has a single command."""


@app.command("ls")
def list_checkpoints(
    place: Annotated[
        str, typer.Argument(metavar="ENVIRONMENT_FILE|URI", help="A deployed environment, or a job's checkpoints.")
    ],
    job: Annotated[str | None, typer.Option(help="Job of the environment; the newest if not given.")] = None,
    as_json: Json = False,
) -> None:
    """List the committed checkpoints of a job, oldest first. `--json` is a list of rows."""
    from trainfabric_cli.output import console, print_json, print_table, table

    store = _store(place, job)
    rows = [
        {"step": commit.step, "time": commit.time, "run": commit.nonce, "uri": store.checkpoint_uri(commit)}
        for commit in store.commits()
    ]
    if as_json:
        print_json(rows)
        return
    made = table("step", "committed", "address", numbers=("step",))
    for row in rows:
        made.add_row(str(row["step"]), str(row["time"]), str(row["uri"]))
    print_table(console(), f"{len(rows)} committed checkpoints in {store.uri}", made)


def _store(place: str, job: str | None) -> CheckpointStore:
    from trainfabric_cli.deployed import read_and_connect
    from trainfabric_node.checkpoint import CheckpointStore
    from trainfabric_node.store import open_store
    from trainfabric_plan.contract import checkpoint_prefix
    from trainfabric_plan.errors import NotFound

    if "://" in place:
        return CheckpointStore(open_store(place))
    environment, control = read_and_connect(Path(place))
    name = job or control.status().job
    if name is None:
        raise NotFound(f"environment {environment.name}: job must be an existing one, got none; no job was started yet")
    return CheckpointStore(open_store(f"s3://{control.deployed.checkpoint_bucket}/{checkpoint_prefix(name)}"))
