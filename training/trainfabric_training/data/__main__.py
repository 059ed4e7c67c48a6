"""The command `python -m trainfabric_training.data prepare`."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from trainfabric_plan.contract import ExitStatus
from trainfabric_plan.errors import TrainfabricError
from trainfabric_training.data.facts import CorpusFacts
from trainfabric_training.data.prepare import Progress, prepare
from trainfabric_training.data.sources import find_sources, standard_library_sources

_PHASES = {"train": "train the tokenizer", "encode": "encode", "write": "write the corpus"}


def run(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status."""
    given = _parser().parse_args(arguments)
    try:
        files = standard_library_sources() if given.stdlib else find_sources(given.sources, given.pattern)
        with _shown() as progress:
            facts = prepare(files, given.output, given.vocabulary, progress)
    except TrainfabricError as error:
        print(error, file=sys.stderr)
        return ExitStatus.USER_ERROR
    print(facts.model_dump_json(indent=2) if given.json else _words(facts, given.output))
    return ExitStatus.DONE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m trainfabric_training.data", description="corpora for training")
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("prepare", help="make a corpus of text files", description=prepare.__doc__)
    source = command.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--sources", type=Path, metavar="DIR", help="directory with text files, searched with --pattern"
    )
    source.add_argument("--stdlib", action="store_true", help="the sources of this Python's standard library")
    command.add_argument("--pattern", default="*", help="glob pattern of file names (default: all files)")
    command.add_argument("--vocabulary", type=int, default=4096, help="entries of the tokenizer (default: 4096)")
    command.add_argument("--output", required=True, metavar="URI_PREFIX", help="s3://bucket/data/name or a path")
    command.add_argument("--json", action="store_true", help="print the facts as JSON")
    return parser


@contextlib.contextmanager
def _shown() -> Iterator[Progress | None]:
    """Bars on the error stream if it is a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bars(*columns, console=console) as bars:
        tasks = {phase: bars.add_task(words, total=None) for phase, words in _PHASES.items()}

        def progress(phase: str, done: int, total: int) -> None:
            bars.update(tasks[phase], completed=done, total=total)

        yield progress


def _words(facts: CorpusFacts, output: str) -> str:
    return (
        f"{output}: {facts.tokens:,} tokens in {facts.documents:,} documents, vocabulary {facts.vocabulary:,}"
        f", {facts.skipped} files skipped"
    )


if __name__ == "__main__":
    sys.exit(run())
