"""The phases of the demo, in order."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from sandbox.demo.commands import Commands, DemoFailed
from sandbox.demo.deployment import EmbeddedAws, deployed_environment, read_back, running_nodes
from sandbox.demo.narrator import Narrator
from sandbox.demo.report import CORPUS_FILE, DEPLOYMENT_FILE, REFERENCE_STEPS_FILE, SECONDS_FILE
from sandbox.demo.training import DemoJob
from sandbox.processes import Children, local_environment
from sandbox.services import (
    ACCESS_KEY,
    ACCOUNT,
    SECRET_KEY,
    aws_variables,
    cdk_variables,
    embedded_aws,
    mirror_buckets,
    seaweedfs,
)
from trainfabric_plan.contract import DATA_PREFIX, EVENTS_FILE, STEPS_FILE
from trainfabric_plan.deployed import DeployedEnvironment
from trainfabric_plan.environment import Environment
from trainfabric_plan.environment.file import read_environment
from trainfabric_plan.planning.planner import make_plan
from trainfabric_plan.recipes import recipe

PHASES = 7
STOP_AFTER_STEP = 12


def run_demo(root: Path, build: Path, environment_file: Path, console: Console) -> None:
    """Run every phase; files in `build` are what the report is made of."""
    environment = read_environment(environment_file)
    narrator = Narrator(console, PHASES)
    with Children() as children:
        # one thread a process: eight ranks share the machine, and threads that spin slow each other down
        threads = {"OMP_NUM_THREADS": "1"}
        variables = local_environment(
            **cdk_variables(), **threads, PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        )
        commands = Commands(root=root, logs=build / "logs", children=children, environment=variables)
        with narrator.phase("synth", f"synthesise {environment_file.relative_to(root)}"):
            _synthesise(commands, build, environment_file)
        with narrator.phase("start", "start the embedded AWS (moto) and SeaweedFS as S3"):
            aws = _start_services(children, build, environment.region)
        commands = replace(commands, environment={**variables, **aws_variables(aws.endpoint)})
        with narrator.phase("deploy", "cdk bootstrap and cdk deploy --all"):
            deployed = _deploy(commands, aws, build, environment, narrator)
        # the CDK keeps its assets and templates in moto's S3; from here on S3 is what the nodes use
        commands = replace(commands, environment={**commands.environment, "AWS_ENDPOINT_URL_S3": aws.s3_endpoint})
        with narrator.phase("corpus", "tokenise the sources of the Python standard library into the data bucket"):
            data = _prepare_corpus(commands, build, deployed, environment, narrator)
        with narrator.phase(
            "train", f"train on {environment.fleet.nodes} local nodes, stop in the middle, resume, finish"
        ):
            _train(commands, narrator, aws, build, environment, environment_file, deployed)
        with narrator.phase("reference", "train the same in one process, without DeepSpeed"):
            _train_reference(commands, build, environment, data)
        with narrator.phase("stop", "stop the embedded services"):
            children.stop_all()
    (build / SECONDS_FILE).write_text(json.dumps(narrator.seconds, indent=2) + "\n")


def _synthesise(commands: Commands, build: Path, environment_file: Path) -> None:
    context = f"environment={environment_file}"
    commands.cdk("synth", "synth", "--quiet", "--no-notices", "--output", str(build / "cdk.out"), "-c", context)


def _start_services(children: Children, build: Path, region: str) -> EmbeddedAws:
    endpoint = embedded_aws(children, log=build / "logs" / "aws.log")
    s3_endpoint = seaweedfs(children, build / "s3", log=build / "logs" / "s3.log")
    return EmbeddedAws(
        endpoint=endpoint, s3_endpoint=s3_endpoint, region=region, access_key=ACCESS_KEY, secret_key=SECRET_KEY
    )


def _deploy(
    commands: Commands, aws: EmbeddedAws, build: Path, environment: Environment, narrator: Narrator
) -> DeployedEnvironment:
    assembly = str(build / "cdk.out")
    where = f"aws://{ACCOUNT}/{environment.region}"
    commands.cdk("bootstrap", "bootstrap", "--app", assembly, "--no-notices", where)
    how = ["--method=direct", "--require-approval", "never", "--no-notices", "--ci"]
    commands.cdk("deploy", "deploy", "--app", assembly, "--all", *how)
    deployed = deployed_environment(aws, environment.name)
    found = read_back(aws, deployed, "demo", f"{environment.name}-")
    unfinished = [s for s in found["stacks"] if s["status"] != "CREATE_COMPLETE"]
    if unfinished or not found["stacks"]:
        raise DemoFailed(f"stacks must be CREATE_COMPLETE, got {unfinished or 'none'}")
    (build / DEPLOYMENT_FILE).write_text(json.dumps(found, indent=2) + "\n")
    mirror_buckets(aws.endpoint, aws.s3_endpoint)
    narrator.say(f"{len(found['stacks'])} stacks with {len(found['resources'])} resources")
    return deployed


def _prepare_corpus(
    commands: Commands, build: Path, deployed: DeployedEnvironment, environment: Environment, narrator: Narrator
) -> str:
    data = f"s3://{deployed.data_bucket}/{DATA_PREFIX}corpus"
    vocabulary = str(recipe(environment.training.recipe).model.vocabulary)
    arguments = ("prepare", "--stdlib", "--vocabulary", vocabulary, "--output", data, "--json")
    corpus = json.loads(commands.python("corpus", "-m", "trainfabric_training.data", *arguments))
    (build / CORPUS_FILE).write_text(json.dumps(corpus, indent=2) + "\n")
    narrator.say(f"{corpus['documents']:,} files, {corpus['tokens']:,} tokens in {data}.bin")
    return data


def _train(
    commands: Commands,
    narrator: Narrator,
    aws: EmbeddedAws,
    build: Path,
    environment: Environment,
    environment_file: Path,
    deployed: DeployedEnvironment,
) -> None:
    steps = recipe(environment.training.recipe).steps
    nodes = ("nodes", "--environment", environment.name, "--state", str(build / "nodes"))
    runner = commands.start("nodes", [sys.executable, "-m", "sandbox", *nodes])
    job = DemoJob(commands, aws, deployed, runner, ["--environment", str(environment_file)])
    with narrator.steps(steps) as bar:
        job.start(resume=False)
        narrator.say("nodes: " + ", ".join(running_nodes(aws, deployed)))
        job.wait_for_step(1, STOP_AFTER_STEP, bar)
        job.stop()
        narrator.say(f"stopped: {job.lines(1, EVENTS_FILE)[-1]}")
        job.start(resume=True)
        job.wait_for_step(2, steps, bar)
        job.wait_until_finished(2)
    done, events = job.telemetry(2)
    for name, lines in ((STEPS_FILE, done), (EVENTS_FILE, events)):
        (build / name).write_text("".join(json.dumps(line) + "\n" for line in lines))


def _train_reference(commands: Commands, build: Path, environment: Environment, data: str) -> None:
    plan = build / "plan.json"
    plan.write_text(make_plan(environment).model_dump_json(indent=2) + "\n")
    output = build / "reference"
    arguments = ("--recipe", environment.training.recipe, "--plan", str(plan), "--data", data, "--output", str(output))
    commands.python("reference", "-m", "trainfabric_training", *arguments, "--reference")
    (build / REFERENCE_STEPS_FILE).write_text((output / STEPS_FILE).read_text())
