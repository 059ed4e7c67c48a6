"""The page docs/parallelcluster-rules.md, as a run of the mistakes gives it: `python -m tests.oracle.page FILE`."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.oracle.conftest import asked
from tests.oracle.moto_network import moto_network
from tests.plan.parallelcluster.mistakes import MISTAKES, RIGHT, Configuration, Mistake, settled
from trainfabric_plan.parallelcluster import check

Said = Mapping[str, list[list[str]]]

_HEAD = """\
# Mistakes in a ParallelCluster configuration, and who tells

`trainfabric lint cluster.yaml` takes a configuration file of AWS ParallelCluster as it is, without credentials and
without moving anything. Each row is one mistake in an otherwise right configuration, given to our rules
([all of them](lint-rules.md#parallelclusters-configuration)), to the schema of aws-parallelcluster 3.16.1, and, where
that takes it, to its validators, which run on an embedded AWS here and on yours only when a cluster is being made.
A dash is silence.

| mistake | ours | schema | validators |
|---|---|---|---|
"""


def answers() -> Said:
    """What ParallelCluster says of the right configuration (by the name ``) and of every mistake."""
    made: dict[str, Configuration] = {"": RIGHT} | {one.what: one.configuration for one in MISTAKES}
    with moto_network() as ids:
        texts = [json.loads(settled(one, ids)) for one in made.values()]
        return dict(zip(made, asked("validators.py", texts), strict=True))


def page(said: Said) -> str:
    """The page."""
    return _HEAD + "".join(_row(one, said[one.what]) for one in MISTAKES) + _foot(said)


def _row(mistake: Mistake, said: list[list[str]]) -> str:
    found = next(one for one in check(json.loads(settled(mistake.configuration))) if one.rule == mistake.rule)
    ours = f"{found.severity}: {found.broken.mistake('').rule}"
    schema = "error" if any(validator == "Schema" for _, validator, _ in said) else "–"
    validators = sorted({f"{level.lower()}: {name}" for level, name, _ in said if name != "Schema" and level != "INFO"})
    return f"| {mistake.what} | {ours} | {schema} | {'<br>'.join(validators) or '–'} |\n"


def _foot(said: Said) -> str:
    silent = sum(all(level == "INFO" for level, _, _ in said[one.what]) for one in MISTAKES)
    return f"\n{len(MISTAKES)} mistakes; of {silent} ParallelCluster says nothing. Written by a test run.\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(answers()), encoding="utf-8")
