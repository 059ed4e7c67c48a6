"""The app of a training environment: what `app.py` calls."""

from __future__ import annotations

import sys

import aws_cdk as cdk

from trainfabric_plan.environment import Environment
from trainfabric_plan.environment.file import read_environment
from trainfabric_plan.errors import EXIT_USER_ERROR, TrainfabricError, mistake
from trainfabric_stacks.training_environment import TrainingEnvironment

ENVIRONMENT = "environment"
"""Context key of the environment file: in cdk.json, or `cdk … -c environment=environments/NAME.yaml`."""

FEATURE_FLAGS = {
    "@aws-cdk/aws-iam:minimizePolicies": True,
    "@aws-cdk/aws-s3:createDefaultLoggingPolicy": True,
    "@aws-cdk/core:aspectPrioritiesMutating": True,
    "@aws-cdk/core:checkSecretUsage": True,
    "@aws-cdk/core:defaultCrossStackReferences": "strong",
    "@aws-cdk/core:enablePartitionLiterals": True,
    "@aws-cdk/core:explicitStackTags": True,
    "@aws-cdk/core:target-partitions": ["aws", "aws-cn"],
}
"""CDK's behaviour that the stacks are written for; cdk.json of an app may say otherwise."""


def training_app() -> cdk.App:
    """A CDK app with the feature flags of trainfabric, without analytics."""
    return cdk.App(analytics_reporting=False, context=FEATURE_FLAGS)


def environment_from_context(app: cdk.App) -> Environment:
    """The environment file that the context key `environment` names, relative to the working directory.

    Raises:
        NotFound: If there is no such file.
        InvalidInput: With every mistake in it, or if the context names none.
    """
    path = app.node.try_get_context(ENVIRONMENT)
    if not isinstance(path, str) or not path:
        remedy = "add -c environment=environments/NAME.yaml, or the key to the context in cdk.json"
        raise mistake("app", "context environment", "the path of an environment file", path or "nothing", remedy)
    return read_environment(path)


def deploy_app() -> None:
    """Synthesise the environment that the context names; a user's mistake is printed and ends with exit status 2."""
    app = training_app()
    try:
        TrainingEnvironment(app, environment_from_context(app))
    except TrainfabricError as error:
        print(error, file=sys.stderr)
        raise SystemExit(EXIT_USER_ERROR) from None
    app.synth()
