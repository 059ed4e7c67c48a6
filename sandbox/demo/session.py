"""An environment on the embedded AWS: synthesised, deployed, with a corpus in its data bucket."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sandbox.demo.commands import Commands, DemoFailed
from sandbox.demo.deployment import EmbeddedAws, deployed_environment, read_back
from sandbox.processes import Child, Children, local_environment
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
from trainfabric_plan.contract import DATA_PREFIX
from trainfabric_plan.deployed import DeployedEnvironment
from trainfabric_plan.environment import Environment
from trainfabric_plan.recipes import Recipe, recipe

HOW_TO_DEPLOY = ("--method=direct", "--require-approval", "never", "--no-notices", "--ci")


def synthesise(root: Path, build: Path, environment_file: Path, children: Children) -> Commands:
    """Write the templates of an environment into `build/cdk.out`; returns what runs commands in this checkout."""
    # one thread a process: eight ranks share the machine, and threads that spin slow each other down
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    variables = local_environment(**cdk_variables(), OMP_NUM_THREADS="1", PATH=path)
    commands = Commands(root=root, logs=build / "logs", children=children, environment=variables)
    context = f"environment={environment_file}"
    commands.cdk("synth", "synth", "--quiet", "--no-notices", "--output", str(build / "cdk.out"), "-c", context)
    return commands


def start_services(children: Children, build: Path, region: str) -> EmbeddedAws:
    """The embedded AWS (moto), and SeaweedFS as the nodes' S3."""
    endpoint = embedded_aws(children, log=build / "logs" / "aws.log")
    s3_endpoint = seaweedfs(children, build / "s3", log=build / "logs" / "s3.log")
    return EmbeddedAws(
        endpoint=endpoint, s3_endpoint=s3_endpoint, region=region, access_key=ACCESS_KEY, secret_key=SECRET_KEY
    )


@dataclass(frozen=True, kw_only=True)
class Session:
    """A deployed environment and what is needed to use it.

    Attributes:
        commands: Runs commands with S3 being that of the nodes.
        aws: The embedded AWS.
        build: Directory of everything that is written.
        environment: As in its file.
        environment_file: The file.
        deployed: Names of what was deployed.
    """

    commands: Commands
    aws: EmbeddedAws
    build: Path
    environment: Environment
    environment_file: Path
    deployed: DeployedEnvironment

    @property
    def nodes(self) -> Path:
        """Directory in which each local node has one of its own."""
        return self.build / "nodes"

    def start_nodes(self, *more: str) -> Child:
        """Local nodes for whatever instances the environment's groups run; `more` options of `sandbox nodes`."""
        arguments = ("nodes", "--environment", self.environment.name, "--state", str(self.nodes), *more)
        return self.commands.start("nodes", [sys.executable, "-m", "sandbox", *arguments])

    def prepare_corpus(self, sources: Path | None = None) -> dict[str, Any]:
        """Tokenise Python sources into the data bucket; returns the corpus's facts and its `uri`.

        Args:
            sources: Directory of them; the standard library if not given.
        """
        uri = f"s3://{self.deployed.data_bucket}/{DATA_PREFIX}corpus"
        vocabulary = str(_recipe_of(self.environment).model.vocabulary)
        which = ("--stdlib",) if sources is None else ("--sources", str(sources), "--pattern", "*.py")
        arguments = ("prepare", *which, "--vocabulary", vocabulary, "--output", uri, "--json")
        facts: dict[str, Any] = json.loads(
            self.commands.python("corpus", "-m", "trainfabric_training.data", *arguments)
        )
        return {**facts, "uri": uri}


def deploy(
    commands: Commands, aws: EmbeddedAws, build: Path, environment: Environment, environment_file: Path
) -> Session:
    """`cdk bootstrap` and `cdk deploy --all` of what was synthesised; the nodes' S3 gets the buckets.

    The CDK keeps its assets and templates in moto's S3; from then on S3 is what the nodes use.
    """
    talking = replace(commands, environment={**commands.environment, **aws_variables(aws.endpoint)})
    assembly = str(build / "cdk.out")
    where = f"aws://{ACCOUNT}/{environment.region}"
    talking.cdk("bootstrap", "bootstrap", "--app", assembly, "--no-notices", where)
    talking.cdk("deploy", "deploy", "--app", assembly, "--all", *HOW_TO_DEPLOY)
    mirror_buckets(aws.endpoint, aws.s3_endpoint)
    return Session(
        commands=replace(talking, environment={**talking.environment, "AWS_ENDPOINT_URL_S3": aws.s3_endpoint}),
        aws=aws,
        build=build,
        environment=environment,
        environment_file=environment_file,
        deployed=deployed_environment(aws, environment.name),
    )


def _recipe_of(environment: Environment) -> Recipe:
    assert environment.training.recipe is not None, "a command has no corpus of ours"
    return recipe(environment.training.recipe)


def what_exists(session: Session, job: str) -> dict[str, Any]:
    """What boto3 finds after the deploy.

    Raises:
        DemoFailed: If there is no stack, or one that is not complete.
    """
    found = read_back(session.aws, session.deployed, job, f"{session.environment.name}-")
    unfinished = [stack for stack in found["stacks"] if stack["status"] != "CREATE_COMPLETE"]
    if unfinished or not found["stacks"]:
        raise DemoFailed(f"stacks must be CREATE_COMPLETE, got {unfinished or 'none'}")
    return found
