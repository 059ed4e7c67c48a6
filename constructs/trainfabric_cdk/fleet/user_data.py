"""What a node runs first: it writes down who it is, fetches the training asset and hands over to its boot script."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from aws_cdk import Token, Tokenization
from constructs import IConstruct

from trainfabric_cdk.errors import property_error
from trainfabric_plan.contract import NodeVariable, Paths

LIMIT_BYTES = 16_384
"""Most bytes of user data that EC2 takes, counted before base64 (EC2 API, RunInstances)."""

TOKEN_BYTES = 255
"""What a value known only at deploy time may grow to: a DNS name has at most 253 bytes, a bucket's name 63."""

PARAMETER_BYTES = 4096
"""What a token in the user's own commands may grow to: a CloudFormation parameter's most bytes (quotas, 2026)."""

CODE = f"{Paths.INSTALL}/code"
"""Where the training asset is unpacked."""


def user_data(variables: Mapping[str, str], commands: Sequence[str] = ()) -> str:
    """The script for a node with these variables (names of `contract.NodeVariable`).

    Args:
        variables: Lines of the node's environment file.
        commands: Shell commands to run before the handover.
    """
    lines = [
        "#!/bin/bash",
        "set -euo pipefail",
        f"install -d -m 0755 {_parent(Paths.NODE_ENVIRONMENT)} {CODE} {Paths.STATE}",
        f"cat > {Paths.NODE_ENVIRONMENT} <<'NODE_ENVIRONMENT'",
        *(f"{name}={value}" for name, value in variables.items()),
        "NODE_ENVIRONMENT",
        "set -a",
        "# shellcheck source=/dev/null",
        f"source {Paths.NODE_ENVIRONMENT}",
        "set +a",
        f'aws s3 cp --no-progress --region "${NodeVariable.REGION}" '
        f'"s3://${NodeVariable.ASSET_BUCKET}/${NodeVariable.ASSET_KEY}" {Paths.INSTALL}/code.zip',
        f"python3 -m zipfile -e {Paths.INSTALL}/code.zip {CODE}",
        *commands,
        f"exec bash {shlex.quote(f'{CODE}/trainfabric_node/boot/boot.sh')}",
    ]
    return "\n".join(lines) + "\n"


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def worst_case_bytes(script: str, commands: Sequence[str] = ()) -> int:
    """Size of a script once every token in it has become as long as it can.

    Args:
        script: The whole script.
        commands: The part of it that the user gave, whose tokens may be anything.
    """
    tokens = Tokenization.reverse_string(script).tokens
    placeholders = sum(len(Token.as_string(token).encode()) for token in tokens)
    of_the_user = sum(len(Tokenization.reverse_string(command).tokens) for command in commands)
    longest = TOKEN_BYTES * (len(tokens) - of_the_user) + PARAMETER_BYTES * of_the_user
    return len(script.encode()) - placeholders + longest


def refuse_too_large(scope: IConstruct, script: str, commands: Sequence[str] = ()) -> None:
    """EC2 refuses user data over 16,384 bytes at launch, long after a deploy that looked well; CDK does not check.

    Raises:
        PropertyError: If the script could exceed the limit.
    """
    size = worst_case_bytes(script, commands)
    if size >= LIMIT_BYTES:
        raise property_error(
            scope,
            "boot_commands",
            f"short enough for user data under {LIMIT_BYTES} bytes",
            f"{size} bytes with every token at its longest",
            "put long scripts into the image or into a bucket",
        )
