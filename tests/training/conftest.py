from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from trainfabric_plan.contract import EVENTS_FILE, RESULT_FILE, STEPS_FILE
from trainfabric_plan.layout import Layout
from trainfabric_plan.planning import Plan
from trainfabric_plan.recipes import ModelShape, Recipe
from trainfabric_training.__main__ import run
from trainfabric_training.data import CorpusFacts, IndexedWriter

TIMEOUT_SECONDS = 170
SMALL = Recipe(
    name="small",
    description="a GPT so small that its tests take seconds; its vocabulary needs padding on every layout",
    model=ModelShape(layers=3, hidden=32, heads=4, vocabulary=70, sequence_length=16),
    precision="fp32",
    micro_batch=2,
    global_batch=8,
    steps=20,
    checkpoint_every=6,
    learning_rate=3e-3,
    warmup_steps=3,
)


@dataclass(frozen=True, kw_only=True)
class Finished:
    """A training run that has ended, and what it left behind."""

    status: int
    output: Path
    stdout: str
    stderr: str

    @property
    def steps(self) -> list[dict[str, Any]]:
        return lines(self.output / STEPS_FILE)

    @property
    def events(self) -> list[dict[str, Any]]:
        return lines(self.output / EVENTS_FILE)

    @property
    def result(self) -> dict[str, Any]:
        return json.loads((self.output / RESULT_FILE).read_text())  # type: ignore[no-any-return]


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@dataclass(frozen=True, kw_only=True)
class Workplace:
    """A recipe, a corpus and a place for runs."""

    directory: Path
    corpus: Path

    def recipe(self, chosen: Recipe = SMALL) -> Path:
        path = self.directory / f"{chosen.name}-{chosen.steps}-{chosen.learning_rate}.json"
        path.write_text(chosen.model_dump_json())
        return path

    def plan(self, layout: Layout, recipe: str = SMALL.name) -> Path:
        path = self.directory / f"plan-{recipe}-{layout.data}-{layout.pipeline}-{layout.tensor}.json"
        path.write_text(plan_of(layout, recipe).model_dump_json())
        return path

    def output(self, name: str) -> Path:
        return self.directory / name

    def arguments(self, name: str, layout: Layout, *more: str) -> list[str]:
        given = {
            "--recipe": self.recipe(),
            "--plan": self.plan(layout),
            "--data": self.corpus,
            "--output": self.output(name),
        }
        return [*(str(part) for pair in given.items() for part in pair), *more]

    def torchrun(self, name: str, layout: Layout, *more: str) -> Finished:
        """Trains over real processes, through the command line."""
        command = [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
            f"--nproc-per-node={layout.ranks}",
            *("-m", "trainfabric_training"),
            *self.arguments(name, layout, *more),
        ]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
        process = subprocess.Popen(
            command,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            stdout, stderr = process.communicate(timeout=TIMEOUT_SECONDS)
        finally:
            _end_group(process)
        return Finished(status=process.returncode, output=self.output(name), stdout=stdout, stderr=stderr)

    def in_process(self, name: str, layout: Layout, *more: str) -> int:
        """Trains as the only rank, in this process; the exit status. What it exports stays in it."""
        with patch.dict(os.environ):
            return run(self.arguments(name, layout, *more))


def _end_group(process: subprocess.Popen[str]) -> None:
    """torchrun and its ranks, should any be left."""
    try:
        os.killpg(process.pid, 9)
    except ProcessLookupError:
        return
    process.wait()


def plan_of(layout: Layout, recipe: str) -> Plan:
    return Plan(
        environment="tests",
        recipe=recipe,
        nodes=1,
        ranks_per_node=layout.ranks,
        layout=layout,
        micro_batch=SMALL.micro_batch,
        accumulation=SMALL.global_batch // (SMALL.micro_batch * layout.data),
        global_batch=SMALL.global_batch,
        memory_bytes={"total": 0},
        accelerator_memory_bytes=None,
        usd_per_hour=None,
        usd_per_hour_at_least=0.0,
        reasons=[],
    )


@pytest.fixture(scope="session")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    directory = tmp_path_factory.mktemp("training")
    corpus = directory / "corpus"
    write_corpus(corpus, SMALL.model.vocabulary)
    return Workplace(directory=directory, corpus=corpus)


def write_corpus(prefix: Path, vocabulary: int) -> None:
    """Documents that count upwards from anywhere in strides from 1 to 5: something to learn."""
    generator = random.Random(7)
    total = 0
    with IndexedWriter(prefix, vocabulary) as writer:
        for _ in range(60):
            start, stride, length = generator.randrange(vocabulary), generator.randint(1, 5), generator.randint(30, 90)
            writer.add([(start + stride * index) % vocabulary for index in range(length)])
            total += length
    facts = CorpusFacts(
        documents=60,
        tokens=total,
        vocabulary=vocabulary,
        skipped=0,
        bin_sha256=hashlib.sha256(prefix.with_suffix(".bin").read_bytes()).hexdigest(),
        idx_sha256=hashlib.sha256(prefix.with_suffix(".idx").read_bytes()).hexdigest(),
        tokenizer_sha256="0" * 64,
    )
    prefix.with_name(f"{prefix.name}.json").write_text(facts.model_dump_json())


ALL_RANKS = Layout(data=2, pipeline=2, tensor=2)
ONE_RANK = Layout()


@pytest.fixture(scope="session")
def uninterrupted(workplace: Workplace) -> Finished:
    """Twenty steps on 2 × 2 × 2 ranks, committed at 6, 12, 18 and 20."""
    checkpoints = workplace.output("uninterrupted-checkpoints")
    return workplace.torchrun("uninterrupted", ALL_RANKS, "--checkpoints", str(checkpoints))


@pytest.fixture(scope="session")
def committed(workplace: Workplace, uninterrupted: Finished) -> Path:
    """The checkpoints of the uninterrupted run; not to be changed."""
    assert uninterrupted.status == 0, uninterrupted.stderr
    return workplace.output("uninterrupted-checkpoints")


@pytest.fixture
def checkpoints(committed: Path, tmp_path: Path) -> Path:
    """A copy of them that a test may go on from, or damage."""
    return Path(shutil.copytree(committed, tmp_path / "checkpoints"))


@pytest.fixture(scope="session")
def reference(workplace: Workplace) -> Finished:
    """The same twenty steps in one process of plain PyTorch."""
    status = workplace.in_process("reference", ONE_RANK, "--reference")
    assert status == 0
    return Finished(status=status, output=workplace.output("reference"), stdout="", stderr="")


@pytest.fixture
def trained(workplace: Workplace, capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[..., tuple[int, str]]]:
    """Runs the command in this process as the only rank; its exit status and what it said."""
    counter = iter(range(100))

    def call(*more: str, layout: Layout = ONE_RANK, name: str | None = None) -> tuple[int, str]:
        own = name or f"in-process-{os.getpid()}-{id(counter)}-{next(counter)}"
        status = workplace.in_process(own, layout, *more)
        return status, capsys.readouterr().err

    yield call
