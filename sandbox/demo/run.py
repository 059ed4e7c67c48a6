"""The phases of the demo, in order."""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Console

from sandbox.demo.commands import Commands
from sandbox.demo.deployment import EmbeddedAws, running_nodes
from sandbox.demo.narrator import Narrator
from sandbox.demo.report import (
    CORPUS_FILE,
    DEPLOYMENT_FILE,
    EPOCH_STEPS_FILE,
    REFERENCE_STEPS_FILE,
    SECONDS_FILE,
)
from sandbox.demo.session import Session, deploy, start_services, synthesise, what_exists
from sandbox.demo.training import DemoJob
from sandbox.processes import Children
from trainfabric_plan.contract import EVENTS_FILE, STEPS_FILE
from trainfabric_plan.environment import Environment
from trainfabric_plan.environment.file import read_environment
from trainfabric_plan.planning.planner import make_plan

PHASES = 6
JOB = "demo"
STEPS = 80
"""More than the recipe's, so that the replacement of the node that is taken away still trains."""
NOTICE_AFTER_STEP = 5


def run_demo(root: Path, build: Path, environment_file: Path, console: Console) -> None:
    """Run every phase; files in `build` are what the report is made of."""
    environment = read_environment(environment_file)
    narrator = Narrator(console, PHASES)
    with Children() as children:
        with narrator.phase("synth", f"synthesise {environment_file.relative_to(root)}"):
            commands = synthesise(root, build, environment_file, children)
        with narrator.phase("start", "start the embedded AWS (moto) and SeaweedFS as S3"):
            aws = start_services(children, build, environment.region)
        with narrator.phase("deploy", "cdk bootstrap and cdk deploy --all"):
            session = _deploy(commands, aws, build, environment, environment_file, narrator)
        with narrator.phase("corpus", "tokenise the sources of the Python standard library into the data bucket"):
            data = _prepare_corpus(session, narrator)
        nodes = environment.fleet.nodes
        with narrator.phase("train", f"train on {nodes} local nodes; EC2 takes one back in the middle"):
            _train(session, narrator)
        with narrator.phase("reference", "train the same in one process, without DeepSpeed"):
            _train_reference(session, data)
    (build / SECONDS_FILE).write_text(json.dumps(narrator.seconds, indent=2) + "\n")


def _deploy(
    commands: Commands,
    aws: EmbeddedAws,
    build: Path,
    environment: Environment,
    environment_file: Path,
    narrator: Narrator,
) -> Session:
    session = deploy(commands, aws, build, environment, environment_file)
    found = what_exists(session, JOB)
    (build / DEPLOYMENT_FILE).write_text(json.dumps(found, indent=2) + "\n")
    narrator.say(f"{len(found['stacks'])} stacks with {len(found['resources'])} resources")
    return session


def _prepare_corpus(session: Session, narrator: Narrator) -> str:
    corpus = session.prepare_corpus()
    (session.build / CORPUS_FILE).write_text(json.dumps(corpus, indent=2) + "\n")
    narrator.say(f"{corpus['documents']:,} files, {corpus['tokens']:,} tokens in {corpus['uri']}.bin")
    return str(corpus["uri"])


def _train(session: Session, narrator: Narrator) -> None:
    job = DemoJob(JOB, session, session.start_nodes())
    with narrator.steps(STEPS) as bar:
        job.start("--steps", str(STEPS))
        narrator.say("nodes: " + ", ".join(running_nodes(session.aws, session.deployed)))
        job.wait_for_step(NOTICE_AFTER_STEP, bar)
        node = job.interrupt_a_worker()
        narrator.say(f"spot interruption notice to {node}, training goes on without it")
        job.wait_until_finished(STEPS, bar)
    for line in job.story():
        narrator.say(line)
    telemetry = {
        STEPS_FILE: job.steps(),
        EPOCH_STEPS_FILE: job.steps_of_all_epochs(),
        EVENTS_FILE: job.events(),
    }
    for name, lines in telemetry.items():
        (session.build / name).write_text("".join(json.dumps(line) + "\n" for line in lines))


def _train_reference(session: Session, data: str) -> None:
    build, environment = session.build, session.environment
    plan = build / "plan.json"
    plan.write_text(make_plan(environment).model_dump_json(indent=2) + "\n")
    output = build / "reference"
    arguments = (
        "--recipe",
        str(environment.training.recipe),
        "--plan",
        str(plan),
        "--data",
        data,
        "--output",
        str(output),
    )
    how = ("--steps", str(STEPS), "--reference")
    session.commands.python("reference", "-m", "trainfabric_training", *arguments, *how)
    (build / REFERENCE_STEPS_FILE).write_text((output / STEPS_FILE).read_text())
